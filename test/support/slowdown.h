#pragma once
#include <cstdint>

namespace partita {

// By how much fewer steps, seeds or operations a long test takes under a sanitizer, where each costs ten
// times as much.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr uint64_t kSlowdown = 10;
#else
inline constexpr uint64_t kSlowdown = 1;
#endif
#else
inline constexpr uint64_t kSlowdown = 1;
#endif

}  // namespace partita
