#include "api/http/explain_headers.h"

#include <cstdio>

#include "api/ascii.h"
#include "api/http/answer.h"

namespace partita::http {

namespace {

// More would not fit a value.
constexpr size_t kBoundsMax = 64;
constexpr std::string_view kCut = "...";

void AppendValue(std::string* headers, std::string_view name, std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string value;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const bool plain = byte >= 0x20 && byte < 0x7F && c != '%';
    if (value.size() + (plain ? 1 : 3) > kExplainValueMax - kCut.size()) {
      value.append(kCut);
      break;
    }
    if (plain) {
      value.push_back(c);
    } else {
      value.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  AppendHeader(headers, name, value);
}

std::string Joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text.append(separator);
    text.append(part);
    if (text.size() > kExplainValueMax) break;  // It is cut anyway.
  }
  return text;
}

std::string CostText(const QueryCost& cost) {
  char text[320];
  std::snprintf(text, sizeof text,
                "scanned=%llu, returned=%llu, density=%.3f, blocks-read=%llu, blocks-skipped=%llu, "
                "files-skipped=%llu, bytes-read=%llu, microseconds=%llu",
                static_cast<unsigned long long>(cost.scanned), static_cast<unsigned long long>(cost.returned),
                cost.density(), static_cast<unsigned long long>(cost.blocks.blocks_read),
                static_cast<unsigned long long>(cost.blocks.blocks_skipped),
                static_cast<unsigned long long>(cost.blocks.files_skipped),
                static_cast<unsigned long long>(cost.blocks.bytes_read),
                static_cast<unsigned long long>(cost.nanos / 1000));
  return text;
}

}  // namespace

bool AsksForExplanation(const HttpRequest& request) {
  return SameHeaderName(request.Header("x-partita-explain").value_or(""), "true");
}

void AppendExplanation(const QueryPlan& plan, const QueryPage& page, std::string* headers) {
  const Explanation explanation = Explain(plan, kBoundsMax);
  AppendValue(headers, "x-partita-plan", explanation.kind);
  if (!explanation.bounds.empty()) {
    AppendValue(headers, "x-partita-bounds", Joined(explanation.bounds, "; "));
  }
  if (!explanation.residual.empty()) AppendValue(headers, "x-partita-residual", explanation.residual);
  if (!explanation.zone_maps.empty()) {
    AppendValue(headers, "x-partita-zone-maps", Joined(explanation.zone_maps, ", "));
  }
  AppendValue(headers, "x-partita-cost", CostText(page.cost()));
}

}  // namespace partita::http
