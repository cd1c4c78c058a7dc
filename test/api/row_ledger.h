#pragma once
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "api/partita.h"

namespace partita {

// Rows that were acknowledged, and those whose outcome is in doubt: what a table must hold.
class RowLedger {
 public:
  // Row `n` in its `generation`: PartitionKey by the hundred, a filler of `size` random letters.
  static Entity Row(uint32_t n, int32_t generation, size_t size);

  // Writes the row (unconditionally) and notes the answer. Returns it.
  WriteResult Put(const Table& table, uint32_t n, int32_t generation, size_t size);

  WriteResult Delete(const Table& table, uint32_t n);

  // "" when the table holds just this, else the first difference. Every row is read by key; with
  // `scan` also all by a scan.
  std::string Compare(const Table& table, bool scan) const;
  size_t size() const { return rows_.size(); }
  bool has_doubts() const { return !doubts_.empty(); }

 private:
  struct Version {
    int32_t generation;
    size_t size;
  };
  std::string CompareRow(uint32_t n, const Entity& found) const;

  std::map<uint32_t, Version> rows_;
  std::map<uint32_t, Version> doubts_;  // The newest in-doubt state of a row.
};

inline Entity RowLedger::Row(uint32_t n, int32_t generation, size_t size) {
  char partition[16], row[16];
  std::snprintf(partition, sizeof partition, "p%04u", n / 100);
  std::snprintf(row, sizeof row, "r%06u", n);
  std::string filler(size, ' ');
  uint64_t random = (uint64_t{n} << 32 | static_cast<uint32_t>(generation)) * 0x9E3779B97F4A7C15u + 1;
  for (char& c : filler) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    c = static_cast<char>('0' + (random >> 20) % 64);
  }
  Entity entity{std::string(partition), std::string(row)};
  entity.Set("Generation", generation).Set("Filler", filler);
  return entity;
}

inline WriteResult RowLedger::Put(const Table& table, uint32_t n, int32_t generation, size_t size) {
  WriteResult written = table.InsertOrReplace(Row(n, generation, size));
  if (written.ok()) {
    rows_[n] = Version{generation, size};
    doubts_.erase(n);
  } else if (written.status.code() == Code::kUnknown) {
    doubts_[n] = Version{generation, size};
  }
  return written;
}

// REQUIRES: its outcome is not in doubt.
inline WriteResult RowLedger::Delete(const Table& table, uint32_t n) {
  const Entity row = Row(n, 0, 0);
  WriteResult deleted = table.Delete(row.partition_key(), row.row_key());
  if (deleted.ok()) rows_.erase(n);
  return deleted;
}

inline std::string RowLedger::CompareRow(uint32_t n, const Entity& found) const {
  auto same = [&](const std::map<uint32_t, Version>& rows) {
    auto row = rows.find(n);
    if (row == rows.end()) return false;
    Entity wanted = Row(n, row->second.generation, row->second.size);
    const int32_t* generation = found.GetInt32("Generation");
    const std::string* filler = found.GetString("Filler");
    return generation != nullptr && *generation == row->second.generation && filler != nullptr &&
           *filler == *wanted.GetString("Filler");
  };
  if (same(rows_) || same(doubts_)) return "";
  return "row " + std::to_string(n) + " has other content than was acknowledged";
}

inline std::string RowLedger::Compare(const Table& table, bool scan) const {
  std::map<uint32_t, Version> all = doubts_;
  all.insert(rows_.begin(), rows_.end());
  for (const auto& [n, unused] : all) {
    Entity key = Row(n, 0, 0);
    Result<Entity> found = table.Get(key.partition_key(), key.row_key());
    if (!found.ok()) {
      if (doubts_.contains(n) && found.code() == Code::kUnknown) continue;
      if (!rows_.contains(n) && found.code() == Code::kNotFound) continue;
      return "row " + std::to_string(n) + ": " + found.status().ToString();
    }
    std::string difference = CompareRow(n, *found);
    if (!difference.empty()) return difference;
  }
  if (!scan) return "";
  size_t seen = 0;
  ScanOptions options;
  do {
    Result<Page> page = table.Scan(options);
    if (!page.ok()) return "scan: " + page.status().ToString();
    for (const Entity& entity : page->entities) {
      uint32_t n = static_cast<uint32_t>(std::stoul(entity.row_key().substr(1)));
      std::string difference = CompareRow(n, entity);
      if (!difference.empty()) return "scan: " + difference;
      if (rows_.contains(n)) ++seen;
    }
    options.continuation = page->continuation;
  } while (!options.continuation.empty());
  if (seen == rows_.size()) return "";
  return "the scan gave " + std::to_string(seen) + " rows of " + std::to_string(rows_.size());
}

}  // namespace partita
