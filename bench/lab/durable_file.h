#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::lab {

// Makes `path` a file of these bytes, or leaves it as it was: it gets its name when it is whole and on the
// disk, so that neither a kill nor a loss of power leaves half of it. kIoError, kNoSpace.
Status WriteDurably(const std::string& path, std::string_view bytes);

// kNotFound, kIoError; kInvalidArgument: a directory.
Result<std::string> ReadWholeFile(const std::string& path);

// kAlreadyExists, with the path and `otherwise` behind it, where something bears that name; kIoError, with
// the system's reason, where that cannot be told: a directory on the way that may not be entered, links that
// lead nowhere but back, a name that is too long.
Status CheckIsNew(const std::string& path, const std::string& otherwise = " exists");

// kAlreadyExists, kIoError.
Status MakeNewDirectory(const std::string& path);

}  // namespace partita::lab
