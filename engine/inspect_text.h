#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita {

// What the inspecting tools share: where a file lies, and keys and ids as text.

struct FilePlace {
  std::string directory;  // "." when the path has none.
  std::string name;
};
// kInvalidArgument for a path that ends in no file name or is a directory; kNotFound.
Result<FilePlace> PlaceOf(const std::string& path);

// The text, with control characters (C0, DEL, C1) as \xHH, so that it does no more to a terminal than show;
// when it is not UTF-8, with all bytes from 0x80 on so.
std::string SafeText(std::string_view bytes);

// "table 3 'partition' 'row'", or what a key that ends before that has; "(end)" for the empty one,
// which bounds nothing.
std::string UserKeyText(std::string_view user_key);

}  // namespace partita
