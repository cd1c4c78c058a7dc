#include "api/cli/heat_png.h"

#include <algorithm>
#include <cmath>

#include "api/date_time.h"

namespace partita {

namespace {

constexpr uint32_t kLetter = PngImage::kLetterWidth, kLine = PngImage::kLetterHeight;
constexpr uint32_t kMargin = 8;
constexpr uint32_t kLabelLetters = 24;
constexpr uint32_t kPlotWidth = 800;  // About, and at least a pixel a column.
constexpr uint32_t kRowHeight = 16;
constexpr uint32_t kTick = 6;
constexpr uint32_t kTicksApart = 160;
constexpr uint32_t kScaleWidth = 480;
constexpr uint32_t kScaleHeight = 16;

constexpr uint8_t kInk = 1, kCold = 2;    // 0 is the paper.
constexpr uint32_t kShadesPainted = 240;  // From kCold on.
constexpr double kPowersPainted = 3;

// Each stop is brighter than the one before.
constexpr std::array<PngImage::Colour, 6> kStops = {
    {{0, 0, 0}, {20, 20, 90}, {90, 20, 140}, {200, 30, 90}, {250, 130, 30}, {255, 250, 210}}};

std::vector<PngImage::Colour> Palette() {
  std::vector<PngImage::Colour> palette = {{255, 255, 255}, {34, 34, 34}};
  for (uint32_t shade = 0; shade < kShadesPainted; ++shade) {
    const double at = static_cast<double>(shade) / (kShadesPainted - 1) * (kStops.size() - 1);
    const size_t stop = std::min<size_t>(static_cast<size_t>(at), kStops.size() - 2);
    const double part = at - static_cast<double>(stop);
    PngImage::Colour colour{};
    for (size_t i = 0; i < colour.size(); ++i) {
      const double from = kStops[stop][i], to = kStops[stop + 1][i];
      colour[i] = static_cast<uint8_t>(std::lround(from + part * (to - from)));
    }
    palette.push_back(colour);
  }
  return palette;
}

// Nothing is black; the least that is something is not.
uint8_t ColourOf(double value, double hottest) {
  if (value <= 0 || hottest <= 0) return kCold;
  const double level = std::clamp(1 + std::log10(value / hottest) / kPowersPainted, 0.06, 1.0);
  return static_cast<uint8_t>(kCold + std::lround(level * (kShadesPainted - 1)));
}

std::string Shortened(std::string text) {
  if (text.size() <= kLabelLetters) return text;
  text.resize(kLabelLetters - 1);
  return text + "~";
}

void DrawCells(const HeatPicture& picture, const HeatImageLayout& at, size_t metric, double hottest,
               PngImage* image) {
  for (uint32_t row = 0; row < picture.buckets.size(); ++row) {
    const uint32_t y = at.top + row * at.cell_height;
    const HeatBucket& bucket = picture.buckets[row];
    const std::string label = bucket.table.empty() ? "(first)" : bucket.table + " " + bucket.partition_key;
    image->DrawText(kMargin, y + 1, Shortened(label), kInk);
    for (uint32_t column = 0; column < picture.columns; ++column) {
      image->FillRectangle(at.left + column * at.cell_width, y, at.cell_width, at.cell_height,
                           ColourOf(picture.at(column, row)[metric], hottest));
    }
  }
}

void DrawTimes(const HeatPicture& picture, const HeatImageLayout& at, PngImage* image) {
  const uint32_t y = at.top + at.height;
  const uint32_t step = std::max<uint32_t>(1, kTicksApart / at.cell_width);
  for (uint32_t column = 0; column < picture.columns; column += step) {
    const uint64_t ticks = picture.begin_ticks + uint64_t{column} * picture.column_seconds * 10'000'000;
    std::string time = FormatDateTime(DateTime{ticks}).substr(5, 14);  // "11-22T19:05:00"
    if (picture.column_seconds < 60) {
      time = time.substr(6);
    } else {
      time = time.substr(0, 11);
    }
    std::replace(time.begin(), time.end(), 'T', ' ');
    const uint32_t x = at.left + column * at.cell_width;
    image->FillRectangle(x, y, 2, kTick, kInk);
    image->DrawText(x, y + kTick + 2, time, kInk);
  }
}

void DrawScale(const HeatImageLayout& at, HeatMetric metric, double hottest, uint32_t y, PngImage* image) {
  for (uint32_t x = 0; x < kScaleWidth; ++x) {
    image->FillRectangle(at.left + x, y, 1, kScaleHeight,
                         static_cast<uint8_t>(kCold + x * (kShadesPainted - 1) / (kScaleWidth - 1)));
  }
  for (uint32_t power = 0; power <= 3; ++power) {
    const uint32_t x = at.left + kScaleWidth * power / 3;
    image->FillRectangle(x, y + kScaleHeight, 2, kTick, kInk);
    image->DrawText(x, y + kScaleHeight + kTick + 2, HeatRate(metric, hottest / std::pow(10, 3 - power)),
                    kInk);
  }
  image->DrawText(kMargin, y + 1, "coolest to hottest cell", kInk);
}

}  // namespace

HeatImageLayout::HeatImageLayout(const HeatPicture& picture)
    : left(2 * kMargin + kLabelLetters * kLetter),
      top(kMargin + 2 * kLine),
      cell_width(std::max<uint32_t>(1, kPlotWidth / std::max<uint32_t>(1, picture.columns))),
      cell_height(kRowHeight),
      width(cell_width * picture.columns),
      height(cell_height * static_cast<uint32_t>(picture.buckets.size())) {}

PngImage HeatImage(const HeatReport& report, HeatMetric metric) {
  const HeatPicture& picture = report.picture;
  const size_t index = static_cast<size_t>(metric);
  double hottest = 0;
  for (const HeatValues& cell : picture.cells) hottest = std::max(hottest, cell[index]);
  const HeatImageLayout at(picture);
  const uint32_t scale_top = at.top + at.height + kTick + 3 * kLine;
  const uint32_t width = at.left + std::max(at.width, kPlotWidth) + 12 * kLetter;
  PngImage image(width, scale_top + kScaleHeight + kTick + 2 * kLine, Palette());
  const std::string begin = FormatDateTime(DateTime{picture.begin_ticks}).substr(0, 19);
  image.DrawText(kMargin, kMargin,
                 std::string(kHeatMetricNames[index]) + " by keys (down) and time (across) from " + begin +
                     "Z, " + std::to_string(picture.column_seconds) + " s a column",
                 kInk);
  DrawCells(picture, at, index, hottest, &image);
  DrawTimes(picture, at, &image);
  DrawScale(at, metric, hottest, scale_top, &image);
  return image;
}

}  // namespace partita
