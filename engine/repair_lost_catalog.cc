#include <algorithm>

#include "engine/base/coding.h"
#include "engine/base/entity_record.h"
#include "engine/base/stored_value.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"
#include "engine/repair_survey.h"

// The tables of a lost catalog, by the keys that logs and table files have.

namespace partita {

namespace {

// Ids of tables that nothing is left of, and which must not be given again (F19).
constexpr uint32_t kTableIdGap = 1u << 16;

std::string RecoveredName(uint32_t id) {
  std::string digits = std::to_string(id);
  return "recovered" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

}  // namespace

// One key or value that is no entity's tells that the table is raw: of entities every query would end at it.
void RepairSurvey::NoteTableOf(const Entry& entry) {
  if (entry.user_key.size() < kTableIdSize) return;
  bool& is_entity = met_.try_emplace(LoadBe32(entry.user_key.data()), true).first->second;
  if (!is_entity) return;
  const Result<UserKeyParts> key = DecodeUserKey(entry.user_key);
  is_entity = key.ok() && IsValidOrderedText(key->partition_key) && IsValidOrderedText(key->row_key);
  if (is_entity && entry.kind == EntryKind::kPut)
    is_entity = EntityRecordView(StoredValueContent(entry.value)).Check().ok();
}

Task<Status> RepairSurvey::NoteTablesIn(const TableReader& table) {
  std::vector<SkippedSpan> unread;
  SpanList skipped(&unread);
  auto note = [this](const Entry& entry) {
    NoteTableOf(entry);
    return Status();
  };
  co_return co_await ReadWhatThereIs(table, &skipped, std::move(note));
}

void RepairSurvey::RebuildCatalog() {
  Catalog& catalog = found_.catalog;
  catalog.store = found_.store;
  catalog.incarnation = found_.incarnation_max;
  catalog.formed_layout = catalog.layout;
  catalog.epoch = 1;
  for (const auto& [id, is_entity] : met_) {
    TableDescriptor table;
    table.id = TableId(id);
    table.account = world_.account;
    table.name = RecoveredName(id);
    table.raw = !is_entity;
    table.created_ticks = found_.version_max.value;
    catalog.InsertTable(std::move(table));
    catalog.ranges.push_back({TableLowerBound(TableId(id)), TableUpperBound(TableId(id)),
                              ShardId(id % catalog.shard_count), RangeEpoch(catalog.epoch)});
  }
  const uint64_t last = met_.empty() ? 0 : met_.rbegin()->first;
  catalog.next_table_id = static_cast<uint32_t>(std::min<uint64_t>(last + 1 + kTableIdGap, UINT32_MAX));
}

}  // namespace partita
