#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/error_body.h"
#include "api/http/json_text.h"
#include "api/http/media_type.h"
#include "api/http/resource.h"
#include "api/http/selection.h"
#include "engine/base/entity_record.h"

namespace partita::http {

// Bodies of answers (spec 5) and URLs of things (spec 4.2), appended to a string. Keys may be UTF-8 or
// ordered text (user_key.h) everywhere here: UTF-8 comes out. Text alone: json_text.h; errors: error_body.h.

// ---- URLs. Quotes in keys are doubled, the rest percent-encoded:
// `https://HOST/t(PartitionKey='a',RowKey='b')`.

// `Tables('t')` under the base: Location of a created table.
void AppendTableUrl(std::string* out, const UrlBase& base, std::string_view table);
// Location and DataServiceId of an inserted entity.
void AppendEntityUrl(std::string* out, const UrlBase& base, std::string_view table,
                     std::string_view partition_key, std::string_view row_key);
// The same in two steps, of which many entities of a partition have the first in common.
void AppendEntityUrlStart(std::string* out, const UrlBase& base, std::string_view table,
                          std::string_view partition_key);
void AppendEntityUrlEnd(std::string* out, std::string_view row_key);

// ---- Entities.

// One row as a read finds it.
struct EntityRow {
  std::string_view partition_key;
  std::string_view row_key;
  uint64_t timestamp_ticks = 0;  // Version.
  EntityRecordView record;       // REQUIRES: checked.
};

// How the entities of one answer look: made once a request, used for each row. Immutable; safe to use from
// any thread. `names` (may be null) must outlive it.
class EntityFormat {
 public:
  enum class Shape : uint8_t { kLone, kList };
  // `table`: the name that the answer's URLs show.
  EntityFormat(Shape shape, MetadataLevel level, const UrlBase& base, std::string_view account,
               std::string_view table, const Selection& selection, const PropertyNames* names = nullptr);

  MetadataLevel level() const { return level_; }

  // An entity alone: the answer to a point get or an insert, odata.metadata first. REQUIRES: kLone.
  void AppendEntity(std::string* out, const EntityRow& row) const;

  // A list: start, rows, end (AppendListEnd). A row that follows another is preceded by a comma. REQUIRES:
  // kList.
  void AppendListStart(std::string* out) const;
  void AppendListEntity(std::string* out, const EntityRow& row) const;

 private:
  // One name of $select.
  struct Column {
    enum class Kind : uint8_t { kPartitionKey, kRowKey, kTimestamp, kCustom };
    Kind kind = Kind::kCustom;
    uint16_t id = 0;  // Of the property; 0: none.
    std::string name;
    std::string label;  // `"name":`, escaped.
  };
  void AppendRow(std::string* out, std::string_view start, const EntityRow& row) const;
  void WriteSelected(TextSink* sink, const EntityRow& row) const;
  void WriteAll(TextSink* sink, const EntityRow& row) const;
  void AddColumn(const std::string& name, const PropertyNames* names);

  Shape shape_;
  MetadataLevel level_;
  bool selects_all_;
  std::vector<Column> columns_;  // When not everything is selected.
  // `{` and odata.metadata: up to the lone entity's own first member, or to the list's first row.
  std::string start_;
  std::string id_start_;    // Full metadata: `"odata.type":"...","odata.id":"...(PartitionKey='`.
  std::string link_start_;  // Full metadata: `"odata.editLink":"t(PartitionKey='`.
};

void AppendListEnd(std::string* out);

// ---- Tables.

// What Create Table and the get of one table answer.
void AppendTable(std::string* out, MetadataLevel level, const UrlBase& base, std::string_view account,
                 std::string_view table);
// The answer to Query Tables; ends with AppendListEnd.
void AppendTableListStart(std::string* out, MetadataLevel level, const UrlBase& base);
void AppendListTable(std::string* out, MetadataLevel level, const UrlBase& base, std::string_view account,
                     std::string_view table);

}  // namespace partita::http
