#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "sstable/level_iterator.h"
#include "test/sstable/table_fixture.h"

namespace partita {

// Tables, and cursors over them, for tests of what is read ahead.

inline constexpr ObjectId kTable{3};  // The first one; others have the next numbers.
inline constexpr size_t kPoolBytes = 8 << 20;
inline constexpr size_t kTables = 5;  // Where a level has several.

// About 3 MiB in blocks of 4 KiB, with more index blocks than one.
inline std::vector<OwnedEntry> ManyEntries(uint64_t seed, int count = 6000) {
  std::mt19937_64 random(seed);
  std::vector<OwnedEntry> entries;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(100'000 + i);
    entries.push_back(Put(Key("p", number), 7, RandomBytes(random, 300 + random() % 400)));
  }
  return entries;
}

inline Task<Status> WriteOn(ObjectStore& store, std::span<const OwnedEntry> entries, ObjectId id = kTable) {
  TableWriterOptions options;
  options.store = kTestStore;
  options.id = id;
  options.block_size = 4096;
  auto created = co_await TableWriter::Create(store, std::move(options));
  if (!created.ok()) co_return created.status();
  for (const OwnedEntry& entry : entries) {
    PARTITA_CO_TRY((*created)->Add(entry.view()));
    if ((*created)->NeedsDrain()) PARTITA_CO_TRY(co_await (*created)->Drain());
  }
  Result<TableInfo> info = co_await (*created)->Finish();
  co_return info.status();
}

// Into so many tables, one behind the other.
inline Task<Status> WriteOn(ObjectStore& store, const std::vector<OwnedEntry>& entries, size_t tables) {
  const size_t share = entries.size() / tables + 1;
  for (size_t i = 0; i < tables; ++i) {
    const size_t begin = i * share;
    const auto part = std::span(entries).subspan(begin, std::min(share, entries.size() - begin));
    PARTITA_CO_TRY(co_await WriteOn(store, part, ObjectId(kTable.value + i)));
  }
  co_return Status();
}

inline Task<Result<std::vector<FileRef>>> OpenAll(ObjectStore& store, BlockCache& cache, size_t tables) {
  std::vector<FileRef> files;
  for (size_t i = 0; i < tables; ++i) {
    auto opened = co_await TableReader::Open(store, cache, kTestStore, ObjectId(kTable.value + i));
    if (!opened.ok()) co_return opened.status();
    FileRef file;
    file.table = *opened;
    file.info = (*opened)->info();
    files.push_back(std::move(file));
  }
  co_return files;
}

// Over one table, or over several as a level has them.
inline std::unique_ptr<EntryIterator> CursorOver(const std::vector<FileRef>& files, Direction direction,
                                                 const IterOptions& options) {
  if (files.size() == 1) return NewFileIterator(files[0], direction, options);
  std::vector<const FileRef*> within;
  for (const FileRef& file : files) {
    if (file.OverlapsBounds(options.lower, options.upper)) within.push_back(&file);
  }
  return std::make_unique<LevelIterator>(std::move(within), direction, options);
}

inline Task<Status> ReadAll(EntryIterator& it, IterState state, size_t limit, std::vector<OwnedEntry>* out) {
  while (state != IterState::kEnd && out->size() < limit) {
    if (state == IterState::kNeedsIo) {
      PARTITA_CO_TRY(co_await it.Fetch());
      state = it.state();
      continue;
    }
    out->push_back(Copy(it.entry()));
    state = it.Next();
  }
  co_return Status();
}

}  // namespace partita
