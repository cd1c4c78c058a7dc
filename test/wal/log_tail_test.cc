#include "wal/log_tail.h"

#include <gtest/gtest.h>

#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "engine/base/coding.h"
#include "test/support/forwarding_files.h"
#include "test/wal/log_harness.h"

// covers: F25

namespace partita {
namespace {

constexpr uint64_t kTailSize = 64 << 10;

Task<void> MakeTail(FileSystem& files, Status* status) {
  *status = co_await files.CreateDirectory("log");
  if (status->ok()) *status = co_await files.FlushDirectory("");
  if (!status->ok()) co_return;
  const LogIdentity owner{kTestStore, kTestShard};
  auto tail = co_await LogTail::Open(files, "log", owner, Incarnation{1}, kTailSize, /*must_exist=*/false);
  *status = tail.status();
}

// A log that says it has a tail is damaged without one.
TEST(LogTailTest, ATailThatWasMadeIsThereAfterALossOfPower) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    {
      SimRuntime runtime({.seed = seed}, disk);
      Status made;
      runtime.Run(MakeTail(runtime.files(), &made));
      ASSERT_TRUE(made.ok()) << made.ToString();
    }
    const std::vector<std::string> names = disk.ListFiles("log");
    ASSERT_EQ(names.size(), 1u);
    disk.CrashPower();
    ASSERT_EQ(disk.ListFiles("log"), names) << "seed " << seed;
    EXPECT_EQ(disk.ReadFile(names[0])->size(), kTailSize);
  }
}

// Whose mapping takes nothing while the disk is full.
class FullMapping final : public SharedMapping {
 public:
  FullMapping(std::unique_ptr<SharedMapping> mapping, const bool& is_full)
      : mapping_(std::move(mapping)), is_full_(is_full) {}
  std::span<uint8_t> bytes() override { return mapping_->bytes(); }
  Status Stored(uint64_t offset, uint64_t size) override {
    return is_full_ ? Status::NoSpace("full") : mapping_->Stored(offset, size);
  }

 private:
  std::unique_ptr<SharedMapping> mapping_;
  const bool& is_full_;
};

class FullFiles final : public ForwardingFiles {
 public:
  using ForwardingFiles::ForwardingFiles;
  Result<std::unique_ptr<SharedMapping>> Map(std::string_view path, uint64_t size) override {
    PARTITA_ASSIGN(std::unique_ptr<SharedMapping> mapping, ForwardingFiles::Map(path, size));
    return std::unique_ptr<SharedMapping>(std::make_unique<FullMapping>(std::move(mapping), is_full));
  }
  bool is_full = false;
};

Task<void> FillTail(FullFiles& files, std::vector<LogPosition>* read) {
  const LogIdentity owner{kTestStore, kTestShard};
  EXPECT_TRUE((co_await files.CreateDirectory("log")).ok());
  auto tail = co_await LogTail::Open(files, "log", owner, Incarnation{1}, kTailSize, /*must_exist=*/false);
  EXPECT_TRUE(tail.ok());
  const std::string payload(100, 'p');
  const auto append = [&](uint64_t position) {
    const LogRecord record{LogPosition(position), Version(position), payload};
    return (*tail)->Append({&record, 1}, LogPosition(0));
  };
  EXPECT_TRUE(append(1).ok());
  files.is_full = true;
  EXPECT_EQ(append(2).code(), Code::kNoSpace);
  EXPECT_EQ((*tail)->end(), LogPosition(1));
  files.is_full = false;
  EXPECT_TRUE(append(2).ok());
  EXPECT_EQ((*tail)->end(), LogPosition(2));
  for (const auto& [position, record] : (*tail)->ReadAll(Incarnation{1})) read->push_back(position);
}

// covers: F54
TEST(LogTailTest, ARecordForWhichThereIsNoSpaceIsNotInTheTailAndMayComeAgain) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  FullFiles files(runtime.files());
  std::vector<LogPosition> read;
  runtime.Run(FillTail(files, &read));
  EXPECT_EQ(read, (std::vector<LogPosition>{LogPosition(1), LogPosition(2)}));
}

// ---- Behind a bad record.

constexpr uint64_t kHalfSize = kTailSize / 2;

// A payload of so many headers of records that are none, of a size whose content would be looked at.
std::string LookAlikes(size_t count) {
  std::string payload;
  for (size_t i = 0; i < count; ++i) {
    std::string record(kTailRecordHeaderSize, 'h');
    EncodeTailRecord({kTestStore, kTestShard}, Incarnation{1}, 0, {LogPosition(9), Version(9), ""},
                     std::span(reinterpret_cast<uint8_t*>(record.data()), record.size()));
    StoreLe32(record.data() + 12, kHalfSize / 2);  // Payload size; the seal is of another.
    payload += record;
  }
  return payload;
}

// In one half a record, one with the payload, and one more; then one in the other half.
Task<void> FillBothHalves(FileSystem& files, std::string payload) {
  const LogIdentity owner{kTestStore, kTestShard};
  EXPECT_TRUE((co_await files.CreateDirectory("log")).ok());
  auto tail = co_await LogTail::Open(files, "log", owner, Incarnation{1}, kTailSize, /*must_exist=*/false);
  EXPECT_TRUE(tail.ok());
  const std::string small(100, 'p'), large(kHalfSize / 2, 'p');
  const std::string_view payloads[] = {small, payload, small, large};
  for (uint64_t position = 1; position <= std::size(payloads); ++position) {
    const LogRecord record{LogPosition(position), Version(position), payloads[position - 1]};
    EXPECT_TRUE((*tail)->Append({&record, 1}, LogPosition(0)).ok());
  }
}

Task<void> ReadTail(FileSystem& files, std::vector<uint64_t>* read) {
  const LogIdentity owner{kTestStore, kTestShard};
  auto tail = co_await LogTail::OpenForReading(files, "log", owner, /*must_exist=*/true);
  EXPECT_TRUE(tail.ok());
  for (const auto& [position, record] : (*tail)->ReadAll(Incarnation{1})) read->push_back(position.value);
}

// What rows hold may look like the headers of records, of which each would have all behind it hashed.
TEST(LogTailTest, BehindABadRecordTheNextIsFoundUnlessTooMuchLooksLikeOne) {
  const auto read_behind = [](size_t look_alikes) {
    SimDisk disk(1);
    SimRuntime runtime({.seed = 1}, disk);
    // It is full as far as the last record does not find room.
    std::string payload = LookAlikes(look_alikes);
    payload.resize(kHalfSize / 2 + 1000, 'p');
    runtime.Run(FillBothHalves(runtime.files(), std::move(payload)));
    disk.FlipBit("log/tail", TailRecordSize(100) + 2, 1);  // Of the second one's seal.
    std::vector<uint64_t> read;
    runtime.Run(ReadTail(runtime.files(), &read));
    return read;
  };
  EXPECT_EQ(read_behind(0), (std::vector<uint64_t>{1, 3, 4}));
  EXPECT_EQ(read_behind(5), (std::vector<uint64_t>{1, 3, 4}));
  EXPECT_EQ(read_behind(50), (std::vector<uint64_t>{1, 4}));
}

}  // namespace
}  // namespace partita
