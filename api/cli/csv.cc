#include "api/cli/csv.h"

#include <algorithm>

#include "api/date_time.h"
#include "api/names.h"
#include "api/value_text.h"

namespace partita {
namespace {

constexpr std::string_view kTypeSuffix = "@type";
constexpr std::string_view kTimestampColumn = "Timestamp";
constexpr std::string_view kLineEnd = "\r\n";

Status InvalidRow(std::string message) { return BrokenRule(Violation::kInvalidInput, std::move(message)); }

bool IsIgnoredColumn(std::string_view name) { return name == kTimestampColumn || name.starts_with("odata."); }

void AppendCsvField(std::string* out, std::string_view text) {
  // Quotes also where they tell the empty string from no value.
  if (!text.empty() && text.find_first_of(",\"\r\n") == text.npos && text.front() != ' ' &&
      text.back() != ' ') {
    out->append(text);
    return;
  }
  out->push_back('"');
  for (char c : text) {
    if (c == '"') out->push_back('"');
    out->push_back(c);
  }
  out->push_back('"');
}

}  // namespace

// ---- CsvColumns ----

CsvColumns::Column* CsvColumns::FindOrAdd(std::string_view name) {
  const auto [it, added] = index_.try_emplace(std::string(name), columns_.size());
  if (added) columns_.push_back({std::string(name), kAbsent, kAbsent});
  return &columns_[it->second];
}

Result<CsvColumns> CsvColumns::FromHeader(const std::vector<std::string>& fields) {
  CsvColumns columns;
  columns.field_count_ = fields.size();
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string_view name = fields[i];
    if (IsIgnoredColumn(name)) continue;
    size_t* place = nullptr;
    if (name == "PartitionKey") {
      place = &columns.partition_key_;
    } else if (name == "RowKey") {
      place = &columns.row_key_;
    } else if (name.ends_with(kTypeSuffix)) {
      name.remove_suffix(kTypeSuffix.size());
      if (IsIgnoredColumn(name) || name == "PartitionKey" || name == "RowKey") continue;
      place = &columns.FindOrAdd(name)->type;
    } else {
      place = &columns.FindOrAdd(name)->value;
    }
    if (*place != kAbsent)
      return InvalidRow("header: column " + QuotedForMessage(fields[i]) + " stands twice");
    *place = i;
  }
  if (columns.partition_key_ == kAbsent) return InvalidRow("header: column PartitionKey is missing");
  if (columns.row_key_ == kAbsent) return InvalidRow("header: column RowKey is missing");
  for (const Column& column : columns.columns_) {
    if (column.value == kAbsent) {
      return InvalidRow("header: column " + QuotedForMessage(column.name + std::string(kTypeSuffix)) +
                        " stands without " + QuotedForMessage(column.name));
    }
    const Status status = CheckPropertyName(column.name);
    if (!status.ok()) return status.WithContext("header");
  }
  return columns;
}

void CsvColumns::Observe(const Entity& entity) {
  for (const Property& property : entity.properties()) {
    Column* column = FindOrAdd(property.name);
    column->value = 0;
    if (property.value.type() != PropertyType::kString) column->type = 0;
  }
}

std::string CsvColumns::HeaderLine() {
  std::string header = "PartitionKey,RowKey";
  partition_key_ = 0;
  row_key_ = 1;
  field_count_ = 2;
  if (has_timestamp_) {
    header.append(",").append(kTimestampColumn);
    ++field_count_;
  }
  for (Column& column : columns_) {
    header.append(",").append(column.name);
    column.value = field_count_++;
    if (column.type == kAbsent) continue;
    header.append(",").append(column.name).append(kTypeSuffix);
    column.type = field_count_++;
  }
  return header.append(kLineEnd);
}

// ---- CsvRecordParser ----

void CsvRecordParser::Start() {
  fields_.clear();
  has_too_many_fields_ = false;
  error_.clear();
  bytes_ = 0;
  position_ = Position::kFieldStart;
  StartField();
}

void CsvRecordParser::StartField() {
  if (fields_.size() == kFieldsMax) {
    has_too_many_fields_ = true;
    fields_.clear();
  }
  fields_.emplace_back();
}

void CsvRecordParser::DropText() {
  fields_.clear();
  StartField();
}

// At a field's start or within one that is not in quotes.
bool CsvRecordParser::FeedPlain(char c, size_t column) {
  if (c == separator_) {
    StartField();
    position_ = Position::kFieldStart;
  } else if (c == '"') {
    if (position_ == Position::kPlain) {
      error_ =
          "column " + std::to_string(column + 1) + ": a quote within a field that does not begin with one";
      return false;
    }
    fields_.back().quoted = true;
    position_ = Position::kQuoted;
  } else {
    fields_.back().text.push_back(c);
    position_ = Position::kPlain;
  }
  return true;
}

bool CsvRecordParser::FeedAfterQuote(char c, size_t column) {
  if (c == '"') {
    fields_.back().text.push_back('"');
    position_ = Position::kQuoted;
  } else if (c == separator_) {
    StartField();
    position_ = Position::kFieldStart;
  } else {
    error_ = "column " + std::to_string(column + 1) + ": text after a field's closing quote";
    return false;
  }
  return true;
}

CsvRecordParser::State CsvRecordParser::Feed(std::string_view text, std::string_view ending) {
  bytes_ += text.size() + ending.size();
  for (size_t i = 0; i < text.size(); ++i) {
    bool ok = true;
    if (position_ == Position::kQuoted) {
      const size_t quote = std::min(text.find('"', i), text.size());
      fields_.back().text.append(text.substr(i, quote - i));
      i = quote;
      if (quote < text.size()) position_ = Position::kAfterQuote;
    } else if (position_ == Position::kAfterQuote) {
      ok = FeedAfterQuote(text[i], i);
    } else {
      ok = FeedPlain(text[i], i);
    }
    if (!ok) return State::kError;
  }
  if (position_ != Position::kQuoted) return State::kDone;
  fields_.back().text.append(ending);
  return State::kNeedLine;
}

// ---- CsvRecords ----

CsvRecords::CsvRecords(std::unique_ptr<ByteSource> source, size_t record_bytes_max, char separator)
    : lines_(std::move(source), record_bytes_max, LongLines::kSplit),
      record_bytes_max_(record_bytes_max),
      parser_(separator) {}

std::optional<Status> CsvRecords::Next() {
  parser_.Start();
  bool started = false;
  bool too_large = false;
  CsvRecordParser::State state = CsvRecordParser::State::kDone;
  while (std::optional<Result<Line>> line = lines_.Next()) {
    if (!started) record_line_ = lines_.line_number();
    if (!line->ok()) return line->status();
    const Line& got = line->value();
    if (!started && got.text.empty()) continue;  // A blank line.
    started = true;
    // After an error the rest of the line is only skipped.
    if (state != CsvRecordParser::State::kError) state = parser_.Feed(got.text, got.ending);
    if (parser_.bytes() > record_bytes_max_) {
      too_large = true;
      parser_.DropText();
    }
    if (state != CsvRecordParser::State::kNeedLine && !got.continues) break;
  }
  if (!started) return std::nullopt;
  return Finish(state, too_large);
}

std::optional<Status> CsvRecords::Finish(CsvRecordParser::State state, bool too_large) {
  const std::string where = "line " + std::to_string(record_line_) + ": ";
  if (state == CsvRecordParser::State::kError) return InvalidRow(where + parser_.error());
  if (state == CsvRecordParser::State::kNeedLine) {
    return InvalidRow(where + "a quote is opened and never closed; the input's last " +
                      std::to_string(parser_.bytes()) + " bytes are skipped");
  }
  if (too_large) {
    return InvalidRow(where + "the record has " + std::to_string(parser_.bytes()) + " bytes; allowed are " +
                      std::to_string(record_bytes_max_));
  }
  if (parser_.has_too_many_fields()) {
    return InvalidRow(where + "the record has more than " + std::to_string(CsvRecordParser::kFieldsMax) +
                      " fields");
  }
  return Status();
}

// ---- CsvReader ----

Result<std::unique_ptr<CsvReader>> CsvReader::Open(std::unique_ptr<ByteSource> source,
                                                   size_t record_bytes_max) {
  std::unique_ptr<CsvReader> reader(new CsvReader(std::move(source), record_bytes_max));
  const std::optional<Status> read = reader->records_.Next();
  if (!read) return InvalidRow("header: the input is empty");
  if (!read->ok()) return read->WithContext("header");
  std::vector<std::string> names;
  for (const CsvRecordParser::Field& field : reader->records_.fields()) names.push_back(field.text);
  PARTITA_ASSIGN(reader->columns_, CsvColumns::FromHeader(names));
  return reader;
}

Result<Entity> CsvReader::BuildEntity() const {
  const std::vector<CsvRecordParser::Field>& fields = records_.fields();
  if (fields.size() != columns_.field_count()) {
    return InvalidRow("the record has " + std::to_string(fields.size()) + " fields, the header " +
                      std::to_string(columns_.field_count()));
  }
  Entity entity(fields[columns_.partition_key()].text, fields[columns_.row_key()].text);
  for (const CsvColumns::Column& column : columns_.columns()) {
    const CsvRecordParser::Field& field = fields[column.value];
    const std::string_view type_name =
        column.type == CsvColumns::kAbsent ? std::string_view() : std::string_view(fields[column.type].text);
    if (field.text.empty() && !field.quoted && type_name.empty()) continue;
    const std::optional<PropertyType> type =
        type_name.empty() ? PropertyType::kString : PropertyTypeFromEdmName(type_name);
    const std::string context = "property " + QuotedForMessage(column.name);
    if (!type) return InvalidRow(context + ": unknown type " + QuotedForMessage(type_name));
    Result<PropertyValue> value = ParseValueText(*type, field.text);
    if (!value.ok()) return value.status().WithContext(context);
    entity.AppendProperty(column.name, std::move(value).value());
  }
  PARTITA_TRY(ValidateEntity(entity));
  return entity;
}

std::optional<Result<Entity>> CsvReader::Next() {
  const std::optional<Status> read = records_.Next();
  if (!read) return std::nullopt;
  if (!read->ok()) return Result<Entity>(*read);
  Result<Entity> entity = BuildEntity();
  if (entity.ok()) return entity;
  return Result<Entity>(entity.status().WithContext("line " + std::to_string(line_number())));
}

// ---- Writing ----

Status AppendCsvRecord(std::string* out, const CsvColumns& columns, const Entity& entity) {
  size_t placed = 0;
  for (const CsvColumns::Column& column : columns.columns()) {
    const PropertyValue* value = entity.Get(column.name);
    if (value == nullptr) continue;
    if (value->type() != PropertyType::kString && column.type == CsvColumns::kAbsent) break;
    ++placed;
  }
  if (placed != entity.property_count()) {
    return Status::InvalidArgument("CSV: the entity has a property or type without a column");
  }
  AppendCsvField(out, entity.partition_key());
  out->push_back(',');
  AppendCsvField(out, entity.row_key());
  if (columns.has_timestamp()) {
    out->push_back(',');
    AppendDateTime(out, DateTime{entity.timestamp_ticks()});
  }
  std::string text;
  for (const CsvColumns::Column& column : columns.columns()) {
    const PropertyValue* value = entity.Get(column.name);
    out->push_back(',');
    if (value != nullptr) {
      text.clear();
      AppendValueText(&text, *value);
      AppendCsvField(out, text);
    }
    if (column.type == CsvColumns::kAbsent) continue;
    out->push_back(',');
    if (value != nullptr && value->type() != PropertyType::kString) out->append(EdmTypeName(value->type()));
  }
  out->append(kLineEnd);
  return Status();
}

}  // namespace partita
