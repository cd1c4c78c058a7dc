#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace partita::lab {

// A column of names in a table of text, as wide as the longest one. Widths are characters, not bytes.
class NameColumn {
 public:
  explicit NameColumn(std::string_view title) { Add(title); }
  template <typename Named>
  NameColumn(std::string_view title, const std::vector<Named>& things) : NameColumn(title) {
    for (const Named& thing : things) Add(thing.name);
  }

  void Add(std::string_view name) { width_ = std::max(width_, CharactersOf(name)); }
  // Followed by as many spaces as it is shorter, and one.
  std::string Of(std::string_view name) const {
    return std::string(name) + std::string(width_ + 1 - std::min(width_, CharactersOf(name)), ' ');
  }

 private:
  static size_t CharactersOf(std::string_view text) {
    return static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }
  size_t width_ = 0;
};

}  // namespace partita::lab
