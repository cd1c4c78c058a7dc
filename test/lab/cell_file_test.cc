#include "bench/lab/cell_file.h"

#include <gtest/gtest.h>

#include "bench/lab/draw.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"

namespace partita::lab {
namespace {

CellFigures SomeCell() {
  Draw draw(7, 7);
  CellFigures cell{.layout = 2, .rate = 1, .repeat = 3};
  for (int op = 0; op < 3; ++op) {
    OpFigures figures{.operations = draw.Next(), .completed = 5, .throttled = 1, .bytes = draw.Next()};
    for (int i = 0; i < 500; ++i) {
      figures.latency.Record(draw.Below(1u << (i % 31)));
      figures.service.Record(draw.Below(1'000'000));
    }
    figures.first_error = op == 1 ? "IoError: gone" : "";
    cell.ops.push_back(figures);
  }
  cell.seconds = {{.due = 100, .completed = 40, .throttled = 40, .ended = 40, .latency_max_ns = 9},
                  {.due = 0, .completed = 50, .throttled = 50, .ended = 60}};
  cell.timeline = Timeline(3, 4);
  for (int i = 0; i < 200; ++i) {
    cell.timeline.Due(0.01 * i);
    cell.timeline.Completed(0.012 * i, draw.Below(1'000'000'000));
    cell.timeline.Touched(0.012 * i, {.rows = {0, 3}, .entities = 0.7 * i, .refused = 1});
  }
  cell.started_unix_s = 1.75e9 + 0.123456;
  cell.measured_s = 2.000001;
  cell.late_starts = 4;
  cell.on_time_possible = 1'000;
  return cell;
}

TEST(CellFileTest, GivesBackWhatWasPutIn) {
  const CellFigures cell = SomeCell();
  const std::string bytes = EncodeCell(cell, 42);
  const Result<CellFigures> read = DecodeCell(bytes, 42);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(EncodeCell(*read, 42), bytes);
  EXPECT_EQ(read->layout, 2u);
  EXPECT_EQ(read->started_unix_s, cell.started_unix_s);
  ASSERT_EQ(read->ops.size(), 3u);
  EXPECT_EQ(read->ops[1].first_error, "IoError: gone");
  for (const double fraction : {0.0, 0.5, 0.99, 1.0}) {
    EXPECT_EQ(read->ops[2].latency.Percentile(fraction), cell.ops[2].latency.Percentile(fraction));
    EXPECT_EQ(read->ops[2].service.Percentile(fraction), cell.ops[2].service.Percentile(fraction));
  }
  EXPECT_EQ(read->ops[0].latency.mean(), cell.ops[0].latency.mean());
  EXPECT_EQ(read->ops[0].latency.min(), cell.ops[0].latency.min());
  ASSERT_EQ(read->timeline.columns().size(), cell.timeline.columns().size());
  EXPECT_EQ(read->timeline.columns()[5].entities, cell.timeline.columns()[5].entities);
  EXPECT_EQ(read->timeline.columns()[5].latencies.counts, cell.timeline.columns()[5].latencies.counts);
}

TEST(CellFileTest, WhatIsDamagedCutOrOfAnotherRunIsNoCell) {
  const std::string bytes = EncodeCell(SomeCell(), 42);
  EXPECT_EQ(DecodeCell(bytes, 43).code(), Code::kCorruption);
  for (size_t size = 0; size < bytes.size(); size += 97) {
    EXPECT_EQ(DecodeCell(bytes.substr(0, size), 42).code(), Code::kCorruption) << size;
  }
  for (size_t at = 0; at < bytes.size(); at += 101) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(DecodeCell(damaged, 42).ok()) << at;
  }
}

TEST(CellFileTest, NoBytesUnderARightSealAreMoreThanTheyHold) {
  const std::string bytes = EncodeCell(SomeCell(), 42);
  const std::string_view content(bytes.data(), bytes.size() - 8);
  // Sizes of lists among them: what is claimed is checked before it is made.
  for (size_t at = 17; at < std::min<size_t>(content.size(), 4'000); ++at) {
    std::string forged(content);
    forged[at] = '\x7f';
    const uint64_t seal = Hash64(forged);
    forged.append(reinterpret_cast<const char*>(&seal), sizeof(seal));
    const Result<CellFigures> read = DecodeCell(forged, 42);  // Any answer but a crash.
    if (!read.ok()) EXPECT_EQ(read.code(), Code::kCorruption) << at;
  }
}

// One would take 40 KiB for each byte.
TEST(CellFileTest, FiguresOfOperationsThatDoNotFitTheFileAreNotMade) {
  constexpr uint64_t kClaimed = 10'000'000;
  CellFigures cell;
  std::string forged = EncodeCell(cell, 42);
  // Magic, format and run; layout, rate, repeat; two doubles; late and possible starts; no operations.
  const size_t at = 17 + 3 + 16 + 2;
  ASSERT_EQ(forged[at], 0);
  std::string count;
  AppendVarint(&count, kClaimed);
  forged = forged.substr(0, at) + count + std::string(2 * kClaimed, '\0');
  AppendLe64(&forged, Hash64(forged));
  EXPECT_EQ(DecodeCell(forged, 42).code(), Code::kCorruption);
}

}  // namespace
}  // namespace partita::lab
