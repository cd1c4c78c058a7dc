#include "api/cli/heat_png.h"

#include <gtest/gtest.h>

#include <map>

namespace partita {
namespace {

// A reader of PNG files as PngImage writes them, from the other side: it inflates by the tables of RFC 1951.
class PngReader {
 public:
  explicit PngReader(std::string file) : kept_(std::move(file)) {}

  // Fills in what is below; fails the test where the file breaks a rule.
  void Read() {
    ASSERT_EQ(file_.substr(0, 8), "\x89PNG\r\n\x1a\n");
    std::string stream, types;
    for (size_t at = 8; at < file_.size();) {
      const uint32_t size = Be32(at);
      const std::string_view type = file_.substr(at + 4, 4), data = file_.substr(at + 8, size);
      ASSERT_EQ(Be32(at + 8 + size), Crc(file_.substr(at + 4, 4 + size))) << type;
      types.append(type).append(" ");
      if (type == "IHDR") {
        width = Be32(at + 8);
        height = Be32(at + 12);
        EXPECT_EQ(data.substr(8), std::string_view("\x08\x03\0\0\0", 5));
      } else if (type == "PLTE") {
        palette = data;
      } else if (type == "IDAT") {
        stream.append(data);
      }
      at += 12 + size;
    }
    EXPECT_EQ(types, "IHDR PLTE IDAT IEND ");
    Inflate(stream);
    Unfilter();
  }

  uint32_t width = 0, height = 0;
  std::string palette;
  std::string pixels;  // Indexes into the palette, row by row.

 private:
  uint32_t Be32(size_t at, std::string_view in = {}) const {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i)
      value = value << 8 | static_cast<uint8_t>((in.empty() ? file_ : in)[at + i]);
    return value;
  }
  // Of the definition: the remainder of the polynomial, bit by bit.
  static uint32_t Crc(std::string_view bytes) {
    uint32_t crc = ~0u;
    for (const char c : bytes) {
      for (int bit = 0; bit < 8; ++bit) {
        const bool differs = ((crc ^ (static_cast<uint8_t>(c) >> bit)) & 1) != 0;
        crc = crc >> 1 ^ (differs ? 0xEDB88320u : 0);
      }
    }
    return ~crc;
  }
  uint32_t Bit() {
    const uint32_t bit = static_cast<uint8_t>(stream_.at(bit_ / 8)) >> (bit_ % 8) & 1;
    ++bit_;
    return bit;
  }
  uint32_t Bits(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i) value |= Bit() << i;
    return value;
  }
  uint32_t Symbol() {
    uint32_t code = 0;
    for (int i = 0; i < 7; ++i) code = code << 1 | Bit();
    if (code <= 0x17) return 256 + code;
    code = code << 1 | Bit();
    if (code >= 0x30 && code <= 0xBF) return code - 0x30;
    if (code >= 0xC0 && code <= 0xC7) return 280 + code - 0xC0;
    return (code << 1 | Bit()) - 0x190 + 144;
  }
  void Inflate(std::string stream) {
    stream_ = std::move(stream);
    ASSERT_EQ(Bits(16) % 256, 0x78u);
    ASSERT_EQ((0x78u * 256 + static_cast<uint8_t>(stream_[1])) % 31, 0u);
    ASSERT_EQ(Bits(3), 3u) << "one last block of fixed codes";
    for (uint32_t symbol = Symbol(); symbol != 256; symbol = Symbol()) {
      if (symbol < 256) {
        rows_.push_back(static_cast<char>(symbol));
        continue;
      }
      uint32_t length = 258;
      if (symbol < 285) {
        length = 3;
        for (uint32_t each = 257; each < symbol; ++each) length += 1u << (each < 265 ? 0 : (each - 261) / 4);
        length += Bits(symbol < 265 ? 0 : (symbol - 261) / 4);
      }
      uint32_t distance_code = 0;
      for (int i = 0; i < 5; ++i) distance_code = distance_code << 1 | Bit();
      ASSERT_LE(distance_code, 3u);  // Those have no more bits.
      ASSERT_GE(rows_.size(), distance_code + 1);
      for (uint32_t i = 0; i < length; ++i) rows_.push_back(rows_[rows_.size() - distance_code - 1]);
    }
    bit_ = (bit_ + 7) / 8 * 8;
    uint32_t a = 1, b = 0;
    for (const char c : rows_) {
      a = (a + static_cast<uint8_t>(c)) % 65'521;
      b = (b + a) % 65'521;
    }
    EXPECT_EQ(Be32(bit_ / 8, stream_), b << 16 | a);
    EXPECT_EQ(bit_ / 8 + 4, stream_.size());
  }
  void Unfilter() {
    ASSERT_EQ(rows_.size(), size_t{height} * (width + 1));
    for (uint32_t y = 0; y < height; ++y) {
      ASSERT_EQ(rows_[size_t{y} * (width + 1)], 2);
      for (uint32_t x = 0; x < width; ++x) {
        const char above = y == 0 ? '\0' : pixels[size_t{y - 1} * width + x];
        pixels.push_back(static_cast<char>(rows_[size_t{y} * (width + 1) + 1 + x] + above));
      }
    }
  }

  const std::string kept_;
  const std::string_view file_{kept_};
  std::string stream_, rows_;
  size_t bit_ = 0;
};

TEST(PngImageTest, ComesBackPixelByPixel) {
  std::vector<PngImage::Colour> palette;
  for (int i = 0; i < 256; ++i)
    palette.push_back({static_cast<uint8_t>(i), 7, static_cast<uint8_t>(255 - i)});
  PngImage image(301, 67, palette);
  uint32_t state = 1;
  for (uint32_t i = 0; i < 400; ++i) {  // Runs of every length, and bytes of both lengths of codes.
    state = state * 1'664'525 + 1'013'904'223;
    image.FillRectangle(state >> 8 & 511, state >> 17 & 127, 1 + (state >> 3 & 63), 1 + (i & 3),
                        static_cast<uint8_t>(state >> 24));
  }
  image.DrawText(250, 60, "over the edge", 9);
  PngReader reader(image.Encode());
  ASSERT_NO_FATAL_FAILURE(reader.Read());
  ASSERT_EQ(reader.width, 301u);
  ASSERT_EQ(reader.height, 67u);
  ASSERT_EQ(reader.palette.size(), 768u);
  EXPECT_EQ(reader.palette.substr(3 * 200, 3), "\xC8\x07\x37");
  for (uint32_t y = 0; y < 67; ++y) {
    for (uint32_t x = 0; x < 301; ++x) {
      ASSERT_EQ(static_cast<uint8_t>(reader.pixels[size_t{y} * 301 + x]), image.at(x, y)) << x << " " << y;
    }
  }
}

TEST(PngImageTest, EachLetterHasItsOwnForm) {
  std::map<std::string, char> forms;
  for (char c = ' '; c <= '~'; ++c) {
    PngImage image(12, 14, {{0, 0, 0}, {255, 255, 255}});
    image.DrawText(0, 0, std::string(1, c), 1);
    std::string form;
    for (uint32_t i = 0; i < 12 * 14; ++i) form.push_back(image.at(i % 12, i / 12) == 1 ? '#' : ' ');
    EXPECT_TRUE(forms.emplace(form, c).second) << c << " looks like " << forms[form];
  }
}

TEST(HeatPngTest, WhatIsHotIsBrightAndWhereItsKeysAndTimeAre) {
  HeatReport report;
  report.picture = {.begin_ticks = 133'000'000'000'000'000, .columns = 50, .buckets = {}, .cells = {}};
  for (int i = 0; i < 20; ++i) report.picture.buckets.push_back({"Orders", "customer-" + std::to_string(i)});
  report.picture.cells.assign(50 * 20, HeatValues{});
  const size_t reads = static_cast<size_t>(HeatMetric::kReads);
  for (HeatValues& cell : report.picture.cells) cell[reads] = 3;
  for (size_t column = 30; column < 35; ++column) report.picture.cells[column * 20 + 7][reads] = 3'000;
  report.picture.cells[10 * 20 + 2][reads] = 0;

  const PngImage image = HeatImage(report, HeatMetric::kReads);
  PngReader reader(image.Encode());
  ASSERT_NO_FATAL_FAILURE(reader.Read());
  const auto brightness = [&](uint32_t x, uint32_t y) {
    const auto index = static_cast<uint8_t>(reader.pixels[size_t{y} * reader.width + x]);
    const auto part = [&](size_t i) { return static_cast<uint8_t>(reader.palette[3u * index + i]); };
    return 0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2);
  };
  const HeatImageLayout at(report.picture);
  const auto cell = [&](uint32_t column, uint32_t row) {
    return brightness(at.left + column * at.cell_width + at.cell_width / 2,
                      at.top + row * at.cell_height + 8);
  };
  for (uint32_t column = 0; column < 50; ++column) {
    for (uint32_t row = 0; row < 20; ++row) {
      const bool is_hot = row == 7 && column >= 30 && column < 35;
      if (is_hot) EXPECT_GT(cell(column, row), 230) << column << " " << row;
      if (!is_hot) EXPECT_LT(cell(column, row), 50) << column << " " << row;
    }
  }
  EXPECT_EQ(cell(10, 2), 0);
  EXPECT_GT(cell(10, 3), 5);
  EXPECT_GT(brightness(at.left - 4, at.top + 4), 250) << "beside the cells is paper";
}

// So that it is read without colours.
TEST(HeatPngTest, TheScaleRisesInBrightness) {
  HeatReport report;
  report.picture = {.columns = 1, .buckets = {{"T", ""}}, .cells = std::vector<HeatValues>(1)};
  PngReader reader(HeatImage(report, HeatMetric::kCpu).Encode());
  ASSERT_NO_FATAL_FAILURE(reader.Read());
  double last = -1;
  for (size_t i = 2; i < reader.palette.size() / 3; ++i) {
    const auto part = [&](size_t k) { return static_cast<uint8_t>(reader.palette[3 * i + k]); };
    const double brightness = 0.2126 * part(0) + 0.7152 * part(1) + 0.0722 * part(2);
    EXPECT_GE(brightness, last) << i;
    last = brightness;
  }
  EXPECT_GT(last, 240);
}

}  // namespace
}  // namespace partita
