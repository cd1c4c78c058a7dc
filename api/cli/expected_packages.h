#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace partita {

// What a table must hold after the import of a package index, found out without the reader that imported
// it: the text is cut into stanzas here, and their keys come from debian_index_check.h. Views into the text,
// which outlives it.
class ExpectedPackages {
 public:
  // `bad_lines`: first lines of stanzas that the import refused; they are left out.
  static ExpectedPackages Parse(std::string_view text, const std::unordered_set<uint64_t>& bad_lines);

  // "PartitionKey|RowKey" to the stanza that the entity must equal. Sorted, so the rows of a partition
  // stand together in order.
  const std::map<std::string, std::string_view>& stanzas() const { return stanzas_; }

  // The RowKeys of a partition in order.
  std::vector<std::string> RowsOf(const std::string& partition_key) const;

  std::string LargestPartition() const;
  uint64_t partition_count() const { return partition_sizes_.size(); }

 private:
  void Add(std::string_view stanza);

  std::map<std::string, std::string_view> stanzas_;
  std::map<std::string, std::string_view> first_;  // Keys before repeated rows are told apart.
  std::map<std::string, uint64_t> partition_sizes_;
};

}  // namespace partita
