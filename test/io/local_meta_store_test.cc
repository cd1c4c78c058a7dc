#include "engine/io/local_meta_store.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <fstream>

#include "engine/io/meta_format.h"
#include "test/io/real_world.h"

namespace partita {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr StoreId kStore{77};

class LocalMetaStoreTest : public RealWorldTest {
 protected:
  void SetUp() override {
    RealWorldTest::SetUp();
    if (runtime_ != nullptr) Reopen(kStore);
  }
  void Reopen(StoreId store) {
    auto opened = Run(LocalMetaStore::Open(files(), store, IfMissing::kCreate));
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    store_ = std::move(opened).value();
  }
  void WriteMetaFile(const std::string& name, std::string_view content) {
    std::ofstream(directory_.path() + "/meta/" + name, std::ios::binary) << content;
  }
  std::vector<std::string> MetaFiles() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/meta")) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::unique_ptr<LocalMetaStore> store_;
};
PARTITA_INSTANTIATE_CALLERS(LocalMetaStoreTest);

TEST_P(LocalMetaStoreTest, ASwapReplacesTheValueAndRaisesTheGeneration) {
  EXPECT_FALSE(Run(store_->Get("catalog")).value().has_value());
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 0, "one")).value(), 1u);
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 1, "two")).value(), 2u);
  Reopen(kStore);
  auto value = Run(store_->Get("catalog"));
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ((*value)->bytes, "two");
  EXPECT_EQ((*value)->generation, 2u);
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 2, "")).value(), 3u);
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "");
  EXPECT_THAT(MetaFiles(), UnorderedElementsAre("catalog"));
}

TEST_P(LocalMetaStoreTest, ASwapThatWasPreparedIsTheSameSwap) {
  ASSERT_TRUE(Run(store_->CompareAndSwap("catalog", 0, "one")).ok());
  ASSERT_TRUE(Run(store_->PrepareSwap("catalog", 1, "two")).ok());
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "one");
  EXPECT_THAT(MetaFiles(), UnorderedElementsAre("catalog", "catalog.new-2"));
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 1, "two")).value(), 2u);
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "two");
  EXPECT_THAT(MetaFiles(), UnorderedElementsAre("catalog"));
  EXPECT_EQ(Run(store_->PrepareSwap("catalog", 1, "late")).code(), Code::kPreconditionFailed);
}

TEST_P(LocalMetaStoreTest, WhatWasPreparedMayNeverCome) {
  ASSERT_TRUE(Run(store_->CompareAndSwap("catalog", 0, "one")).ok());
  ASSERT_TRUE(Run(store_->PrepareSwap("catalog", 1, "given up")).ok());
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 1, "two")).value(), 2u);
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "two");
  ASSERT_TRUE(Run(store_->PrepareSwap("catalog", 2, "left by a life that ended")).ok());
  Reopen(kStore);
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "two");
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 2, "left by a life that ended")).value(), 3u);
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "left by a life that ended");
  ASSERT_TRUE(Run(store_->PrepareSwap("catalog", 3, "four")).ok());
  ASSERT_TRUE(Run(store_->Remove("catalog")).ok());
  EXPECT_EQ(Run(store_->CompareAndSwap("catalog", 0, "four")).value(), 1u);
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "four");
  EXPECT_THAT(MetaFiles(), UnorderedElementsAre("catalog"));
}

TEST_P(LocalMetaStoreTest, AnotherGenerationThanExpectedIsRefused) {
  EXPECT_EQ(Run(store_->CompareAndSwap("m", 1, "x")).code(), Code::kPreconditionFailed);
  ASSERT_TRUE(Run(store_->CompareAndSwap("m", 0, "x")).ok());
  auto refused = Run(store_->CompareAndSwap("m", 0, "y"));
  EXPECT_EQ(refused.code(), Code::kPreconditionFailed);
  EXPECT_THAT(refused.status().message(), HasSubstr("\"m\" has generation 1, expected 0"));
  EXPECT_EQ(Run(store_->Get("m")).value()->bytes, "x");
}

TEST_P(LocalMetaStoreTest, ARemovedKeyIsAbsentAndCanComeBack) {
  EXPECT_TRUE(Run(store_->Remove("m")).ok());
  ASSERT_TRUE(Run(store_->CompareAndSwap("m", 0, "x")).ok());
  ASSERT_TRUE(Run(store_->Remove("m")).ok());
  EXPECT_FALSE(Run(store_->Get("m")).value().has_value());
  EXPECT_TRUE(Run(store_->List()).value().empty());
  EXPECT_EQ(Run(store_->CompareAndSwap("m", 0, "y")).value(), 1u);
}

TEST_P(LocalMetaStoreTest, ListNamesKeysOnly) {
  ASSERT_TRUE(Run(store_->CompareAndSwap("a-1", 0, "x")).ok());
  ASSERT_TRUE(Run(store_->CompareAndSwap("b", 0, "x")).ok());
  WriteMetaFile("b.new-2", "half a value");
  WriteMetaFile("README", "not ours");
  EXPECT_THAT(Run(store_->List()).value(), UnorderedElementsAre("a-1", "b"));
}

TEST_P(LocalMetaStoreTest, BadKeysAreRefused) {
  for (const std::string& key : {std::string(), std::string("A"), std::string("a/b"), std::string(".."),
                                 std::string("a.new-1"), std::string(65, 'a')}) {
    EXPECT_EQ(Run(store_->Get(key)).code(), Code::kInvalidArgument) << key;
    EXPECT_EQ(Run(store_->CompareAndSwap(key, 0, "x")).code(), Code::kInvalidArgument) << key;
    EXPECT_EQ(Run(store_->Remove(key)).code(), Code::kInvalidArgument) << key;
  }
}

TEST_P(LocalMetaStoreTest, LeftoversOfADeadProcessAreRemovedByTheNextSwap) {
  ASSERT_TRUE(Run(store_->CompareAndSwap("m", 0, "one")).ok());
  WriteMetaFile("m.new-2", "half");
  WriteMetaFile("m.new-9", "");
  WriteMetaFile("mm.new-2", "another key's");
  Reopen(kStore);
  ASSERT_EQ(Run(store_->CompareAndSwap("m", 1, "two")).value(), 2u);
  EXPECT_THAT(MetaFiles(), UnorderedElementsAre("m", "mm.new-2"));
  EXPECT_EQ(Run(store_->Get("m")).value()->bytes, "two");
}

// covers: F43 F80
TEST_P(LocalMetaStoreTest, DamageIsReportedAndNeverReplaced) {
  ASSERT_TRUE(Run(store_->CompareAndSwap("m", 0, "value")).ok());
  std::string bytes = EncodeMeta("m", kStore, 1, "value");
  bytes.back() ^= 1;
  WriteMetaFile("m", bytes);
  Reopen(kStore);
  auto damaged = Run(store_->Get("m"));
  ASSERT_EQ(damaged.code(), Code::kCorruption);
  EXPECT_THAT(damaged.status().message(), HasSubstr("\"meta/m\", offset 32"));
  EXPECT_EQ(Run(store_->CompareAndSwap("m", 0, "new")).code(), Code::kCorruption);
  EXPECT_EQ(Run(store_->CompareAndSwap("m", 1, "new")).code(), Code::kCorruption);
  WriteMetaFile("m", "");
  EXPECT_EQ(Run(store_->Get("m")).code(), Code::kCorruption);
}

// covers: F66
TEST_P(LocalMetaStoreTest, AnotherStoresValueIsNamedForeign) {
  ASSERT_TRUE(Run(store_->CompareAndSwap("m", 0, "value")).ok());
  Reopen(StoreId(0xabc));
  auto foreign = Run(store_->Get("m"));
  ASSERT_EQ(foreign.code(), Code::kCorruption);
  EXPECT_THAT(foreign.status().message(),
              HasSubstr("belongs to store 000000000000004d, expected store 0000000000000abc"));
}

TEST_P(LocalMetaStoreTest, TheStoresIdIsReadFromTheCatalog) {
  EXPECT_EQ(Run(ReadStoreId(files())).value(), std::nullopt);
  ASSERT_TRUE(Run(store_->CompareAndSwap("catalog", 0, "x")).ok());
  EXPECT_EQ(Run(ReadStoreId(files())).value(), kStore);
  Reopen(StoreId());  // Not known: any store's values can be read.
  EXPECT_EQ(Run(store_->Get("catalog")).value()->bytes, "x");
  WriteMetaFile("catalog", "garbage");
  EXPECT_EQ(Run(ReadStoreId(files())).code(), Code::kCorruption);
}

TEST_P(LocalMetaStoreTest, OfManyConcurrentSwapsExactlyOneWins) {
  constexpr int kSwaps = 8;
  std::vector<Code> codes(kSwaps);
  auto swap = [](MetaStore& store, int i, Code* out) -> Task<void> {
    const std::string value = std::to_string(i);
    auto result = co_await store.CompareAndSwap("m", 0, value);
    *out = result.code();
  };
  TaskGroup group;
  for (int i = 0; i < kSwaps; ++i) {
    Executor& executor =
        i % 2 == 0 ? runtime_->shard_executor(ShardId(0)) : runtime_->background(BackgroundClass::kOrdinary);
    group.Spawn(executor, swap(*store_, i, &codes[i]));
  }
  RunBlocking(group.Join());
  EXPECT_EQ(std::count(codes.begin(), codes.end(), Code::kOk), 1);
  EXPECT_EQ(std::count(codes.begin(), codes.end(), Code::kPreconditionFailed), kSwaps - 1);
}

TEST_P(LocalMetaStoreTest, AValueOfSomeMegabytesIsKept) {
  const std::string big(5 << 20, 'b');
  ASSERT_TRUE(Run(store_->CompareAndSwap("m", 0, big)).ok());
  Reopen(kStore);
  EXPECT_TRUE(Run(store_->Get("m")).value()->bytes == big);
}

}  // namespace
}  // namespace partita
