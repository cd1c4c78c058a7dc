#pragma once
#include <cstddef>
#include <string>

#include "api/cli/heat_json.h"

namespace partita {

enum class HeatStyle : uint8_t {
  kPlain,   // ASCII shades, for files and pipes.
  kColour,  // Blocks in 256 colours.
};

// A picture of time (across, now at the right) by keys (down), of one metric, with the hottest partitions
// beneath. Shades are by the logarithm, from the coolest to the hottest cell over three powers of ten.
std::string DrawHeat(const HeatReport& report, HeatMetric metric, HeatStyle style);

// The same as a page that needs nothing else: all metrics, of which it shows that one first, and the value
// and keys of the cell that the mouse or the arrow keys point to.
std::string HeatHtml(const HeatReport& report, HeatMetric metric);

// "1,234/s", "12.3 MiB/s", "0.250 cores": a rate as people read it.
std::string HeatRate(HeatMetric metric, double per_second);

}  // namespace partita
