// The local stores under crashes and failures at every step, on the simulator: a meta value is the
// old one or the new one, complete, and an object whose Finish returned ok is there whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "engine/io/local_meta_store.h"
#include "engine/io/local_object_store.h"
#include "engine/io/meta_format.h"
#include "engine/io/sim_runtime.h"

// covers: F15 F20 F23 F25 F28 F29
namespace partita {
namespace {

constexpr StoreId kCrashedStore{77};
constexpr uint64_t kSwaps = 3;

enum class Crash { kPower, kProcess };

void CrashDisk(SimDisk& disk, Crash crash) {
  if (crash == Crash::kPower) {
    disk.CrashPower();
  } else {
    disk.CrashProcess();
  }
}

// Some sectors long, and another length each time.
std::string ValueOf(uint64_t generation) {
  return std::string(1000 * generation + 500, static_cast<char>('a' + generation));
}

// What the process that crashed had begun, and what it had been told.
struct Swapped {
  uint64_t begun = 0;
  uint64_t acknowledged = 0;
};

Task<void> SwapSome(FileSystem& files, Swapped* swapped) {
  auto store = co_await LocalMetaStore::Open(files, kCrashedStore, IfMissing::kCreate);
  if (!store.ok()) co_return;
  for (uint64_t generation = 1; generation <= kSwaps; ++generation) {
    const std::string value = ValueOf(generation);
    swapped->begun = generation;
    auto result = co_await (*store)->CompareAndSwap("m", generation - 1, value);
    if (!result.ok()) co_return;
    swapped->acknowledged = generation;
  }
}

// The generation that a new process finds, with its right value; 0 when there is none, nullopt
// after a failed expectation.
std::optional<uint64_t> FindGeneration(SimDisk& disk, uint64_t seed) {
  SimRuntime runtime({.seed = seed}, disk);
  auto store = runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), kCrashedStore, IfMissing::kCreate));
  EXPECT_TRUE(store.ok()) << store.status().ToString();
  if (!store.ok()) return std::nullopt;
  auto value = runtime.RunToEnd((*store)->Get("m"));
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  if (!value.ok()) return std::nullopt;
  if (!value->has_value()) return 0;
  EXPECT_EQ((*value)->bytes, ValueOf((*value)->generation));
  return (*value)->generation;
}

void ExpectTheStoreGoesOn(SimDisk& disk, uint64_t seed, uint64_t generation) {
  SimRuntime runtime({.seed = seed}, disk);
  auto store = runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), kCrashedStore, IfMissing::kCreate));
  ASSERT_TRUE(store.ok());
  auto swapped = runtime.RunToEnd((*store)->CompareAndSwap("m", generation, "next"));
  ASSERT_TRUE(swapped.ok()) << swapped.status().ToString();
  EXPECT_EQ(*swapped, generation + 1);
  EXPECT_EQ(disk.ListFiles("meta"), std::vector<std::string>{"meta/m"});  // No leftovers.
}

// One run that crashes at operation `number`; false when the run was over before.
bool CrashSwapsAt(uint64_t seed, uint64_t number, SimCrashMoment moment, Crash crash) {
  SimDisk disk(seed);
  Swapped swapped;
  bool crashed;
  {
    SimRuntime runtime({.seed = seed}, disk);
    runtime.CrashAtOperation(number, moment);
    runtime.Run(SwapSome(runtime.files(), &swapped));
    crashed = runtime.crashed();
  }
  CrashDisk(disk, crash);
  const std::optional<uint64_t> found = FindGeneration(disk, seed + 1);
  if (!found.has_value()) return false;
  EXPECT_GE(*found, swapped.acknowledged);
  EXPECT_LE(*found, swapped.begun);
  // What a read has shown no later power loss takes back (F15, F29).
  disk.CrashPower();
  EXPECT_EQ(FindGeneration(disk, seed + 2), found);
  ExpectTheStoreGoesOn(disk, seed + 3, *found);
  return crashed;
}

TEST(LocalMetaStoreCrashTest, ACrashAtAnyStepLeavesTheOldValueOrTheNewOne) {
  uint64_t crashes = 0;
  for (uint64_t seed = 100; seed < 108; ++seed) {
    for (SimCrashMoment moment : {SimCrashMoment::kBefore, SimCrashMoment::kAfter}) {
      for (Crash crash : {Crash::kPower, Crash::kProcess}) {
        for (uint64_t number = 1; CrashSwapsAt(seed, number, moment, crash); ++number) {
          ++crashes;
          if (HasFailure()) FAIL() << "seed " << seed << ", operation " << number;
        }
      }
    }
  }
  EXPECT_GT(crashes, 8u * 4 * 10);  // The loops did crash.
}

// Fails the operation `number` of a second swap, asks what is there, and cuts the power.
bool FailSwapAt(uint64_t seed, uint64_t number, Code code) {
  SimDisk disk(seed);
  bool hit = false;
  uint64_t shown = 0;
  {
    SimRuntime runtime({.seed = seed}, disk);
    auto store = runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), kCrashedStore, IfMissing::kCreate));
    EXPECT_TRUE(store.ok() && runtime.RunToEnd((*store)->CompareAndSwap("m", 0, ValueOf(1))).ok());
    const uint64_t first = runtime.operations_begun() + number;
    const size_t fault = runtime.AddFault({.first_operation = first, .last_operation = first, .code = code});
    auto swapped = runtime.RunToEnd((*store)->CompareAndSwap("m", 1, ValueOf(2)));
    hit = runtime.FaultHits(fault) > 0;
    runtime.RemoveFault(fault);
    auto value = runtime.RunToEnd((*store)->Get("m"));
    EXPECT_TRUE(value.ok() && value->has_value()) << value.status().ToString();
    if (!value.ok() || !value->has_value()) return false;
    shown = (*value)->generation;
    EXPECT_EQ((*value)->bytes, ValueOf(shown));
    if (swapped.ok()) {
      EXPECT_EQ(shown, 2u);
    } else if (swapped.code() != Code::kUnknown) {
      EXPECT_EQ(shown, 1u) << swapped.status().ToString();
    }
  }
  disk.CrashPower();
  EXPECT_EQ(FindGeneration(disk, seed + 1), shown);
  return hit;
}

TEST(LocalMetaStoreCrashTest, AFailureAtAnyStepIsSettledByTheNextRead) {
  uint64_t failures = 0;
  for (uint64_t seed = 200; seed < 240; ++seed) {
    for (Code code : {Code::kIoError, Code::kNoSpace}) {
      for (uint64_t number = 1; FailSwapAt(seed, number, code); ++number) {
        ++failures;
        if (HasFailure()) FAIL() << "seed " << seed << ", operation " << number;
      }
    }
  }
  EXPECT_GE(failures, 40u * 2 * 4);
}

Task<void> CopyIn(FileSystem& files, std::string content, Status* status) {
  auto file = co_await files.Open("meta/m", OpenMode::kCreate, FileIo::kBuffered);
  if (!file.ok()) {
    *status = file.status();
    co_return;
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(content.data());
  *status = co_await (*file)->WriteAt(0, std::span(bytes, content.size()));
  if (status->ok()) *status = co_await files.FlushDirectory("meta");
}

// A file that a copying tool left in the kernel's cache, F29: what was answered is there for good.
TEST(LocalMetaStoreCrashTest, WhatWasCopiedInAndReadSurvivesALossOfPower) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SimDisk disk(seed);
    {
      SimRuntime runtime({.seed = seed}, disk);
      auto store = runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), kCrashedStore, IfMissing::kCreate));
      ASSERT_TRUE(store.ok());
      Status copied;
      runtime.Run(CopyIn(runtime.files(), EncodeMeta("m", kCrashedStore, 1, "copied"), &copied));
      ASSERT_TRUE(copied.ok()) << copied.ToString();
      ASSERT_EQ(runtime.RunToEnd((*store)->Get("m")).value()->bytes, "copied");
    }
    disk.CrashPower();
    SimRuntime runtime({.seed = seed + 1000}, disk);
    auto store = runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), kCrashedStore, IfMissing::kFail));
    ASSERT_TRUE(store.ok());
    auto found = runtime.RunToEnd((*store)->Get("m"));
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    ASSERT_TRUE(found->has_value()) << "seed " << seed;
    EXPECT_EQ((*found)->bytes, "copied");
  }
}

TEST(LocalMetaStoreCrashTest, AFailedDirectoryFlushIsInDoubt) {
  SimDisk disk(1);
  SimRuntime runtime({.seed = 1}, disk);
  auto store = runtime.RunToEnd(LocalMetaStore::Open(runtime.files(), kCrashedStore, IfMissing::kCreate));
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(runtime.RunToEnd((*store)->CompareAndSwap("m", 0, "one")).ok());
  runtime.AddFault({.operations = SimOps(SimOp::kFlushDirectory), .count = 1});
  EXPECT_EQ(runtime.RunToEnd((*store)->CompareAndSwap("m", 1, "two")).code(), Code::kUnknown);
  // What is found is written anew under a new name: a later success of the flush that failed would
  // prove nothing (F20).
  const uint64_t renames = disk.operation_count(SimOp::kRename);
  EXPECT_EQ(runtime.RunToEnd((*store)->Get("m")).value()->bytes, "two");
  EXPECT_EQ(disk.operation_count(SimOp::kRename), renames + 1);
  EXPECT_EQ(runtime.RunToEnd((*store)->Get("m")).value()->bytes, "two");
  EXPECT_EQ(disk.operation_count(SimOp::kRename), renames + 1);
  // A swap in doubt goes by what it finds.
  EXPECT_EQ(runtime.RunToEnd((*store)->CompareAndSwap("m", 1, "other two")).code(),
            Code::kPreconditionFailed);
  EXPECT_EQ(runtime.RunToEnd((*store)->CompareAndSwap("m", 2, "three")).value(), 3u);

  runtime.AddFault({.operations = SimOps(SimOp::kFlushDirectory), .count = 1});
  EXPECT_EQ(runtime.RunToEnd((*store)->Remove("m")).code(), Code::kUnknown);
  EXPECT_FALSE(runtime.RunToEnd((*store)->Get("m")).value().has_value());
}

// More than a buffer, not a whole number of pages.
std::string ObjectContent() {
  std::string content;
  for (uint32_t i = 0; content.size() < (1 << 20) + 1234; ++i) content += std::to_string(i) + ",";
  return content;
}

Task<void> WriteObject(SimRuntime& runtime, const std::string& content, bool* finished) {
  auto store = co_await LocalObjectStore::Open(runtime.files(), IfMissing::kCreate,
                                               &runtime.background(BackgroundClass::kTransfer));
  if (!store.ok()) co_return;
  auto writer = co_await (*store)->Create(ObjectId(5));
  if (!writer.ok()) co_return;
  Status status = co_await (*writer)->Append(content);
  if (status.ok()) status = co_await (*writer)->Finish();
  *finished = status.ok();
  if (!status.ok()) co_await (*writer)->Abandon();
}

void ExpectObject(SimRuntime& runtime, LocalObjectStore& store, const std::string& content) {
  auto reader = runtime.RunToEnd(store.Open(ObjectId(5)));
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  ASSERT_EQ((*reader)->size(), content.size());
  std::string read(content.size(), '\0');
  Status status =
      runtime.RunToEnd((*reader)->ReadOne(0, {reinterpret_cast<uint8_t*>(read.data()), read.size()}));
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(read == content);
}

// After a crash: a finished object is whole, an unfinished one is no obstacle.
void ExpectAfterCrash(SimDisk& disk, uint64_t seed, const std::string& content, bool finished) {
  SimRuntime runtime({.seed = seed}, disk);
  auto store = runtime.RunToEnd(LocalObjectStore::Open(runtime.files(), IfMissing::kCreate));
  ASSERT_TRUE(store.ok());
  if (finished) ExpectObject(runtime, **store, content);
  EXPECT_TRUE(runtime.RunToEnd((*store)->ListForeign()).value().empty());
  ASSERT_TRUE(runtime.RunToEnd((*store)->Remove(ObjectId(5))).ok());
  bool written = false;
  runtime.Run(WriteObject(runtime, content, &written));
  EXPECT_TRUE(written);
  ExpectObject(runtime, **store, content);
}

TEST(LocalObjectStoreCrashTest, AFinishedObjectSurvivesACrashAtAnyStep) {
  const std::string content = ObjectContent();
  uint64_t crashes = 0, finished_count = 0;
  for (uint64_t seed = 300; seed < 302; ++seed) {
    for (SimCrashMoment moment : {SimCrashMoment::kBefore, SimCrashMoment::kAfter}) {
      bool crashed = true;
      for (uint64_t number = 1; crashed; ++number) {
        SimDisk disk(seed);
        bool finished = false;
        {
          SimRuntime runtime({.seed = seed}, disk);
          runtime.CrashAtOperation(number, moment);
          runtime.Run(WriteObject(runtime, content, &finished));
          crashed = runtime.crashed();
        }
        disk.CrashPower();
        ExpectAfterCrash(disk, seed + 1, content, finished);
        if (HasFailure()) FAIL() << "seed " << seed << ", operation " << number;
        ++crashes;
        finished_count += finished;
      }
    }
  }
  EXPECT_GT(crashes, 2u * 2 * 6);
  EXPECT_GE(finished_count, 2u * 2);
}

TEST(LocalObjectStoreCrashTest, AFailureAtAnyStepOfWritingIsReported) {
  const std::string content = ObjectContent();
  for (uint64_t seed = 400; seed < 404; ++seed) {
    bool hit = true;
    for (uint64_t number = 1; hit; ++number) {
      SimDisk disk(seed);
      bool finished = false;
      {
        SimRuntime runtime({.seed = seed}, disk);
        const size_t fault =
            runtime.AddFault({.first_operation = number, .last_operation = number, .code = Code::kNoSpace});
        runtime.Run(WriteObject(runtime, content, &finished));
        hit = runtime.FaultHits(fault) > 0;
        EXPECT_EQ(finished, !hit);
        // Nothing of an abandoned object is left.
        if (hit) EXPECT_TRUE(disk.ListFiles("tables").empty());
      }
      disk.CrashPower();
      ExpectAfterCrash(disk, seed + 1, content, finished);
      if (HasFailure()) FAIL() << "seed " << seed << ", operation " << number;
    }
  }
}

}  // namespace
}  // namespace partita
