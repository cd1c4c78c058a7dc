#pragma once
#include <string>

namespace partita::bench {

// Both are false, and say so on standard error, when the file cannot be written. The first is asked before a
// run of hours; it leaves an empty file where there was none.
bool CanWriteResultFile(const std::string& path);
bool WriteResultFile(const std::string& path, const std::string& text);

}  // namespace partita::bench
