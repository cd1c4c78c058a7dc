#pragma once
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "bench/load/row_generator.h"

namespace partita::bench {

// The one key that an engine without tables and partitions stores a row under: table, PartitionKey,
// 0x00, RowKey; 57 bytes on the stack.
class JoinedKey {
 public:
  explicit JoinedKey(const RowKeys& keys) {
    std::memcpy(bytes_.data(), kTable.data(), kTable.size());
    std::memcpy(bytes_.data() + kTable.size(), keys.partition_text.data(), RowKeys::kPartitionSize);
    bytes_[kTable.size() + RowKeys::kPartitionSize] = '\0';
    std::memcpy(bytes_.data() + kTable.size() + RowKeys::kPartitionSize + 1, keys.row_text.data(),
                RowKeys::kRowSize);
  }
  const char* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

  // The RowKey at the end of a joined key.
  static std::string_view RowOf(const char* key, size_t size) {
    return {key + size - RowKeys::kRowSize, RowKeys::kRowSize};
  }

 private:
  static constexpr std::string_view kTable = "benchtable000001";
  std::array<char, kTable.size() + RowKeys::kPartitionSize + 1 + RowKeys::kRowSize> bytes_;
};

}  // namespace partita::bench
