#pragma once
#include <string>

#include "api/cli/heat_picture.h"
#include "api/cli/png_image.h"

namespace partita {

// DrawHeat as an image: keys down, time across, the scale beneath. The hotter the brighter, so that it is
// read without colours too; shades are by the logarithm, over three powers of ten. Characters of keys that
// are not ASCII are '?'.
PngImage HeatImage(const HeatReport& report, HeatMetric metric);

// Where HeatImage has the cells, in pixels.
struct HeatImageLayout {
  explicit HeatImageLayout(const HeatPicture& picture);
  uint32_t left, top;
  uint32_t cell_width, cell_height;
  uint32_t width, height;  // Of all cells.
};

}  // namespace partita
