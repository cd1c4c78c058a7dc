#include "api/http/json_writer.h"

#include <cmath>

#include "api/date_time.h"
#include "api/etag.h"
#include "api/http/text_sink.h"
#include "api/value_text.h"
#include "engine/base/assert.h"

namespace partita::http {
namespace {

// Room for one value without text: quotes, punctuation, and the longest number or time.
constexpr size_t kFixedMemberMax = 64;
static_assert(kFixedMemberMax >= std::max(kDoubleTextMax, kGuidTextSize) + 8);

char* AppendTo(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

// Types whose JSON text alone does not tell them; minimal and full metadata annotate these (spec 5.2).
bool NeedsAnnotation(const PropertyView& property) {
  switch (property.type()) {
    case PropertyType::kInt64:
    case PropertyType::kGuid:
    case PropertyType::kDateTime:
    case PropertyType::kBinary:
      return true;
    case PropertyType::kDouble:
      return !std::isfinite(DoubleFromOrderedCode(property.code()));
    default:
      return false;
  }
}

void WriteBinary(TextSink* sink, std::string_view bytes) {
  sink->Reserve(Base64Size(bytes.size()) + 2);
  char* to = sink->at();
  *to++ = '"';
  to = WriteBase64(to, bytes);
  *to++ = '"';
  sink->AdvanceTo(to);
}

// A value of at most kFixedMemberMax bytes.
char* WriteFixedValue(char* to, const PropertyView& property) {
  switch (property.type()) {
    case PropertyType::kInt32:
      return WriteInteger(to, Int64FromOrderedCode(property.code()));
    case PropertyType::kBoolean:
      return AppendTo(to, property.code() != 0 ? "true" : "false");
    case PropertyType::kDouble: {
      const double number = DoubleFromOrderedCode(property.code());
      if (std::isfinite(number)) return WriteDouble(to, number);
      *to++ = '"';
      to = WriteDouble(to, number);
      break;
    }
    case PropertyType::kInt64:
      *to++ = '"';
      to = WriteInteger(to, Int64FromOrderedCode(property.code()));
      break;
    case PropertyType::kDateTime:
      *to++ = '"';
      to = WriteDateTime(to, DateTime{property.code()});
      break;
    case PropertyType::kGuid: {
      Guid guid;
      PARTITA_ASSERT(property.raw().size() == guid.bytes.size());
      std::memcpy(guid.bytes.data(), property.raw().data(), guid.bytes.size());
      *to++ = '"';
      to = WriteGuid(to, guid);
      break;
    }
    case PropertyType::kString:
    case PropertyType::kBinary:
      PARTITA_ASSERT(false);  // These have no bound: WriteProperty.
  }
  *to++ = '"';
  return to;
}

// `"a":1,` or `"a@odata.type":"Edm.Int64","a":"1",`. Names are identifiers, which need no escape.
void WriteProperty(TextSink* sink, const PropertyView& property, MetadataLevel level) {
  const std::string_view name = property.name();
  sink->Reserve(2 * name.size() + kFixedMemberMax + 64);
  char* to = sink->at();
  if (level != MetadataLevel::kNone && NeedsAnnotation(property)) {
    *to++ = '"';
    to = AppendTo(to, name);
    to = AppendTo(to, R"(@odata.type":")");
    to = AppendTo(to, EdmTypeName(property.type()));
    to = AppendTo(to, R"(",)");
  }
  *to++ = '"';
  to = AppendTo(to, name);
  to = AppendTo(to, R"(":)");
  if (property.type() == PropertyType::kString) {
    sink->AdvanceTo(to);
    WriteJsonString(sink, property.raw());
  } else if (property.type() == PropertyType::kBinary) {
    sink->AdvanceTo(to);
    WriteBinary(sink, property.raw());
  } else {
    sink->AdvanceTo(WriteFixedValue(to, property));
  }
  sink->Push(',');
}

void WriteTimestamp(TextSink* sink, uint64_t ticks, MetadataLevel level) {
  if (level == MetadataLevel::kFull) sink->Append(R"("Timestamp@odata.type":"Edm.DateTime",)");
  sink->Append(R"("Timestamp":")");
  sink->Reserve(kDateTimeTextMax);
  sink->AdvanceTo(WriteDateTime(sink->at(), DateTime{ticks}));
  sink->Append(R"(",)");
}

void WriteEtagMember(TextSink* sink, uint64_t ticks) {
  char etag[kEtagTextMax];
  const char* end = WriteEtag(etag, Version(ticks));
  sink->Append(R"("odata.etag":)");
  WriteJsonString(sink, std::string_view(etag, static_cast<size_t>(end - etag)));
  sink->Push(',');
}

// What follows `...(PartitionKey='` in a URL within JSON.
void WriteUrlKeys(TextSink* sink, const EntityRow& row) {
  WriteUrlKey(sink, row.partition_key);
  sink->Append("',RowKey='");
  WriteUrlKey(sink, row.row_key);
  sink->Append("')\",");
}

std::string UrlBaseText(const UrlBase& base) {
  std::string text;
  AppendUrlBase(&text, base);
  return text;
}

// The JSON member odata.metadata with its comma; nothing without metadata.
std::string MetadataMember(MetadataLevel level, const UrlBase& base, std::string_view fragment) {
  std::string member;
  if (level == MetadataLevel::kNone) return member;
  member.append(R"("odata.metadata":)");
  AppendJsonString(&member, UrlBaseText(base).append("/$metadata#").append(fragment));
  member.push_back(',');
  return member;
}

// `&$select=a,b`: commas bare, the rest as in a URL.
std::string SelectFragment(const Selection& selection) {
  std::string fragment;
  if (!selection.asked()) return fragment;
  fragment.append("&$select=");
  std::string_view rest = selection.text();
  while (!rest.empty()) {
    const size_t size = std::min(rest.find_first_of(",'*"), rest.size());
    AppendUrlKey(&fragment, rest.substr(0, size));
    if (size < rest.size()) fragment.push_back(rest[size]);
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  return fragment;
}

void AppendSeparator(std::string* out) {
  if (!out->empty() && out->back() != '[') out->push_back(',');
}

// The members of a table, without braces.
void AppendTableMembers(std::string* out, MetadataLevel level, const UrlBase& base, std::string_view account,
                        std::string_view table) {
  if (level == MetadataLevel::kFull) {
    std::string url;
    AppendTableUrl(&url, base, table);
    out->append(R"("odata.type":)");
    AppendJsonString(out, std::string(account).append(".Tables"));
    out->append(R"(,"odata.id":)");
    AppendJsonString(out, url);
    out->append(R"(,"odata.editLink":)");
    AppendJsonString(out, std::string("Tables('").append(table).append("')"));
    out->push_back(',');
  }
  out->append(R"("TableName":)");
  AppendJsonString(out, table);
}

}  // namespace

void AppendTableUrl(std::string* out, const UrlBase& base, std::string_view table) {
  AppendUrlBase(out, base);
  out->append("/Tables('").append(table).append("')");
}

void AppendEntityUrl(std::string* out, const UrlBase& base, std::string_view table,
                     std::string_view partition_key, std::string_view row_key) {
  AppendEntityUrlStart(out, base, table, partition_key);
  AppendEntityUrlEnd(out, row_key);
}

void AppendEntityUrlStart(std::string* out, const UrlBase& base, std::string_view table,
                          std::string_view partition_key) {
  AppendUrlBase(out, base);
  out->append("/").append(table).append("(PartitionKey='");
  AppendUrlKey(out, partition_key);
  out->append("',RowKey='");
}

void AppendEntityUrlEnd(std::string* out, std::string_view row_key) {
  AppendUrlKey(out, row_key);
  out->append("')");
}

EntityFormat::EntityFormat(Shape shape, MetadataLevel level, const UrlBase& base, std::string_view account,
                           std::string_view table, const Selection& selection, const PropertyNames* names)
    : shape_(shape), level_(level), selects_all_(selection.selects_all()) {
  for (const std::string& name : selection.names()) AddColumn(name, names);
  start_ = "{";
  if (level != MetadataLevel::kNone) {
    std::string fragment(table);
    if (shape == Shape::kLone) fragment.append("/@Element");
    start_.append(MetadataMember(level, base, fragment.append(SelectFragment(selection))));
  }
  if (shape == Shape::kList) start_.append(R"("value":[)");
  if (level != MetadataLevel::kFull) return;
  const std::string url = UrlBaseText(base).append("/").append(table).append("(PartitionKey='");
  id_start_ = R"("odata.type":)";
  AppendJsonString(&id_start_, std::string(account).append(".").append(table));
  id_start_.append(R"(,"odata.id":)");
  AppendJsonString(&id_start_, url);
  id_start_.pop_back();  // The keys follow within the string.
  link_start_ = R"("odata.editLink":)";
  AppendJsonString(&link_start_, std::string(table).append("(PartitionKey='"));
  link_start_.pop_back();
}

void EntityFormat::AddColumn(const std::string& name, const PropertyNames* names) {
  // A name of an annotation, which go by the level; no property can have one. As a property that nobody has
  // it would stand there twice, null behind the right one.
  const bool annotates = name.starts_with("odata.") || name.ends_with("@odata.type");
  if (level_ != MetadataLevel::kNone && annotates) return;
  Column column;
  if (name == "PartitionKey") {
    column.kind = Column::Kind::kPartitionKey;
  } else if (name == "RowKey") {
    column.kind = Column::Kind::kRowKey;
  } else if (name == "Timestamp") {
    column.kind = Column::Kind::kTimestamp;
  } else if (names != nullptr) {
    column.id = names->IdOf(name);
  }
  column.name = name;
  AppendJsonString(&column.label, name);
  column.label.push_back(':');
  columns_.push_back(std::move(column));
}

void EntityFormat::WriteSelected(TextSink* sink, const EntityRow& row) const {
  for (const Column& column : columns_) {
    switch (column.kind) {
      case Column::Kind::kPartitionKey:
      case Column::Kind::kRowKey:
        sink->Append(column.label);
        WriteJsonString(sink, column.kind == Column::Kind::kRowKey ? row.row_key : row.partition_key);
        sink->Push(',');
        break;
      case Column::Kind::kTimestamp:
        WriteTimestamp(sink, row.timestamp_ticks, level_);
        break;
      case Column::Kind::kCustom:
        if (const std::optional<PropertyView> property = row.record.Find(column.name, column.id)) {
          WriteProperty(sink, *property, level_);
        } else {
          sink->Append(column.label);
          sink->Append("null,");
        }
        break;
    }
  }
}

void EntityFormat::WriteAll(TextSink* sink, const EntityRow& row) const {
  sink->Append(R"("PartitionKey":)");
  WriteJsonString(sink, row.partition_key);
  sink->Append(R"(,"RowKey":)");
  WriteJsonString(sink, row.row_key);
  sink->Push(',');
  WriteTimestamp(sink, row.timestamp_ticks, level_);
  const size_t count = row.record.property_count();
  for (size_t k = 0; k < count; ++k) WriteProperty(sink, row.record.inserted(k), level_);
}

void EntityFormat::AppendRow(std::string* out, std::string_view start, const EntityRow& row) const {
  // Text of about the record's size, and labels, annotations and metadata around it.
  const size_t around = 256 + start.size() + id_start_.size() + row.record.property_count() * 32;
  TextSink sink(out, around + row.record.content().size() + row.record.content().size() / 4);
  sink.Append(start);
  if (level_ == MetadataLevel::kFull) {
    sink.Append(id_start_);
    WriteUrlKeys(&sink, row);
  }
  if (level_ != MetadataLevel::kNone) WriteEtagMember(&sink, row.timestamp_ticks);
  if (level_ == MetadataLevel::kFull) {
    sink.Append(link_start_);
    WriteUrlKeys(&sink, row);
  }
  if (selects_all_) {
    WriteAll(&sink, row);
  } else {
    WriteSelected(&sink, row);
  }
  // Every member ends with a comma, and there is one at least.
  *(sink.at() - 1) = '}';
}

void EntityFormat::AppendEntity(std::string* out, const EntityRow& row) const {
  PARTITA_ASSERT(shape_ == Shape::kLone);
  AppendRow(out, start_, row);
}

void EntityFormat::AppendListStart(std::string* out) const {
  PARTITA_ASSERT(shape_ == Shape::kList);
  out->append(start_);
}

void EntityFormat::AppendListEntity(std::string* out, const EntityRow& row) const {
  PARTITA_ASSERT(shape_ == Shape::kList);
  AppendSeparator(out);
  AppendRow(out, "{", row);
}

void AppendListEnd(std::string* out) { out->append("]}"); }

void AppendTable(std::string* out, MetadataLevel level, const UrlBase& base, std::string_view account,
                 std::string_view table) {
  out->append("{").append(MetadataMember(level, base, "Tables/@Element"));
  AppendTableMembers(out, level, base, account, table);
  out->push_back('}');
}

void AppendTableListStart(std::string* out, MetadataLevel level, const UrlBase& base) {
  out->append("{").append(MetadataMember(level, base, "Tables")).append(R"("value":[)");
}

void AppendListTable(std::string* out, MetadataLevel level, const UrlBase& base, std::string_view account,
                     std::string_view table) {
  AppendSeparator(out);
  out->push_back('{');
  AppendTableMembers(out, level, base, account, table);
  out->push_back('}');
}

}  // namespace partita::http
