#pragma once
#include "engine/base/status.h"

namespace partita {

// Of reading what is on the disk: what keeps the bytes from being known, rather than the reader from working.
inline bool IsDamage(const Status& status) {
  return status.code() == Code::kCorruption || status.code() == Code::kIoError ||
         status.code() == Code::kNotFound;
}

}  // namespace partita
