#include "api/row_keys.h"

namespace partita {

bool RowKeys::Add(std::string_view row_key) {
  if (rising_ && !ends_.empty() && row_key <= at(size() - 1)) {
    rising_ = false;
    for (size_t i = 0; i < size(); ++i) seen_.emplace(at(i));
  }
  if (!rising_ && !seen_.emplace(row_key).second) return false;
  text_.append(row_key);
  ends_.push_back(text_.size());
  return true;
}

}  // namespace partita
