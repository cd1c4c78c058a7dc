#pragma once
#include <string>

#include "api/statistics.h"

namespace partita {

// What /readyz says.
struct Readiness {
  bool ready = true;
  std::string text;  // Of a server that is not ready, why; of one that is, what an operator should know.
};

// Of a store whose server accepts requests.
Readiness ReadinessOf(const DatabaseStats& stats);

}  // namespace partita
