#pragma once
#include <string>

#include "engine/base/property_value.h"

namespace partita::http {

// The body of Get Table Service Stats (spec 16.2), from its byte order mark on. There is one copy, which
// its own secondary address reads: always live, and in step at `now`.
std::string WriteServiceStats(DateTime now);

}  // namespace partita::http
