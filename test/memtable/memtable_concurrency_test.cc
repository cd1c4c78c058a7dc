// One writer and readers on real threads. Runs under ThreadSanitizer too.
//
// Operation i writes version i + 1 of a key, with the value "i"; two of three write a new key, the
// third a new version of an earlier one. `published` counts the operations that have happened, so
// a reader that loads p knows exactly what it must see: everything below p, and with
// at_most = Version(p) nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <set>
#include <thread>

#include "engine/base/user_key.h"
#include "memtable/memtable.h"
#include "memtable/memtable_iterator.h"
#include "test/memtable/memtable_fixture.h"

namespace partita {
namespace {

#if defined(__has_feature) && __has_feature(thread_sanitizer)
constexpr size_t kOperations = 12'000;
#else
constexpr size_t kOperations = 60'000;
#endif

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

enum class Pattern { kRandom, kRising, kFalling, kPartitions };

std::string NewKey(Pattern pattern, uint64_t i, uint64_t seed) {
  char text[40];
  const uint64_t number = pattern == Pattern::kRandom    ? Mix(seed + i)
                          : pattern == Pattern::kFalling ? kOperations - i
                                                         : i;
  std::snprintf(text, sizeof text, "row-%020llu", static_cast<unsigned long long>(number));
  // In the last pattern rows rise within each of some partitions, so splits happen everywhere.
  const std::string partition = pattern == Pattern::kPartitions ? std::to_string(Mix(i) % 20) : "p";
  return EncodeUserKey(TableId(1), partition, text);
}

struct Workload {
  std::vector<std::string> keys;  // Of operation i.

  Workload(Pattern pattern, uint64_t seed) {
    for (uint64_t i = 0; i < kOperations; ++i) {
      keys.push_back(i % 3 == 2 ? keys[Mix(seed ^ i) % i] : NewKey(pattern, i, seed));
    }
  }
};

size_t OperationOf(std::string_view value) {
  size_t operation = kOperations;
  std::from_chars(value.data(), value.data() + value.size(), operation);
  return operation;
}

struct Shared {  // What the threads of one run share.
  const Workload& workload;
  Memtable& memtable;
  std::atomic<size_t> published{0};
  std::atomic<uint64_t> errors{0};
  std::atomic<uint64_t> reads{0};
  std::atomic<uint64_t> marked{0};  // Entries that scans met after point reads.

  bool done() const { return published.load(std::memory_order_acquire) == kOperations; }
  void Check(bool condition) {
    if (!condition) errors.fetch_add(1);
  }
};

void Write(Shared& shared) {
  for (size_t i = 0; i < kOperations; ++i) {
    if (i % 100 == 0 && !shared.memtable.Reserve(100)) {
      shared.Check(false);
      shared.published.store(kOperations);
      return;
    }
    shared.memtable.Insert({shared.workload.keys[i], Version(i + 1), EntryKind::kPut,
                            Place(shared.memtable.arena(), std::to_string(i))});
    shared.published.store(i + 1, std::memory_order_release);
  }
}

void ReadPoints(Shared& shared, uint64_t seed) {
  for (uint64_t n = 0; !shared.done() || n < 1000; ++n) {
    const size_t published = shared.published.load(std::memory_order_acquire);
    if (published == 0) continue;
    const size_t wanted = Mix(seed + n) % published;
    const std::string& key = shared.workload.keys[wanted];
    const Lookup newest = shared.memtable.Get(key, kVersionMax);
    shared.Check(newest.state == LookupState::kFound);
    shared.Check(newest.version >= Version(wanted + 1));
    const size_t operation = OperationOf(newest.value);
    shared.Check(newest.version == Version(operation + 1));
    shared.Check(operation < kOperations && shared.workload.keys[operation] == key);
    // Exactly this version is there for a reader that asks as of it.
    const Lookup exact = shared.memtable.Get(key, Version(wanted + 1));
    shared.Check(exact.version == Version(wanted + 1) && OperationOf(exact.value) == wanted);
    // What was seen once does not go away.
    shared.Check(shared.memtable.Get(key, kVersionMax).version >= newest.version);
    shared.Check(shared.memtable.Get(key + "!", kVersionMax).state == LookupState::kAbsent);
    shared.reads.fetch_add(1, std::memory_order_relaxed);
  }
}

bool InOrder(Direction direction, const Seen& before, const Entry& now) {
  const int order = before.key.compare(now.user_key);
  if (order == 0) return before.version > now.version.value;
  return direction == Direction::kForward ? order < 0 : order > 0;
}

// One whole scan; `bounded`: as of what is published when it begins.
void ScanOnce(Shared& shared, Direction direction, bool bounded) {
  const size_t published = shared.published.load(std::memory_order_acquire);
  auto it = std::make_unique<MemtableIterator>(shared.memtable, direction,
                                               bounded ? Version(published) : kVersionMax);
  std::vector<bool> seen(kOperations, false);
  size_t entries = 0;
  Seen before{"", 0, EntryKind::kPut, ""};
  for (IterState state = it->SeekToFirst(); state == IterState::kEntry; state = it->Next()) {
    const Entry& entry = it->entry();
    if (entries > 0) shared.Check(InOrder(direction, before, entry));
    before = {std::string(entry.user_key), entry.version.value, entry.kind, ""};
    const size_t operation = OperationOf(entry.value);
    shared.Check(operation < kOperations && !seen[operation]);
    if (operation < kOperations) {
      seen[operation] = true;
      shared.Check(entry.user_key == shared.workload.keys[operation]);
    }
    if (it->was_read()) shared.marked.fetch_add(1, std::memory_order_relaxed);
    ++entries;
  }
  for (size_t i = 0; i < published; ++i) shared.Check(seen[i]);
  if (bounded) shared.Check(entries == published);
  shared.reads.fetch_add(1, std::memory_order_relaxed);
}

void Scan(Shared& shared, Direction direction) {
  for (int n = 0; !shared.done() || n < 3; ++n) ScanOnce(shared, direction, n % 2 == 0);
}

class MemtableConcurrencyTest : public ::testing::TestWithParam<Pattern> {};

TEST_P(MemtableConcurrencyTest, ReadersSeeEveryInsertThatHappenedBeforeAndNothingTwice) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(seed);
  const Workload workload(GetParam(), seed);
  ChunkPool pool(64 * kMiB);
  Memtable memtable(pool);
  Shared shared{workload, memtable};
  std::vector<std::thread> threads;
  threads.emplace_back([&] { ReadPoints(shared, seed); });
  threads.emplace_back([&] { Scan(shared, Direction::kForward); });
  threads.emplace_back([&] { Scan(shared, Direction::kBackward); });
  threads.emplace_back([&] { Write(shared); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared.errors.load(), 0u);
  EXPECT_GE(shared.reads.load(), 1006u);
  EXPECT_GT(shared.marked.load(), 0u);
  EXPECT_EQ(memtable.entry_count(), kOperations);
  memtable.CheckInvariants();
}

INSTANTIATE_TEST_SUITE_P(Patterns, MemtableConcurrencyTest,
                         ::testing::Values(Pattern::kRandom, Pattern::kRising, Pattern::kFalling,
                                           Pattern::kPartitions));

// An iterator that rests in the middle while its leaf and the neighbours split many times goes on
// rightly. Deterministic: the same thread writes.
TEST(MemtableScanTest, SplitsUnderARestingIteratorLoseAndRepeatNothing) {
  for (Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (size_t rest_at : {size_t{0}, size_t{1}, size_t{40}, size_t{200}, size_t{399}}) {
      ChunkPool pool(16 * kMiB);
      Memtable memtable(pool);
      auto key_of = [](size_t i, size_t between) {
        char text[32];
        std::snprintf(text, sizeof text, "%06zu-%06zu", i, between);
        return std::string(text);
      };
      for (size_t i = 0; i < 400; ++i) Put(memtable, key_of(i, 0), 1, "first");
      auto it = memtable.NewIterator(direction);
      IterState state = it->SeekToFirst();
      std::vector<std::string> first;
      std::set<std::string> all;
      auto take = [&] {
        EXPECT_TRUE(all.insert(std::string(it->entry().user_key)).second);
        if (it->entry().value == "first") first.emplace_back(it->entry().user_key);
        state = it->Next();
      };
      for (size_t n = 0; n < rest_at; ++n) take();
      for (size_t i = 0; i < 400; ++i) {
        for (size_t n = 1; n <= 20; ++n) Put(memtable, key_of(i, n), 2, "later");
      }
      while (state == IterState::kEntry) take();
      ASSERT_EQ(first.size(), 400u) << "rested at " << rest_at;
      if (direction == Direction::kBackward) std::reverse(first.begin(), first.end());
      for (size_t i = 0; i < 400; ++i) EXPECT_EQ(first[i], key_of(i, 0));
    }
  }
}

}  // namespace
}  // namespace partita
