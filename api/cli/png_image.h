#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace partita {

// A picture of up to 256 colours, and as a PNG file (ISO/IEC 15948). What is drawn beyond its edges is left
// out. Not thread-safe.
class PngImage {
 public:
  using Colour = std::array<uint8_t, 3>;  // Red, green, blue.

  // All of it in the colour 0. REQUIRES: neither side is 0, and at most 256 colours.
  PngImage(uint32_t width, uint32_t height, std::vector<Colour> palette);

  uint32_t width() const { return width_; }
  uint32_t height() const { return height_; }
  uint8_t at(uint32_t x, uint32_t y) const { return pixels_[size_t{y} * width_ + x]; }

  void FillRectangle(uint32_t x, uint32_t y, uint32_t width, uint32_t height, uint8_t colour);

  // ASCII from (x, y) to the right and down, in letters of kLetterWidth x kLetterHeight; all other characters
  // are '?'.
  static constexpr uint32_t kLetterWidth = 12, kLetterHeight = 14;
  void DrawText(uint32_t x, uint32_t y, std::string_view text, uint8_t colour);

  std::string Encode() const;

 private:
  const uint32_t width_, height_;
  const std::vector<Colour> palette_;
  std::vector<uint8_t> pixels_;
};

}  // namespace partita
