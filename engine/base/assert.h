#pragma once

namespace partita {

// Prints the broken condition and ends the process (F27). Never returns.
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line);

}  // namespace partita

// On in every build: what must hold on entry, after a wait, and before bytes leave for disk.
#define PARTITA_ASSERT(condition)                              \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::partita::AssertFailed(#condition, __FILE__, __LINE__); \
  } while (false)

// For checks that cost more than O(1); on in debug and sanitizer builds.
#ifdef PARTITA_DEBUG
#define PARTITA_DEBUG_ASSERT(condition) PARTITA_ASSERT(condition)
#else
#define PARTITA_DEBUG_ASSERT(condition) \
  do {                                  \
  } while (false && (condition))
#endif
