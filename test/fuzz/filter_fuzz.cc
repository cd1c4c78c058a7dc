// Hostile text against what reads filters and continuation tokens (F77). The first byte chooses. What is
// accepted must print to text that reads back, plan and run; a plan may not lose a row that matches.
#include <cstdint>
#include <string>
#include <string_view>

#include "api/compiled_filter.h"
#include "api/entity_codec.h"
#include "api/query_plan.h"
#include "api/query_token.h"
#include "engine/base/assert.h"
#include "engine/base/text.h"

namespace partita {
namespace {

bool LiesIn(const QueryPlan& plan, std::string_view key) {
  for (const PlanInterval& interval : plan.intervals) {
    if (key >= interval.lower && (interval.upper.empty() || key < interval.upper)) return true;
  }
  return false;
}

void FuzzFilter(std::string_view text) {
  const Result<Filter> filter = ParseFilter(text);
  if (!filter.ok()) {
    PARTITA_ASSERT(filter.code() == Code::kInvalidArgument || filter.code() == Code::kUnsupported);
    PARTITA_ASSERT(IsValidUtf8(filter.status().message()));
    return;
  }
  const std::string printed = filter.value().ToString();
  const Result<Filter> again = ParseFilter(printed);
  // Parentheses that printing adds may go beyond the bounds of text and depth.
  PARTITA_ASSERT(again.ok() || again.code() == Code::kInvalidArgument);
  if (again.ok()) PARTITA_ASSERT(again.value().ToString() == printed);

  const QueryPlan plan = PlanQuery(filter.value());
  PARTITA_ASSERT(!Explain(plan).kind.empty());
  CompiledFilter whole(filter.value());
  CompiledFilter residual(plan.residual);
  for (const char* partition : {"", "a", "b", "\xEE\x80\x80"}) {
    for (const char* row : {"", "a", "ab"}) {
      Entity entity(partition, row);
      entity.Set("a", 1).Set("b", "x").Set("c", true);
      const std::string key = EncodeEntityKey(TableId(1), entity);
      const std::string content = EncodeEntityContent(entity);
      const Result<UserKeyParts> parts = DecodeUserKey(key);
      const bool matches = whole.Matches(parts.value(), Version(1), content);
      const bool lies_in = LiesIn(plan, std::string_view(key).substr(kTableIdSize));
      PARTITA_ASSERT(matches == (lies_in && residual.Matches(parts.value(), Version(1), content)));
    }
  }
}

void FuzzToken(std::string_view text) {
  const Result<std::string> key = DecodeKeyToken(text);
  if (!key.ok()) return;
  PARTITA_ASSERT(IsValidUtf8(key.value()));
  const Result<std::string> again = DecodeKeyToken(EncodeKeyToken(key.value()));
  PARTITA_ASSERT(again.ok() && again.value() == key.value());
  QueryPlan plan = PlanQuery(Filter());
  CutBefore(&plan, {key.value(), key.value()});
}

}  // namespace
}  // namespace partita

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    partita::FuzzToken(text);
  } else {
    partita::FuzzFilter(text);
  }
  return 0;
}
