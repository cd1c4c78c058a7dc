#include "wal/log_tail.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace partita
