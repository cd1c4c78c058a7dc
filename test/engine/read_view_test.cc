#include "engine/read_view.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace partita {
namespace {

using Guard = ReadViewPublisher::Guard;

class ReadViewPublisherTest : public testing::Test {
 protected:
  ReadViewPublisherTest() { Publish(); }
  void Publish() { views_.Publish(std::make_unique<ReadView>()); }

  int told_ = 0;
  ReadViewPublisher views_{[this] { ++told_; }};
};

TEST_F(ReadViewPublisherTest, AViewThatNobodyHasGoesWithTheNext) {
  Publish();
  EXPECT_EQ(views_.retired_count(), 0u);
  EXPECT_EQ(told_, 0);
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

}  // namespace
}  // namespace partita
