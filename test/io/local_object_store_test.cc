#include "engine/io/local_object_store.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/base/aligned_buffer.h"
#include "engine/io/sim_runtime.h"
#include "test/io/real_world.h"

namespace partita {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

class LocalObjectStoreTest : public RealWorldTest {
 protected:
  void SetUp() override {
    RealWorldTest::SetUp();
    if (runtime_ == nullptr) return;
    auto opened = Run(LocalObjectStore::Open(files(), IfMissing::kCreate,
                                             &runtime_->background(BackgroundClass::kTransfer)));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }

  void PutObject(ObjectId id, std::string_view content) {
    auto writer = Run(store_->Create(id));
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    // In pieces of odd sizes, so that they straddle pages and buffers.
    for (size_t at = 0, size = 1; at < content.size(); at += size, size = size * 3 + 1) {
      ASSERT_TRUE(Run((*writer)->Append(content.substr(at, size))).ok());
    }
    EXPECT_EQ((*writer)->size(), content.size());
    Status finished = Run((*writer)->Finish());
    ASSERT_TRUE(finished.ok()) << finished.ToString();
    EXPECT_EQ((*writer)->size(), content.size());
  }

  std::unique_ptr<LocalObjectStore> store_;
};
PARTITA_INSTANTIATE_CALLERS(LocalObjectStoreTest);

std::string RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

TEST_P(LocalObjectStoreTest, ObjectsOfAnyLengthAreReadBackExactly) {
  const size_t sizes[] = {0, 1, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 3 * (1 << 20) + 12345};
  uint64_t id = 1;
  for (size_t size : sizes) {
    const std::string content = RandomBytes(size, id);
    PutObject(ObjectId(id), content);
    auto reader = Run(store_->Open(ObjectId(id)));
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    EXPECT_EQ((*reader)->size(), size);
    EXPECT_EQ((*reader)->id(), ObjectId(id));
    EXPECT_EQ((*reader)->name(), ObjectPath(ObjectId(id)));
    std::string read(size, '\0');
    ASSERT_TRUE(Run((*reader)->ReadOne(0, {reinterpret_cast<uint8_t*>(read.data()), size})).ok());
    EXPECT_TRUE(read == content) << "size " << size;
    ++id;
  }
}

TEST_P(LocalObjectStoreTest, ABatchMixesAlignedUnalignedAndTailReads) {
  const std::string content = RandomBytes(100'000, 1);
  PutObject(ObjectId(1), content);
  auto reader = Run(store_->Open(ObjectId(1)));
  ASSERT_TRUE(reader.ok());
  struct Place {
    uint64_t offset;
    size_t size;
  };
  const Place places[] = {{0, 4096},    {8192, 8192},   {1, 10}, {4090, 20},
                          {99'990, 10}, {98'304, 1696}, {50, 0}};
  for (ReadCaching caching : {ReadCaching::kNormal, ReadCaching::kPastCaches}) {
    std::vector<AlignedBuffer> buffers;
    std::vector<ObjectRead> reads;
    for (const Place& place : places) {
      buffers.emplace_back(place.size + 1);
      reads.push_back({place.offset, buffers.back().span().subspan(0, place.size)});
    }
    Status status = Run((*reader)->Read(reads, caching));
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (size_t i = 0; i < std::size(places); ++i) {
      EXPECT_EQ(std::memcmp(buffers[i].data(), content.data() + places[i].offset, places[i].size), 0) << i;
    }
  }
}

TEST_P(LocalObjectStoreTest, AReadPastTheEndIsAnError) {
  PutObject(ObjectId(1), RandomBytes(10'000, 1));
  auto reader = Run(store_->Open(ObjectId(1)));
  ASSERT_TRUE(reader.ok());
  AlignedBuffer buffer(8192);
  const std::pair<uint64_t, size_t> places[] = {{8192, 4096}, {9999, 2}, {10'001, 0}, {UINT64_MAX - 1, 8}};
  for (auto [offset, size] : places) {
    Status status = Run((*reader)->ReadOne(offset, buffer.span().subspan(0, size)));
    EXPECT_EQ(status.code(), Code::kIoError) << offset;
    EXPECT_THAT(status.message(), HasSubstr("tables/000000000001.sst"));
  }
}

TEST_P(LocalObjectStoreTest, AnIdIsUsedOnceAndAMissingOneIsNotFound) {
  PutObject(ObjectId(1), "x");
  EXPECT_EQ(Run(store_->Create(ObjectId(1))).code(), Code::kAlreadyExists);
  EXPECT_EQ(Run(store_->Open(ObjectId(2))).code(), Code::kNotFound);
}

TEST_P(LocalObjectStoreTest, AnOpenReaderOutlivesRemoval) {
  const std::string content = RandomBytes(5000, 1);
  PutObject(ObjectId(1), content);
  auto reader = Run(store_->Open(ObjectId(1)));
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(Run(store_->Remove(ObjectId(1))).ok());
  EXPECT_TRUE(Run(store_->Remove(ObjectId(1))).ok());
  std::string read(5000, '\0');
  EXPECT_TRUE(Run((*reader)->ReadOne(0, {reinterpret_cast<uint8_t*>(read.data()), 5000})).ok());
  EXPECT_TRUE(read == content);
  EXPECT_EQ(Run(store_->Open(ObjectId(1))).code(), Code::kNotFound);
}

TEST_P(LocalObjectStoreTest, AnAbandonedObjectLeavesNothing) {
  auto writer = Run(store_->Create(ObjectId(1)));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(Run((*writer)->Append(RandomBytes(3 << 20, 1))).ok());
  auto abandon = [](ObjectWriter& writer) -> Task<bool> {
    co_await writer.Abandon();
    co_return true;
  };
  EXPECT_TRUE(Run(abandon(**writer)));
  EXPECT_TRUE(Run(store_->List()).value().empty());
}

TEST_P(LocalObjectStoreTest, ForeignNamesAreReportedApart) {
  PutObject(ObjectId(7), "seven");
  for (const char* name : {"tables/notes.txt", "tables/12.sst", "tables/0000000000013.sst"}) {
    ASSERT_TRUE(Run(files().Open(name, OpenMode::kCreate, FileIo::kBuffered)).ok());
  }
  auto objects = Run(store_->List());
  ASSERT_TRUE(objects.ok());
  ASSERT_EQ(objects->size(), 1u);
  EXPECT_EQ((*objects)[0].id, ObjectId(7));
  EXPECT_EQ((*objects)[0].size, 5u);
  EXPECT_THAT(Run(store_->ListForeign()).value(),
              UnorderedElementsAre("notes.txt", "12.sst", "0000000000013.sst"));
}

TEST_P(LocalObjectStoreTest, AnExpectedDirectoryIsNotCreated) {
  TempDirectory empty;
  auto files = PosixFileSystem::Open(empty.path(), BatchReads::kCallByCall);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(RunBlocking(LocalObjectStore::Open(**files, IfMissing::kFail)).code(), Code::kNotFound);
  EXPECT_FALSE(RunBlocking((*files)->Exists("tables")).value());
}

TEST(ObjectNameTest, ParsesExactlyWhatItPrints) {
  for (uint64_t id : {0ull, 1ull, 999'999'999'999ull, 1'000'000'000'000ull, ~0ull}) {
    const std::string path = ObjectPath(ObjectId(id));
    EXPECT_EQ(ParseObjectName(path.substr(path.find('/') + 1)), ObjectId(id));
  }
  EXPECT_EQ(ObjectPath(ObjectId(12)), "tables/000000000012.sst");
  for (const char* name : {"", ".sst", "12.sst", "0000000000012.sst", "00000000001x.sst", "+00000000012.sst",
                           "000000000012.sst ", "000000000012.SST", "18446744073709551616.sst",
                           "000000000012", "-00000000012.sst"}) {
    EXPECT_EQ(ParseObjectName(name), std::nullopt) << name;
  }
}

// ---- Writing behind.

struct WriteCourse {
  int finished = 0, left = 0, failed = 0;
  bool was_writing = false;   // When an Append had returned.
  bool was_flushing = false;  // When a BeginFinish had.
};

// Objects of all sizes, each either there as it was written, or abandoned without a trace.
Task<void> WriteObjects(SimRuntime& runtime, uint64_t seed, WriteCourse* out) {
  auto store = co_await LocalObjectStore::Open(runtime.files(), IfMissing::kCreate,
                                               &runtime.background(BackgroundClass::kTransfer));
  std::mt19937_64 random(seed);
  std::vector<std::pair<ObjectId, std::string>> kept;
  for (uint64_t id = 1; id <= 12; ++id) {
    const std::string content = RandomBytes(random() % (3u << 20), seed * 100 + id);
    auto writer = co_await (*store)->Create(ObjectId(id));
    EXPECT_TRUE(writer.ok());
    Status written;
    for (size_t at = 0; written.ok() && at < content.size();) {
      const size_t size = std::min<size_t>(1 + random() % 400'000, content.size() - at);
      written = co_await (*writer)->Append(std::string_view(content).substr(at, size));
      at += size;
      out->was_writing |= runtime.operations_in_flight() > 0;
    }
    if (written.ok() && random() % 2 == 0) {
      written = co_await (*writer)->BeginFinish();
      if (written.ok()) EXPECT_EQ((*writer)->size(), content.size());
      out->was_flushing |= runtime.operations_in_flight() > 0;
    }
    const bool leave = random() % 4 == 0;
    if (written.ok() && !leave) written = co_await (*writer)->Finish();
    if (written.ok() && !leave) {
      kept.emplace_back(ObjectId(id), content);
      continue;
    }
    if (!written.ok()) {  // Whoever overlooks it hears of it again.
      EXPECT_EQ((co_await (*writer)->Append("more")).code(), written.code());
      EXPECT_EQ((co_await (*writer)->Finish()).code(), written.code());
    }
    co_await (*writer)->Abandon();
    ++(written.ok() ? out->left : out->failed);
  }
  auto listed = co_await (*store)->List();
  EXPECT_EQ(listed.value().size(), kept.size());
  for (const auto& [id, content] : kept) {
    auto reader = co_await (*store)->Open(id);
    EXPECT_EQ((*reader)->size(), content.size());
    std::string read(content.size(), '\0');
    EXPECT_TRUE(
        (co_await (*reader)->ReadOne(0, {reinterpret_cast<uint8_t*>(read.data()), read.size()})).ok());
    EXPECT_TRUE(read == content);
    ++out->finished;
  }
}

// covers: F22 F24 F25 F62
TEST(WriteBehindTest, AnObjectIsWrittenWhileItGrowsAndAFailureIsToldBeforeItIsFinished) {
  for (SimEffect effect : {SimEffect::kSlow, SimEffect::kShort, SimEffect::kError}) {
    WriteCourse course;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      SimDisk disk(seed);
      SimRuntime runtime({.seed = seed}, disk);
      SimFault fault{.effect = effect, .operations = SimOps(SimOp::kWrite)};
      if (effect != SimEffect::kShort) fault.operations |= SimOps(SimOp::kFlush, SimOp::kFlushDirectory);
      fault.path_prefix = kObjectDirectory;
      fault.probability = 0.05;
      fault.delay_ns = 20'000'000;
      runtime.AddFault(fault);
      runtime.Run(WriteObjects(runtime, seed, &course));
    }
    EXPECT_TRUE(course.was_writing);
    EXPECT_TRUE(course.was_flushing);
    EXPECT_GT(course.finished, 8);
    EXPECT_EQ(course.finished + course.left + course.failed, 4 * 12);
    EXPECT_EQ(course.failed > 0, effect == SimEffect::kError);
  }
}

}  // namespace
}  // namespace partita
