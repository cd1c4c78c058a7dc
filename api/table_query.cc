#include <algorithm>

#include "api/compiled_filter.h"
#include "api/query.h"

namespace partita {

namespace {

constexpr size_t kTablesAtOnce = 1'000;

}  // namespace

TablePage QueryTables(const TableLister& list, const Filter& filter, std::optional<uint32_t> top,
                      std::string_view from) {
  TablePage page;
  const size_t names_max = std::min<size_t>(top.value_or(kPageEntitiesMax), kPageEntitiesMax);
  if (names_max == 0) return page;
  CompiledFilter compiled(filter, CompiledFilter::Target::kTables);
  // Nobody else has his turn meanwhile, so the longer the filter, the fewer tables.
  const size_t tests = std::max<size_t>(compiled.test_count(), 1);
  const size_t looked_max = std::max(kTablesLookedMax / tests, kTablesAtOnce);
  std::string at(from);
  for (size_t looked = 0; looked + kTablesAtOnce <= looked_max; looked += kTablesAtOnce) {
    const std::vector<TablePtr> tables = list(at, kTablesAtOnce + 1);
    const bool more = tables.size() > kTablesAtOnce;
    for (const TablePtr& table : std::span(tables).first(tables.size() - (more ? 1 : 0))) {
      if (table->raw || !compiled.MatchesTable(table->name)) continue;
      if (page.names.size() == names_max) {
        page.next = table->name;
        return page;
      }
      page.names.push_back(table->name);
    }
    if (!more) return page;
    at = tables.back()->name;
  }
  page.next = std::move(at);
  return page;
}

}  // namespace partita
