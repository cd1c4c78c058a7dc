#include "sstable/row_places.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "engine/base/checksum.h"

namespace partita {
namespace {

uint64_t HashOf(uint64_t i) {
  return Hash64({reinterpret_cast<const char*>(&i), sizeof i}) & (UINT64_MAX >> 5);
}

TEST(RowPlacesTest, KnowsNothingUntilItIsTurnedOn) {
  RowPlaces places(1000);
  EXPECT_FALSE(places.Of(HashOf(1)));
  places.Remember(HashOf(1), 999);
  EXPECT_FALSE(places.Of(HashOf(1)));
  places.TurnOn(true);
  EXPECT_EQ(places.Of(HashOf(1)), 999u);
  EXPECT_FALSE(places.Of(HashOf(2)));
  places.TurnOn(false);
  EXPECT_FALSE(places.Of(HashOf(1)));
}

TEST(RowPlacesTest, TheNewestOfTwoThatMeetIsKnownAndTheOtherMostlyNot) {
  RowPlaces places(40);
  places.TurnOn(true);
  uint64_t known = 0, wrong = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    places.Remember(HashOf(i), i % 40);
    ASSERT_EQ(places.Of(HashOf(i)), i % 40);
    const std::optional<uint32_t> other = places.Of(HashOf(i + 100'000));
    known += other.has_value();
    if (other) wrong += *other >= 40;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_LT(known, 10u);
}

// The fewest bits are left for telling keys apart, and the greatest slot still is one.
TEST(RowPlacesTest, SlotsOfAnyNumberAreRemembered) {
  for (const uint32_t count : {1u, 2u, 3u, 63u, 64u, 65u, (1u << 20) - 1, 1u << 20}) {
    RowPlaces places(count);
    places.TurnOn(true);
    for (const uint32_t slot : {0u, count / 2, count - 1}) {
      places.Remember(HashOf(slot), slot);
      EXPECT_EQ(places.Of(HashOf(slot)), slot) << count;
    }
  }
}

}  // namespace
}  // namespace partita
