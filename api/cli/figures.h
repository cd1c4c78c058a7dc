#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita {

// Figures as people read them, and back.

std::string FormatCount(uint64_t count);    // "1,234,567"
std::string FormatBytes(uint64_t bytes);    // "512 B", "1.5 MiB"
std::string FormatSeconds(double seconds);  // "0.123 s", "12.3 s", "3:05", "2:03:05"
std::string FormatRate(double count, double seconds, std::string_view unit);  // "1,234 records/s"

// "64M", "1G", "1.5GiB", "1048576": powers of 1024; K, M, G, T, with or without "B" or "iB", any case.
// kInvalidArgument.
Result<uint64_t> ParseBytes(std::string_view text);

// Of a long task, in bytes a second.
inline constexpr uint64_t kTaskRateMin = 64 << 10;
// kInvalidArgument, which says why, below kTaskRateMin.
Status CheckTaskRate(uint64_t bytes_per_second);

// "30s", "90m", "12h", "7d" in seconds; at most seven digits. Nothing for other texts.
std::optional<int64_t> ParseDuration(std::string_view text);

}  // namespace partita
