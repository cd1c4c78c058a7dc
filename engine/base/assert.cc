#include "engine/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace partita {

void AssertFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "partita: broken invariant at %s:%d: %s\n", file, line, condition);
  std::fflush(stderr);
  std::abort();
}

}  // namespace partita
