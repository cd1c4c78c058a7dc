#pragma once
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "engine/base/result.h"

namespace partita::bench {

// What a benchmark with its own main does about errors: it says them, with its name in front, and ends
// with 1.
[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::_Exit(1);
}
inline void Check(const Status& status) {
  if (!status.ok()) Die(status.ToString());
}
template <class T>
T Take(Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

}  // namespace partita::bench
