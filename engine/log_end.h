#pragma once
#include <string>

#include "engine/base/log_store.h"

namespace partita {

// What recovery gave up of a log's end, in words; empty: nothing. It is told now or never: it is void from
// here on, and the next opening finds nothing of it (F33, F80).
std::string TornInWords(const LogRecovery& log);
std::string StrandedInWords(const LogRecovery& log);

}  // namespace partita
