#include "bench/lab/entity_json.h"

#include <simdjson.h>

#include <cmath>

#include "api/date_time.h"
#include "api/http/json_text.h"
#include "api/names.h"
#include "api/value_text.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

void AppendTyped(std::string* out, const std::string& name, PropertyType type, const std::string& value) {
  http::AppendJsonString(out, name + "@odata.type");
  out->append(":\"").append(EdmTypeName(type)).append("\",");
  http::AppendJsonString(out, name);
  out->append(":").append(value);
}

bool IsQuoted(PropertyType type) {
  return type != PropertyType::kInt32 && type != PropertyType::kBoolean && type != PropertyType::kDouble;
}

void AppendProperty(std::string* out, const std::string& name, const PropertyValue& value) {
  if (const std::string* text = value.if_string()) {
    http::AppendJsonString(out, name);
    out->push_back(':');
    http::AppendJsonString(out, *text);
    return;
  }
  PARTITA_ASSERT(value.if_double() == nullptr || std::isfinite(*value.if_double()));
  std::string form;
  AppendValueText(&form, value);
  if (IsQuoted(value.type())) form = '"' + form + '"';
  AppendTyped(out, name, value.type(), form);
}

// What is not of the field's type, which only a strange service would send, is that type's least value.
PropertyValue ValueOf(const Field& field, simdjson::dom::element element) {
  const PropertyType type = field.type();
  std::string_view text;
  std::string form;
  if (element.get(text) == simdjson::SUCCESS) {
    form = text;
  } else if (double number = 0; type == PropertyType::kDouble && element.get(number) == simdjson::SUCCESS) {
    return number;
  } else {
    form = simdjson::minify(element);
  }
  Result<PropertyValue> value = ParseValueText(type, form);
  if (value.ok()) return std::move(*value);
  constexpr const char* kLeast[] = {
      "", "0", "0", "0", "false", "1601-01-01T00:00:00Z", "00000000-0000-0000-0000-000000000000", ""};
  return std::move(*ParseValueText(type, kLeast[static_cast<size_t>(type) - 1]));
}

Entity EntityFrom(simdjson::dom::element element, const std::vector<Field>& fields) {
  simdjson::dom::object properties;
  if (element.get(properties) != simdjson::SUCCESS) return Entity();
  const auto text_of = [&](const char* name) {
    std::string_view text;
    (void)element[name].get(text);
    return std::string(text);
  };
  Entity entity(text_of("PartitionKey"), text_of("RowKey"));
  // The service makes the ETag of the time, so it is known without a header.
  const Result<DateTime> time = ParseDateTime(text_of("Timestamp"));
  if (time.ok()) entity.set_timestamp_ticks(time->ticks);
  for (const Field& field : fields) {
    simdjson::dom::element value;
    // What it lacks of those that were selected is null.
    const bool is_there = element[field.name].get(value) == simdjson::SUCCESS && !value.is_null();
    if (is_there) entity.Set(field.name, ValueOf(field, value));
  }
  // What a layout made of several records has names of its own, and is text.
  for (const auto [name, value] : properties) {
    std::string_view text;
    const bool is_own =
        IsSystemPropertyName(name) || name.find('.') != std::string_view::npos || entity.Has(name);
    if (!is_own && value.get(text) == simdjson::SUCCESS) entity.Set(name, text);
  }
  return entity;
}

}  // namespace

std::string EntityJson(const Entity& entity) {
  std::string body = "{\"PartitionKey\":";
  http::AppendJsonString(&body, entity.partition_key());
  body += ",\"RowKey\":";
  http::AppendJsonString(&body, entity.row_key());
  for (const Property& property : entity.properties()) {
    body += ",";
    AppendProperty(&body, property.name, property.value);
  }
  return body + "}";
}

Result<std::vector<Entity>> ReadEntities(std::string_view body, const std::vector<Field>& fields,
                                         bool wants_properties) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array values;
  if (parser.parse(simdjson::padded_string(body)).get(root) != simdjson::SUCCESS ||
      root["value"].get(values) != simdjson::SUCCESS) {
    return Status::IoError("an answer to a query holds no list of entities");
  }
  std::vector<Entity> entities;
  for (const simdjson::dom::element value : values) {
    entities.push_back(wants_properties ? EntityFrom(value, fields) : Entity());
  }
  return entities;
}

Result<Entity> ReadEntity(std::string_view body, const std::vector<Field>& fields) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(simdjson::padded_string(body)).get(root) != simdjson::SUCCESS) {
    return Status::IoError("an answer to a point read is no entity");
  }
  return EntityFrom(root, fields);
}

Result<std::vector<std::string>> ReadTableNames(std::string_view body) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::array values;
  if (parser.parse(simdjson::padded_string(body)).get(root) != simdjson::SUCCESS ||
      root["value"].get(values) != simdjson::SUCCESS) {
    return Status::IoError("an answer to a query of tables holds no list of them");
  }
  std::vector<std::string> names;
  for (const simdjson::dom::element value : values) {
    std::string_view name;
    if (value["TableName"].get(name) == simdjson::SUCCESS) names.emplace_back(name);
  }
  return names;
}

}  // namespace partita::lab
