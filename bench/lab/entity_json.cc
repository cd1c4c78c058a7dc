#include "bench/lab/entity_json.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>

#include "api/date_time.h"
#include "api/http/json_text.h"
#include "engine/base/assert.h"

namespace partita::lab {
namespace {

template <typename Number>
std::string Digits(Number number) {
  char text[40];
  return {text, std::to_chars(text, text + sizeof(text), number).ptr};
}

void AppendTyped(std::string* out, const std::string& name, PropertyType type, const std::string& value) {
  http::AppendJsonString(out, name + "@odata.type");
  out->append(":\"").append(EdmTypeName(type)).append("\",");
  http::AppendJsonString(out, name);
  out->append(":").append(value);
}

// Records have texts, whole numbers, times and numbers with a fraction.
void AppendProperty(std::string* out, const std::string& name, const PropertyValue& value) {
  if (const std::string* text = value.if_string()) {
    http::AppendJsonString(out, name);
    out->push_back(':');
    http::AppendJsonString(out, *text);
  } else if (const int64_t* whole = value.if_int64()) {
    AppendTyped(out, name, PropertyType::kInt64, "\"" + Digits(*whole) + "\"");
  } else if (const DateTime* time = value.if_date_time()) {
    AppendTyped(out, name, PropertyType::kDateTime, "\"" + FormatDateTime(*time) + "\"");
  } else {
    const double* number = value.if_double();
    PARTITA_ASSERT(number != nullptr && std::isfinite(*number));
    AppendTyped(out, name, PropertyType::kDouble, Digits(*number));
  }
}

PropertyValue ValueOf(const Field& field, simdjson::dom::element element) {
  std::string_view text;
  const bool is_text = element.get(text) == simdjson::SUCCESS;
  if (field.type() == PropertyType::kInt64) {
    int64_t number = 0;
    if (is_text) {
      std::from_chars(text.data(), text.data() + text.size(), number);
    } else {
      (void)element.get(number);
    }
    return number;
  }
  if (field.type() == PropertyType::kDouble) {
    double number = 0;
    (void)element.get(number);
    return number;
  }
  if (field.type() == PropertyType::kDateTime) {
    const Result<DateTime> time = ParseDateTime(text);
    return time.ok() ? *time : DateTime{};
  }
  return text;
}

Entity EntityFrom(simdjson::dom::element element, const std::vector<Field>& fields) {
  const auto text_of = [&](const char* name) {
    std::string_view text;
    (void)element[name].get(text);
    return std::string(text);
  };
  Entity entity(text_of("PartitionKey"), text_of("RowKey"));
  for (const Field& field : fields) {
    simdjson::dom::element value;
    if (element[field.name].get(value) == simdjson::SUCCESS) entity.Set(field.name, ValueOf(field, value));
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

}  // namespace partita::lab
