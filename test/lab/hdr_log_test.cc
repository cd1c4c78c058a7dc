#include "bench/lab/hdr_log.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <sstream>

#include "bench/lab/draw.h"
#include "bench/lab/result_text.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Reads big-endian numbers and counts, as HdrHistogram's own readers do.
class BigEndian {
 public:
  explicit BigEndian(std::string bytes) : bytes_(std::move(bytes)) {}
  uint64_t Number(size_t size) {
    uint64_t number = 0;
    for (size_t i = 0; i < size; ++i) number = number << 8 | Byte();
    return number;
  }
  // ZigZag LEB128, whose ninth byte has eight bits.
  int64_t Count() {
    uint64_t code = 0;
    for (int shift = 0;; shift += 7) {
      const uint64_t byte = Byte();
      code |= (shift == 56 ? byte : byte & 0x7F) << shift;
      if (shift == 56 || byte < 0x80) break;
    }
    return static_cast<int64_t>(code >> 1) ^ -static_cast<int64_t>(code & 1);
  }
  size_t left() const { return bytes_.size() - at_; }
  std::string Rest() const { return bytes_.substr(at_); }

 private:
  uint64_t Byte() {
    EXPECT_LT(at_, bytes_.size());
    return at_ < bytes_.size() ? static_cast<unsigned char>(bytes_[at_++]) : 0;
  }
  std::string bytes_;
  size_t at_ = 0;
};

// Each bucket's largest value, and its count.
using Counts = std::map<uint64_t, uint64_t>;

Counts Decode(const std::string& base64) {
  std::string bytes(base64.size(), '\0');
  const int decoded =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(base64.data()), static_cast<int>(base64.size()));
  EXPECT_GT(decoded, 8);
  BigEndian outer(bytes.substr(0, static_cast<size_t>(std::max(decoded, 0))));
  EXPECT_EQ(outer.Number(4), 0x1C849314u);
  const uint64_t size = outer.Number(4);
  EXPECT_LE(outer.left() - size, 2u) << "base64 fills up to three bytes";
  std::string inflated(1 << 20, '\0');
  uLongf inflated_size = inflated.size();
  const std::string deflated = outer.Rest();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(inflated.data()), &inflated_size,
                       reinterpret_cast<const Bytef*>(deflated.data()), size),
            Z_OK);
  BigEndian inner(inflated.substr(0, inflated_size));
  EXPECT_EQ(inner.Number(4), 0x1C849313u);
  EXPECT_EQ(inner.Number(4), inflated_size - 40);
  EXPECT_EQ(inner.Number(4), 0u);
  const uint64_t digits = inner.Number(4), lowest = inner.Number(8), highest = inner.Number(8);
  EXPECT_EQ(lowest, 1u);
  EXPECT_GT(highest, uint64_t{3'600'000'000'000});
  EXPECT_EQ(inner.Number(8), 0x3FF0000000000000u) << "1.0";
  // As many buckets to a power of two as tell `digits` digits apart.
  uint64_t buckets = 1;
  while (buckets < 2 * static_cast<uint64_t>(std::pow(10, digits))) buckets *= 2;
  Counts counts;
  uint64_t index = 0;
  while (inner.left() > 0) {
    const int64_t count = inner.Count();
    if (count < 0) {
      index += static_cast<uint64_t>(-count);
      continue;
    }
    const uint64_t half = buckets / 2;
    const uint64_t power = index < buckets ? 0 : index / half - 1;
    const uint64_t sub = index < buckets ? index : index % half + half;
    if (count > 0) counts[((sub + 1) << power) - 1] += static_cast<uint64_t>(count);
    ++index;
  }
  return counts;
}

uint64_t PercentileOf(const Counts& counts, double fraction) {
  uint64_t all = 0, seen = 0;
  for (const auto& [value, count] : counts) all += count;
  for (const auto& [value, count] : counts) {
    seen += count;
    if (static_cast<double>(seen) >= fraction * static_cast<double>(all)) return value;
  }
  return 0;
}

TEST(HdrLogTest, AReaderOfTheFormatFindsEveryCountWhereItWas) {
  Draw draw(1, 2);
  bench::Histogram histogram;
  for (int i = 0; i < 100'000; ++i) {
    histogram.Record(static_cast<uint64_t>(1e5 * std::exp(2 * draw.Normal())));
  }
  for (const uint64_t value : {0ull, 1ull, 63ull, 64ull, 255ull, 256ull, 3'000'000'000'000ull}) {
    histogram.Record(value);
  }
  const Counts counts = Decode(HdrBase64(histogram));
  uint64_t all = 0;
  for (const auto& [value, count] : counts) all += count;
  EXPECT_EQ(all, histogram.count());
  for (const double fraction : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto told = static_cast<double>(histogram.Percentile(fraction));
    EXPECT_NEAR(static_cast<double>(PercentileOf(counts, fraction)), told, told / 100 + 1) << fraction;
  }
  EXPECT_EQ(counts.at(0), 1u);
  EXPECT_EQ(counts.at(1), 1u);
}

TEST(HdrLogTest, LongRunsOfEmptyBucketsAndLargeCountsKeepTheirPlace) {
  bench::Histogram histogram;
  for (int i = 0; i < 300'000; ++i) histogram.Record(100);
  histogram.Record(60'000'000'000);
  const Counts counts = Decode(HdrBase64(histogram));
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_EQ(counts.at(100), 300'000u);
  EXPECT_NEAR(static_cast<double>(counts.rbegin()->first), 60e9, 60e9 / 100);
}

TEST(HdrLogTest, ALineForEachCellAndOperationThatCompletedSomething) {
  Experiment experiment;
  experiment.arrival.rates = {1000};
  experiment.arrival.warmup_s = 2;
  experiment.layouts.resize(1);
  experiment.layouts[0].name = "by day, hashed";
  experiment.ops.resize(2);
  experiment.ops[0].name = "read";
  experiment.ops[1].name = "none";
  RunResult result;
  for (const double at : {1'000.5, 1'010.0}) {
    CellFigures cell{.started_unix_s = at, .measured_s = 5};
    cell.ops.resize(2);
    cell.ops[0].latency.Record(7'500'000);
    result.cells.push_back(cell);
  }
  const std::string log = HdrLog(experiment, result);
  EXPECT_THAT(log, HasSubstr("#[Histogram log format version 1.3]\n#[StartTime: 1000.500 (seconds"));
  EXPECT_THAT(log, HasSubstr("\nTag=by_day__hashed/constant_1000/s/0/read,2.000,5.000,7.500,H"));
  EXPECT_THAT(log, HasSubstr("/read,11.500,5.000,7.500,"));
  EXPECT_THAT(log, Not(HasSubstr("none")));
  std::istringstream lines(log.substr(log.find("Tag=")));
  for (std::string line; std::getline(lines, line);) {
    const Counts counts = Decode(line.substr(line.rfind(',') + 1));
    ASSERT_EQ(counts.size(), 1u);
    EXPECT_NEAR(static_cast<double>(counts.begin()->first), 7.5e6, 7.5e4);
  }
}

TEST(HeatCsvTest, TellsEachRowOfKeysOverTime) {
  Experiment experiment;
  experiment.arrival.rates = {10};
  experiment.layouts.resize(1);
  experiment.layouts[0].name = "one";
  RunResult result;
  result.key_rows = {{"a", "m, n"}};
  CellFigures cell{.repeat = 1};
  cell.timeline = Timeline(5, 2);  // Columns of a tenth of a second.
  cell.timeline.Touched(0.05, {.rows = {0, 0}, .entities = 3});
  cell.timeline.Touched(0.25, {.rows = {1, 1}, .entities = 0, .refused = 2});
  result.cells.push_back(cell);
  EXPECT_EQ(HeatCsv(experiment, result),
            "layout,rate,repeat,second,seconds,row,first_key,entities,refused\n"
            "one,constant 10/s,1,0,0.1,0,a,3,0\n"
            "one,constant 10/s,1,0.2,0.1,1,\"m, n\",0,2\n");
}

TEST(SummaryCsvTest, CountsHaveAllOfTheirDigits) {
  Experiment experiment;
  experiment.arrival.rates = {10};
  experiment.layouts.resize(1);
  experiment.ops.resize(1);
  RunResult result;
  result.prediction.layouts.resize(1);
  CellFigures cell{.ops = {{.operations = 3'000'127, .failed = 1'234'567}}, .measured_s = 3};
  result.cells.push_back(cell);
  const std::string summary = SummaryCsv(experiment, result);
  EXPECT_THAT(summary, AllOf(HasSubstr(",3000127,"), HasSubstr(",1234567,")));
}

}  // namespace
}  // namespace partita::lab
