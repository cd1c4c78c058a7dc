#pragma once
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/micro/or_die.h"

namespace partita::bench {

// A setting of a benchmark with its own main, given as --name=NUMBER.
struct Number {
  const char* name;
  uint64_t* value;
  uint64_t least = 1, most = UINT64_MAX;
};

// Reads --directory=DIR, which must be there, and the numbers; ends the process on anything else, naming the
// source file whose top says what there is.
inline void ReadNumbers(int count, char** words, const char* source, std::string* directory,
                        const std::vector<Number>& numbers) {
  const auto read = [&](const std::string& name, const std::string& value) {
    if (name == "--directory" && !value.empty()) {
      *directory = value;
      return true;
    }
    uint64_t number = 0;
    const char* const value_end = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), value_end, number);
    if (error != std::errc() || end != value_end) return false;
    for (const Number& known : numbers) {
      if (name != known.name || number < known.least || number > known.most) continue;
      *known.value = number;
      return true;
    }
    return false;
  };
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const size_t equals = word.find('=');
    const std::string value = equals == word.npos ? "" : word.substr(equals + 1);
    if (!read(word.substr(0, equals), value)) {
      Die("unknown or wrong: " + word + "; the top of " + source + " says what there is");
    }
  }
  if (directory->empty()) Die("--directory=DIR is missing");
}

}  // namespace partita::bench
