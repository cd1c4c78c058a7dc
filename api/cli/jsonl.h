#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/cli/line_reader.h"
#include "api/cli/record_reader.h"
#include "api/entity.h"

namespace partita {

// JSON lines: one object a line, by the JSON rules of the table service (spec 5.5 and 6), so types
// survive:
//
//   {"PartitionKey":"p","RowKey":"r","Age":7,"Big@odata.type":"Edm.Int64","Big":"12345678901"}
//
// Reading: `X@odata.type` annotates X wherever it stands. Without annotation a string is a String, a
// number with neither point nor exponent that fits an Int32, any other number a Double; true and false
// are Booleans. An integer without annotation that no Double holds exactly is refused, where the service
// rounds it: an import tells nobody what it changed. null means: no such property. `Timestamp`, names that
// begin `odata.`, annotations of what is not there, of the keys and of annotations are ignored.

// Parses entities from JSON text; keeps its buffers between calls. Used by one thread.
class JsonEntityParser {
 public:
  JsonEntityParser();
  ~JsonEntityParser();
  JsonEntityParser(JsonEntityParser&&) noexcept;
  JsonEntityParser& operator=(JsonEntityParser&&) noexcept;

  // One object and nothing else. kInvalidArgument with a violation: kInvalidInput for bad JSON, nesting,
  // an unknown type or a value not of its type; kDuplicatePropertiesSpecified; kPropertiesNeedValue
  // for an absent key; and what ValidateEntity finds.
  Result<Entity> Parse(std::string_view json);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// One object a line; blank lines are skipped.
class JsonLinesReader : public RecordReader {
 public:
  explicit JsonLinesReader(std::unique_ptr<ByteSource> source, size_t record_bytes_max = kRecordBytesMax);

  std::optional<Result<Entity>> Next() override;
  uint64_t line_number() const override { return lines_.line_number(); }
  uint64_t resume_offset() const override { return lines_.offset(); }
  uint64_t resume_line() const override { return lines_.line_number() + 1; }
  Status SkipTo(uint64_t offset, uint64_t line) override { return lines_.SkipTo(offset, line); }

 private:
  LineReader lines_;
  JsonEntityParser parser_;
};

enum class JsonTimestamp : uint8_t { kOmit, kInclude };

// Appends the entity as one line with its line feed, annotated where the type would not follow from
// the value. Keys first, then Timestamp if asked for and known, then properties in their order.
// REQUIRES: ValidateEntity(entity) was ok.
void AppendJsonLine(std::string* out, const Entity& entity,
                    JsonTimestamp timestamp = JsonTimestamp::kInclude);

// Appends `"name":value`, with the annotation before it where needed. REQUIRES: as above.
void AppendJsonProperty(std::string* out, std::string_view name, const PropertyValue& value);

// Appends the text as a JSON string with its quotes. REQUIRES: well-formed UTF-8.
void AppendJsonString(std::string* out, std::string_view text);

}  // namespace partita
