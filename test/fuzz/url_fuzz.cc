// Hostile addresses: targets, Host headers, URLs of batch parts, query strings, media types and selections.
// What is accepted must hold what the headers promise, and an entity's own URL must lead back to it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/json_writer.h"
#include "api/http/media_type.h"
#include "api/http/query_parameters.h"
#include "api/http/resource.h"
#include "api/http/selection.h"
#include "api/names.h"
#include "engine/base/assert.h"
#include "engine/base/text.h"

namespace partita::http {
namespace {

void CheckKeyText(std::string_view key) {
  PARTITA_ASSERT(IsValidUtf8(key));
  const Violation violation = ViolationOf(CheckKey(KeyKind::kRowKey, key));
  PARTITA_ASSERT(violation == Violation::kNone || violation == Violation::kPropertyValueTooLarge);
}

void CheckResource(const Resource& resource) {
  CheckKeyText(resource.partition_key);
  CheckKeyText(resource.row_key);
  PARTITA_ASSERT(IsValidUtf8(resource.table));
  for (const char c : resource.base.host) PARTITA_ASSERT(static_cast<uint8_t>(c) > 0x20 && c != '"');
  if (!resource.HasKeys() || !CheckTableName(resource.table).ok()) return;
  std::string url = "http://other.example/";
  url.append(resource.table).append("(PartitionKey='");
  AppendUrlKey(&url, resource.partition_key);
  url.append("',RowKey='");
  AppendUrlKey(&url, resource.row_key);
  url.append("')");
  Resource again;
  PARTITA_ASSERT(!ParseInnerResource(url, resource, &again));
  PARTITA_ASSERT(again.partition_key == resource.partition_key && again.row_key == resource.row_key);
  PARTITA_ASSERT(again.table == resource.table);
}

void FuzzTarget(std::string_view bytes, std::string_view host) {
  const AddressRules rules;
  Resource resource;
  if (ParseResource(bytes, host, false, rules, &resource)) return;
  CheckResource(resource);
  Resource inner;
  if (!ParseInnerResource(bytes, resource, &inner)) CheckResource(inner);
}

void FuzzQuery(std::string_view bytes) {
  QueryParameters parameters;
  if (parameters.Parse(bytes)) return;
  for (size_t i = 0; i < parameters.size(); ++i) {
    PARTITA_ASSERT(IsValidUtf8(parameters.name(i)) && IsValidUtf8(parameters.value(i)));
    PARTITA_ASSERT(parameters.Find(parameters.name(i)) == parameters.value(i));
  }
  uint32_t seconds = 0;
  if (!parameters.Timeout(&seconds)) PARTITA_ASSERT(seconds >= 1 && seconds <= kTimeoutSecondsMax);
  (void)parameters.CheckSupported();
}

void FuzzSmallTexts(std::string_view bytes) {
  MetadataLevel level;
  (void)ChooseMetadataLevel(std::nullopt, bytes, &level);
  (void)ChooseMetadataLevel(bytes, std::nullopt, &level);
  (void)CheckJsonContentType(bytes);
  (void)MediaTypeParameter(bytes, "boundary");
  Selection selection;
  if (Selection::Parse(bytes, &selection)) return;
  for (const std::string& name : selection.names()) PARTITA_ASSERT(!name.empty());
}

}  // namespace
}  // namespace partita::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t middle = bytes.size() / 2;
  switch (data[0] % 5) {
    case 0:
      partita::http::FuzzTarget(bytes, "127.0.0.1:10002");
      break;
    case 1:
      partita::http::FuzzTarget(bytes, "acct1.table.core.example");
      break;
    case 2:
      partita::http::FuzzTarget(bytes.substr(middle), bytes.substr(0, middle));
      break;
    case 3:
      partita::http::FuzzQuery(bytes);
      break;
    default:
      partita::http::FuzzSmallTexts(bytes);
  }
  return 0;
}
