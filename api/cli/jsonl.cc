#include "api/cli/jsonl.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "api/date_time.h"
#include "api/json_token.h"
#include "api/names.h"
#include "api/value_text.h"

namespace partita {
namespace {

using simdjson::ondemand::json_type;

// A member of the object: views into the parser's buffers, valid until its next document.
struct Field {
  std::string_view name;
  std::string_view text;  // Of a string, unescaped; of a number, as written.
  JsonTokenKind kind;
};

// What `X@odata.type` says of X.
struct Annotation {
  std::string_view name;  // X.
  std::string_view type;
};

Status InvalidLine(std::string message) { return BrokenRule(Violation::kInvalidInput, std::move(message)); }

Status BadJson(simdjson::error_code error) {
  return InvalidLine(std::string("not a JSON object: ") + simdjson::error_message(error));
}

// The value of a member that the entity takes: no nesting.
Status ReadScalar(simdjson::ondemand::value value, Field* field) {
  json_type type;
  if (auto error = value.type().get(type)) return BadJson(error);
  if (type == json_type::string) {
    field->kind = JsonTokenKind::kString;
    if (auto error = value.get_string().get(field->text)) {
      return InvalidLine("property " + QuotedForMessage(field->name) + ": " + simdjson::error_message(error));
    }
    return Status();
  }
  if (type == json_type::array || type == json_type::object) {
    return InvalidLine("property " + QuotedForMessage(field->name) + ": arrays and objects are no values");
  }
  field->text = TrimTokenEnd(value.raw_json_token());
  if (type == json_type::number && IsJsonNumber(field->text)) {
    field->kind = JsonTokenKind::kNumber;
  } else if (field->text == "null") {
    field->kind = JsonTokenKind::kNull;
  } else if (field->text == "true" || field->text == "false") {
    field->kind = field->text == "true" ? JsonTokenKind::kTrue : JsonTokenKind::kFalse;
  } else {
    return InvalidLine("property " + QuotedForMessage(field->name) + ": " + QuotedForMessage(field->text) +
                       " is no JSON value");
  }
  return Status();
}

Status NotOfType(const Field& field, std::string_view type) {
  return InvalidLine("property " + QuotedForMessage(field.name) + ": " + QuotedForMessage(field.text) +
                     " is no " + std::string(type));
}

// What a Double made of these digits, which have neither point nor exponent.
bool HoldsExactly(double value, std::string_view digits) {
  char exact[std::numeric_limits<double>::max_exponent10 + 3];  // A sign, and one digit more than that.
  const auto written = std::to_chars(exact, exact + sizeof(exact), value, std::chars_format::fixed, 0);
  return std::string_view(exact, written.ptr) == digits;
}

Status NotExact(const Field& field) {
  const std::string annotation = QuotedForMessage(std::string(field.name) + std::string(kTypeAnnotation));
  const bool fits_int64 = ParseValueText(PropertyType::kInt64, field.text).ok();
  return InvalidLine("property " + QuotedForMessage(field.name) + ": " + QuotedForMessage(field.text) +
                     " would be rounded to an Edm.Double; " + annotation +
                     (fits_int64 ? ":\"Edm.Int64\" beside it keeps every digit"
                                 : ":\"Edm.Double\" beside it takes it rounded"));
}

// The value of a member without annotation.
Result<PropertyValue> InferValue(const Field& field) {
  switch (field.kind) {
    case JsonTokenKind::kString:
      return PropertyValue(field.text);
    case JsonTokenKind::kTrue:
    case JsonTokenKind::kFalse:
      return PropertyValue(field.kind == JsonTokenKind::kTrue);
    default:
      break;
  }
  std::optional<PropertyValue> number = InferJsonNumber(field.text);
  if (!number) return NotOfType(field, "Edm.Double");
  const double* value = number->if_double();
  const bool integer = field.text.find_first_of(".eE") == field.text.npos;
  if (value != nullptr && integer && !HoldsExactly(*value, field.text)) return NotExact(field);
  return *std::move(number);
}

Result<PropertyValue> AnnotatedValue(const Field& field, std::string_view type_name) {
  const std::optional<PropertyType> type = PropertyTypeFromEdmName(type_name);
  if (!type) {
    return InvalidLine("property " + QuotedForMessage(field.name) + ": unknown type " +
                       QuotedForMessage(type_name));
  }
  if (!TokenFits(field.kind, *type)) return NotOfType(field, type_name);
  Result<PropertyValue> value = ParseValueText(*type, field.text);
  if (!value.ok()) return value.status().WithContext("property " + QuotedForMessage(field.name));
  return value;
}

}  // namespace

struct JsonEntityParser::State {
  simdjson::ondemand::parser parser;
  std::string padded;
  std::vector<Field> fields;  // In their order, keys included.
  std::vector<Annotation> annotations;
  std::vector<std::string_view> names;

  Status Scan(std::string_view json);
  Status ScanMember(simdjson::ondemand::field member);
  Status CheckDuplicates();
  Status TakeKey(const Field& field, std::optional<std::string>* key);
  Result<Entity> Build();
};

// Splits the object into members and annotations.
Status JsonEntityParser::State::Scan(std::string_view json) {
  fields.clear();
  annotations.clear();
  names.clear();
  if (json.starts_with("\xEF\xBB\xBF")) json.remove_prefix(3);
  padded.assign(json);
  padded.append(simdjson::SIMDJSON_PADDING, ' ');

  simdjson::ondemand::document document;
  if (auto error = parser.iterate(padded.data(), json.size(), padded.size()).get(document))
    return BadJson(error);
  simdjson::ondemand::object object;
  if (auto error = document.get_object().get(object)) return BadJson(error);
  for (auto result : object) {
    simdjson::ondemand::field member;
    if (auto error = std::move(result).get(member)) return BadJson(error);
    PARTITA_TRY(ScanMember(member));
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return InvalidLine("text after the JSON object");
  }
  return CheckDuplicates();
}

Status JsonEntityParser::State::ScanMember(simdjson::ondemand::field member) {
  std::string_view name;
  if (auto error = member.unescaped_key().get(name)) return BadJson(error);
  names.push_back(name);
  if (name.ends_with(kTypeAnnotation)) {
    const std::string_view subject = name.substr(0, name.size() - kTypeAnnotation.size());
    Field field{name, {}, JsonTokenKind::kNull};
    PARTITA_TRY(ReadScalar(member.value(), &field));
    if (subject.ends_with(kTypeAnnotation) || field.kind == JsonTokenKind::kNull) return Status();
    annotations.push_back({subject, field.text});
    return Status();
  }
  // Ignored members are skipped whatever their value; simdjson checks that their brackets match.
  if (name.starts_with("odata.") || name == "Timestamp") return Status();
  Field field{name, {}, JsonTokenKind::kNull};
  PARTITA_TRY(ReadScalar(member.value(), &field));
  fields.push_back(field);
  return Status();
}

Status JsonEntityParser::State::CheckDuplicates() {
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return Status();
  return BrokenRule(Violation::kDuplicatePropertiesSpecified,
                    "property " + QuotedForMessage(*twice) + " stands twice in the object");
}

Status JsonEntityParser::State::TakeKey(const Field& field, std::optional<std::string>* key) {
  if (field.kind == JsonTokenKind::kNull) return Status();  // As if absent.
  if (field.kind != JsonTokenKind::kString) return InvalidLine(std::string(field.name) + " is not a string");
  *key = std::string(field.text);
  return Status();
}

Result<Entity> JsonEntityParser::State::Build() {
  std::sort(annotations.begin(), annotations.end(),
            [](const Annotation& a, const Annotation& b) { return a.name < b.name; });
  Entity entity;
  entity.ReserveProperties(std::min<size_t>(fields.size(), 255));
  std::optional<std::string> partition_key;
  std::optional<std::string> row_key;
  for (const Field& field : fields) {
    if (field.name == "PartitionKey" || field.name == "RowKey") {
      PARTITA_TRY(TakeKey(field, field.name == "RowKey" ? &row_key : &partition_key));
      continue;
    }
    if (field.kind == JsonTokenKind::kNull) continue;
    const auto annotation =
        std::lower_bound(annotations.begin(), annotations.end(), field.name,
                         [](const Annotation& a, std::string_view n) { return a.name < n; });
    const bool annotated = annotation != annotations.end() && annotation->name == field.name;
    PARTITA_ASSIGN(PropertyValue value,
                   annotated ? AnnotatedValue(field, annotation->type) : InferValue(field));
    entity.AppendProperty(field.name, std::move(value));  // New: CheckDuplicates ran.
  }
  if (!partition_key || !row_key) {
    return BrokenRule(Violation::kPropertiesNeedValue,
                      std::string(partition_key ? "RowKey" : "PartitionKey") + " is not given");
  }
  entity.set_partition_key(*std::move(partition_key));
  entity.set_row_key(*std::move(row_key));
  PARTITA_TRY(ValidateEntity(entity));
  return entity;
}

JsonEntityParser::JsonEntityParser() : state_(std::make_unique<State>()) {}
JsonEntityParser::~JsonEntityParser() = default;
JsonEntityParser::JsonEntityParser(JsonEntityParser&&) noexcept = default;
JsonEntityParser& JsonEntityParser::operator=(JsonEntityParser&&) noexcept = default;

Result<Entity> JsonEntityParser::Parse(std::string_view json) {
  PARTITA_TRY(state_->Scan(json));
  return state_->Build();
}

JsonLinesReader::JsonLinesReader(std::unique_ptr<ByteSource> source, size_t record_bytes_max)
    : lines_(std::move(source), record_bytes_max) {}

std::optional<Result<Entity>> JsonLinesReader::Next() {
  while (std::optional<Result<Line>> line = lines_.Next()) {
    if (!line->ok()) return Result<Entity>(line->status());
    const std::string_view text = line->value().text;
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    Result<Entity> entity = parser_.Parse(text);
    if (entity.ok()) return entity;
    return Result<Entity>(entity.status().WithContext("line " + std::to_string(line->value().number)));
  }
  return std::nullopt;
}

void AppendJsonString(std::string* out, std::string_view text) {
  out->push_back('"');
  size_t plain = 0;  // Start of what was not yet appended.
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
    out->append(text.substr(plain, at - plain));
    plain = at + 1;
    if (byte == '"' || byte == '\\') {
      out->push_back('\\');
      out->push_back(text[at]);
    } else if (byte == '\n') {
      out->append("\\n");
    } else {
      out->append("\\u00");
      out->push_back("0123456789abcdef"[byte >> 4]);
      out->push_back("0123456789abcdef"[byte & 0xF]);
    }
  }
  out->append(text.substr(plain));
  out->push_back('"');
}

void AppendJsonProperty(std::string* out, std::string_view name, const PropertyValue& value) {
  const PropertyType type = value.type();
  const bool finite = value.if_double() == nullptr || std::isfinite(*value.if_double());
  const bool bare = type == PropertyType::kInt32 || type == PropertyType::kBoolean ||
                    (type == PropertyType::kDouble && finite);
  if (!bare && type != PropertyType::kString) {
    out->push_back('"');
    out->append(name).append("@odata.type\":\"").append(EdmTypeName(type)).append("\",");
  }
  AppendJsonString(out, name);
  out->push_back(':');
  if (const std::string* text = value.if_string()) return AppendJsonString(out, *text);
  if (!bare) out->push_back('"');
  AppendValueText(out, value);
  if (!bare) out->push_back('"');
}

void AppendJsonLine(std::string* out, const Entity& entity, JsonTimestamp timestamp) {
  out->append("{\"PartitionKey\":");
  AppendJsonString(out, entity.partition_key());
  out->append(",\"RowKey\":");
  AppendJsonString(out, entity.row_key());
  if (timestamp == JsonTimestamp::kInclude && entity.timestamp_ticks() != 0) {
    out->append(",\"Timestamp\":\"");
    AppendDateTime(out, DateTime{entity.timestamp_ticks()});
    out->push_back('"');
  }
  for (const Property& property : entity.properties()) {
    out->push_back(',');
    AppendJsonProperty(out, property.name, property.value);
  }
  out->append("}\n");
}

}  // namespace partita
