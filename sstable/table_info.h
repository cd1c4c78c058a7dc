#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/coding.h"
#include "engine/base/ids.h"

namespace partita {

// What is known of a table file without opening it; manifests repeat it.
struct TableInfo {
  ObjectId id;
  uint64_t file_size = 0;
  uint64_t entry_count = 0;  // Puts and tombstones; a full read must find as many (F47).
  uint64_t tombstone_count = 0;
  uint64_t raw_bytes = 0;  // User keys and stored values, before any encoding.
  std::string smallest;    // First user key.
  std::string largest;     // Last user key.
  Version version_min;
  Version version_max;  // At least that of each entry (TableWriterOptions::counts_as).

  friend bool operator==(const TableInfo&, const TableInfo&) = default;
};

// One that all references to a file have in common: thousands of ranges may refer to it. A value: equal to
// another with the same content, and replaced, never changed.
class SharedTableInfo {
 public:
  SharedTableInfo();
  SharedTableInfo(TableInfo info) : info_(std::make_shared<const TableInfo>(std::move(info))) {}

  const TableInfo& operator*() const { return *info_; }
  const TableInfo* operator->() const { return info_.get(); }

  friend bool operator==(const SharedTableInfo& a, const SharedTableInfo& b) {
    return a.info_ == b.info_ || *a == *b;
  }

 private:
  std::shared_ptr<const TableInfo> info_;
};

// A table info as bytes, part of larger formats (properties of a table, manifest edits):
//
//   varint id, file_size, entry_count, tombstone_count, raw_bytes
//   bytes  smallest, largest        (varint length, then the bytes)
//   varint version_min, version_max
void AppendTableInfo(std::string* out, const TableInfo& info);
// reader->ok() is false afterwards when the bytes were short.
TableInfo ReadTableInfo(ByteReader* reader);

}  // namespace partita
