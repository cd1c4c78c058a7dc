#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace partita {

// The RowKeys of a batch, each of which may stand in it once. Keys that rise, as most clients send them, are
// told apart by the one before alone; only when one does not are all of them hashed.
class RowKeys {
 public:
  // A copy; false, and nothing is added, when the key is there already.
  bool Add(std::string_view row_key);

  size_t size() const { return ends_.size(); }
  // The i-th that was added. Valid until the next Add.
  std::string_view at(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(text_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string text_;          // One behind the other.
  std::vector<size_t> ends_;  // In text_.
  bool rising_ = true;
  std::unordered_set<std::string> seen_;  // All of them, once they do not rise.
};

}  // namespace partita
