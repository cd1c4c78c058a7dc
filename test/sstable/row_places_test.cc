#include "sstable/row_places.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "engine/base/checksum.h"

namespace partita {
namespace {

uint64_t PlaceHash(uint64_t i) {
  return Hash64({reinterpret_cast<const char*>(&i), sizeof i}) & (UINT64_MAX >> 5);
}

TEST(RowPlacesTest, KnowsNothingUntilItIsTurnedOn) {
  RowPlaces places(1000);
  EXPECT_FALSE(places.Of(PlaceHash(1)));
  places.Remember(PlaceHash(1), 999);
  EXPECT_FALSE(places.Of(PlaceHash(1)));
  places.TurnOn(true);
  EXPECT_EQ(places.Of(PlaceHash(1)), 999u);
  EXPECT_FALSE(places.Of(PlaceHash(2)));
  places.TurnOn(false);
  EXPECT_FALSE(places.Of(PlaceHash(1)));
}

TEST(RowPlacesTest, TheNewestOfTwoThatMeetIsKnownAndTheOtherMostlyNot) {
  RowPlaces places(40);
  places.TurnOn(true);
  uint64_t known = 0, wrong = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    places.Remember(PlaceHash(i), i % 40);
    ASSERT_EQ(places.Of(PlaceHash(i)), i % 40);
    const std::optional<uint32_t> other = places.Of(PlaceHash(i + 100'000));
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
      places.Remember(PlaceHash(slot), slot);
      EXPECT_EQ(places.Of(PlaceHash(slot)), slot) << count;
    }
  }
}

}  // namespace
}  // namespace partita
