#include "bench/load/result_file.h"

#include <cstdio>
#include <fstream>

namespace partita::bench {
namespace {

bool WriteInMode(const std::string& path, const std::string& text, std::ios::openmode mode) {
  std::ofstream file(path, mode);
  file << text;
  if (file.flush()) return true;
  std::fprintf(stderr, "partita-bench: cannot write %s\n", path.c_str());
  return false;
}

}  // namespace

bool CanWriteResultFile(const std::string& path) { return WriteInMode(path, "", std::ios::app); }

bool WriteResultFile(const std::string& path, const std::string& text) {
  return WriteInMode(path, text, std::ios::trunc);
}

}  // namespace partita::bench
