#include "engine/read_view.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "engine/base/executor.h"
#include "engine/strand.h"

namespace partita {
namespace {

using Guard = ReadViewPublisher::Guard;

class ReadViewPublisherTest : public testing::Test {
 protected:
  ReadViewPublisherTest() { Publish(); }
  void Publish() { views_.Publish(std::make_unique<ReadView>()); }

  std::atomic<int> told_{0};
  ReadViewPublisher views_{[this] { ++told_; }};
};

TEST_F(ReadViewPublisherTest, AViewThatNobodyHasGoesWithTheNext) {
  Publish();
  EXPECT_EQ(views_.retired_count(), 0u);
  EXPECT_EQ(told_, 0);
}

// Others wait for the strand: what takes a system call and frees whole memtables is done when it is left.
TEST_F(ReadViewPublisherTest, NothingIsFreedOnTheStrand) {
  Strand strand;
  size_t retired_on_strand = 0;
  std::function<void()> show = [&] {
    views_.Show(std::make_unique<ReadView>());
    retired_on_strand = views_.retired_count();
  };
  RunBlocking(OnStrand(strand, std::move(show)));
  EXPECT_EQ(retired_on_strand, 1u);
  views_.Reclaim();
  EXPECT_EQ(views_.retired_count(), 0u);

  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(RunBlocking(OnStrand(strand, [this] { Publish(); })), "AnyHeldByThisThread");
}

// A point read that clears its slot says nothing to anybody: without the word its view, with all its
// memtables and files, would stay until there is a next one.
TEST_F(ReadViewPublisherTest, SomebodyIsToldOfAViewThatStaysForAPointRead) {
  {
    const Guard reading(views_);
    Publish();
    EXPECT_EQ(told_, 1);
    views_.Reclaim();
    EXPECT_EQ(told_, 2) << "as long as it stays";
    EXPECT_EQ(views_.retired_count(), 1u);
  }
  views_.Reclaim();
  EXPECT_EQ(views_.retired_count(), 0u);
  EXPECT_EQ(told_, 2);
}

TEST_F(ReadViewPublisherTest, TheLastPinTakesARetiredViewAlong) {
  ViewPin first = views_.Pin(), second = views_.Pin();
  Publish();
  first.Release();
  EXPECT_EQ(views_.retired_count(), 1u);
  second.Release();
  EXPECT_EQ(views_.retired_count(), 0u);
  EXPECT_EQ(told_, 0);
}

TEST_F(ReadViewPublisherTest, APinKnowsWhetherThereIsANewerView) {
  const ViewPin pin = views_.Pin();
  EXPECT_TRUE(views_.IsCurrent(*pin));
  Publish();
  EXPECT_FALSE(views_.IsCurrent(*pin));
}

class ReadViewThreadsTest : public ReadViewPublisherTest {};

// Whoever goes last takes a retired view along, or somebody is told of it. ThreadSanitizer runs this too.
TEST_F(ReadViewThreadsTest, NoViewIsLostAndNoneGoesUnderAReader) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!ends.load()) {
        { const Guard looking(views_); }
        const ViewPin first = views_.Pin(), second = views_.Pin();
        EXPECT_TRUE(first && second);
      }
    });
  }
  for (int i = 0; i < 3'000; ++i) {
    const int told = told_.load();
    Publish();
    if (told_.load() != told) views_.Reclaim();  // As its owner does a little later.
  }
  ends.store(true);
  for (std::thread& reader : readers) reader.join();
  if (views_.retired_count() > 0) {
    EXPECT_GT(told_.load(), 0);
    views_.Reclaim();
  }
  EXPECT_EQ(views_.retired_count(), 0u);
}

// Of tables see the store's tests. An older memtable may become a table before this one does.
TEST(ReadViewTest, AMemtableLiesOnOlderOnesThatHaveKeysOfItsSpan) {
  ChunkPool pool(4u << 20);
  std::vector<std::shared_ptr<Memtable>> memtables;
  for (const char* keys : {"ad", "ef", "bc"}) {
    memtables.push_back(std::make_shared<Memtable>(pool));
    ASSERT_TRUE(memtables.back()->Reserve(2));
    for (size_t i = 0; i < 2; ++i) {
      memtables.back()->Insert({std::string_view(keys + i, 1), Version(1), EntryKind::kPut, {}});
    }
  }
  const std::shared_ptr<Memtable>& wide = memtables[0];
  const std::shared_ptr<Memtable>& apart = memtables[1];
  const std::shared_ptr<Memtable>& within = memtables[2];
  ReadView view;
  view.frozen = {{wide, LogPosition(2)}, {apart, LogPosition(1)}};
  EXPECT_TRUE(view.LiesOnNothing(*wide));
  view.frozen = {{within, LogPosition(3)}, {wide, LogPosition(2)}, {apart, LogPosition(1)}};
  EXPECT_FALSE(view.LiesOnNothing(*within));
  EXPECT_TRUE(view.LiesOnNothing(*wide)) << "what is newer lies on it";
  EXPECT_TRUE(view.LiesOnNothing(*apart));
}

}  // namespace
}  // namespace partita
