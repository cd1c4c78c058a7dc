#include "bench/lab/imported_records.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "test/lab/lab_fixture.h"

namespace partita::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ImportedRecordsTest : public LabCommandTest {
 protected:
  // What is wrong with a row that gives a time so; empty: nothing, and `ticks` is the time.
  std::vector<std::string> ProblemsOf(const std::string& number, EpochUnit unit, uint64_t* ticks) const {
    const std::string path = Write("times.csv", "at\n" + number + "\n");
    const ImportColumn column{.name = "at", .type = PropertyType::kDateTime, .epoch = unit};
    std::vector<std::string> problems;
    const auto read =
        ImportedRecords::Read(path, RowFileFormat(), {column}, ImportedRecords::kRowsMax, &problems);
    EXPECT_TRUE(read.ok()) << read.status().ToString();
    if (!read.ok() || !problems.empty()) return problems;
    std::vector<PropertyValue> values;
    (*read)->Decode(0, &values);
    *ticks = values[0].if_date_time()->ticks;
    return problems;
  }
};

TEST_F(ImportedRecordsTest, NumbersOfTimesUpToTheLastSecondAreTakenAndTheNextIsTold) {
  constexpr uint64_t kTicksAt1970 = 116'444'736'000'000'000;
  uint64_t ticks = 0;
  EXPECT_THAT(ProblemsOf("0", EpochUnit::kSeconds, &ticks), IsEmpty());
  EXPECT_EQ(ticks, kTicksAt1970);
  EXPECT_THAT(ProblemsOf("-11644473600", EpochUnit::kSeconds, &ticks), IsEmpty());
  EXPECT_EQ(ticks, 0u);
  EXPECT_THAT(ProblemsOf("253402300799", EpochUnit::kSeconds, &ticks), IsEmpty());
  EXPECT_EQ(ticks, kDateTimeTicksMax - 9'999'999);
  EXPECT_THAT(ProblemsOf("253402300799999", EpochUnit::kMilliseconds, &ticks), IsEmpty());
  EXPECT_EQ(ticks, kDateTimeTicksMax - 9'999);

  const std::pair<const char*, EpochUnit> outside[] = {{"253402300800", EpochUnit::kSeconds},
                                                       {"253402300800000", EpochUnit::kMilliseconds},
                                                       {"253402300800000000", EpochUnit::kMicroseconds},
                                                       {"1e300", EpochUnit::kSeconds},
                                                       {"-11644473601", EpochUnit::kSeconds}};
  for (const auto& [number, unit] : outside) {
    const std::vector<std::string> problems = ProblemsOf(number, unit, &ticks);
    ASSERT_EQ(problems.size(), 1u) << number;
    EXPECT_THAT(problems[0], HasSubstr("is no time of the years 1601 to 9999"));
  }
}

}  // namespace
}  // namespace partita::lab
