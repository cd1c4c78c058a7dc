#pragma once
#include <cstdint>
#include <string_view>

#include "engine/base/status.h"

namespace partita {

// A call that signals interrupt is done again, but not for ever (F24).
inline constexpr uint32_t kInterruptionsMax = 100;

// The status of a failed system call, as engine/io/file.h lists the codes; the message names
// operation, path and errno text, and what to do where that is known.
Status ErrnoStatus(std::string_view operation, std::string_view path, int error);

// The same of a directory that the caller named: kInvalidArgument when it, or what it is said to lie in, is
// none.
Status ErrnoStatusOfDirectory(std::string_view operation, std::string_view directory, int error);

// ErrnoStatus, naming the offset as well.
Status ErrnoStatusAt(std::string_view operation, std::string_view path, uint64_t offset, int error);

}  // namespace partita
