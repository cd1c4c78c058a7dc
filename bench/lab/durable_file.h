#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::lab {

// Makes `path` a file of these bytes, or leaves it as it was: it gets its name when it is whole and on the
// disk, so that neither a kill nor a loss of power leaves half of it. kIoError, kNoSpace.
Status WriteDurably(const std::string& path, std::string_view bytes);

// kNotFound, kIoError.
Result<std::string> ReadWholeFile(const std::string& path);

}  // namespace partita::lab
