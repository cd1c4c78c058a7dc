#include <algorithm>

#include "api/compiled_filter.h"
#include "api/names.h"
#include "api/query.h"

namespace partita {

TablePage QueryTables(std::span<const TableDescription> tables, const Filter& filter,
                      std::optional<uint32_t> top, std::string_view from) {
  TablePage page;
  const size_t names_max = std::min<size_t>(top.value_or(kPageEntitiesMax), kPageEntitiesMax);
  if (names_max == 0) return page;
  CompiledFilter compiled(filter, CompiledFilter::Target::kTables);
  const std::string first = FoldTableName(from);
  const auto before = [](const TableDescription& table, const std::string& name) {
    return FoldTableName(table.name) < name;
  };
  for (auto table = std::lower_bound(tables.begin(), tables.end(), first, before); table != tables.end();
       ++table) {
    if (!compiled.MatchesTable(table->name)) continue;
    if (page.names.size() == names_max) {
      page.next = table->name;
      return page;
    }
    page.names.push_back(table->name);
  }
  return page;
}

}  // namespace partita
