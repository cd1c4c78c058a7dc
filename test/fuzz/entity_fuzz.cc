// Hostile bytes against everything that reads entities: records, JSON, CSV, package indexes, tags
// (F42, F77). The first byte chooses the reader. What is accepted must come back from its own writer.
#include <cstdint>
#include <string>
#include <string_view>

#include "api/cli/csv.h"
#include "api/cli/debian_index.h"
#include "api/cli/jsonl.h"
#include "api/date_time.h"
#include "api/entity_codec.h"
#include "api/etag.h"
#include "engine/base/assert.h"
#include "engine/base/property_probe.h"
#include "engine/base/text.h"

namespace partita {
namespace {

// Ids 1 to 3 have names.
class SomeNames : public PropertyNames {
 public:
  uint16_t IdOf(std::string_view name) const override {
    return name == "a" ? 1 : name == "bb" ? 2 : name == "ccc" ? 3 : 0;
  }
  std::string_view NameOf(uint16_t id) const override {
    constexpr std::string_view kNames[] = {"", "a", "bb", "ccc"};
    return id < std::size(kNames) ? kNames[id] : std::string_view();
  }
};

void ReadRecord(std::string_view bytes, const PropertyNames* names) {
  const EntityRecordView view(bytes, names);
  const bool walkable = view.IsWalkable();
  if (walkable) ZoneCodes(bytes, names, [](std::string_view, PropertyType, uint64_t) {});
  const std::optional<size_t> billed = view.BilledSizeIfWalkable();
  PARTITA_ASSERT(billed.has_value() == walkable);
  if (!view.Check().ok()) return;
  PARTITA_ASSERT(walkable);
  size_t size = 0;
  for (size_t k = 0; k < view.property_count(); ++k) {
    const PropertyView property = view.inserted(k);
    PARTITA_ASSERT(view.Find(property.name()).has_value());
    const PropertyValue value = property.ToValue();
    PARTITA_ASSERT(value.if_string() == nullptr || IsValidUtf8(*value.if_string()));
    size += property.BilledSize();
  }
  PARTITA_ASSERT(size == view.BilledSize() && size == *billed);
}

// As filters do, which ask before anybody has verified the bytes.
void ProbeRecord(std::string_view bytes, const PropertyNames* names) {
  for (const char* name : {"a", "bb", "zz"}) {
    PropertyProbe probe(name, names);
    for (const std::string_view content : {bytes, bytes.substr(0, bytes.size() / 2), bytes}) {
      probe.Prefetch(content);
      const std::optional<PropertyView> found = probe.Find(content);
      if (found) PARTITA_ASSERT(found->ToValue().type() == found->type());
    }
  }
}

void FuzzRecord(std::string_view bytes) {
  static const SomeNames names;
  ReadRecord(bytes, nullptr);
  ReadRecord(bytes, &names);
  ProbeRecord(bytes, nullptr);
  ProbeRecord(bytes, &names);
  const std::string_view left = bytes.substr(0, bytes.size() / 2);
  const std::string_view right = bytes.substr(bytes.size() / 2);
  const Result<std::string> halves = MergeEntityRecords(left, right, &names);
  if (halves.ok()) PARTITA_ASSERT(EntityRecordView(*halves, &names).Check().ok());
  const Result<std::string> self = MergeEntityRecords(bytes, bytes, &names);
  if (self.ok()) PARTITA_ASSERT(EntityRecordView(*self, &names).Check().ok());
}

void FuzzJson(std::string_view bytes) {
  static JsonEntityParser parser;
  const Result<Entity> entity = parser.Parse(bytes);
  if (!entity.ok()) return;
  std::string line;
  AppendJsonLine(&line, *entity);
  const Result<Entity> again = parser.Parse(line);
  PARTITA_ASSERT(again.ok() && *again == *entity);
  const Result<Entity> decoded =
      DecodeEntity(EncodeEntityKey(TableId(1), *entity), Version(1), EncodeEntityContent(*entity));
  PARTITA_ASSERT(decoded.ok() && *decoded == *entity);
}

void Drain(RecordReader* reader, size_t bytes) {
  size_t records = 0;
  while (std::optional<Result<Entity>> record = reader->Next()) {
    PARTITA_ASSERT(++records <= bytes + 1);  // Each record takes at least one byte.
    if (record->ok()) PARTITA_ASSERT(ValidateEntity(record->value()).ok());
  }
}

void FuzzReaders(std::string_view bytes, size_t step) {
  constexpr size_t kMax = 64;  // Small, so that long records are met.
  Result<std::unique_ptr<CsvReader>> csv = CsvReader::Open(std::make_unique<MemorySource>(bytes, step), kMax);
  if (csv.ok()) Drain(csv->get(), bytes.size());
  JsonLinesReader json(std::make_unique<MemorySource>(bytes, step), kMax);
  Drain(&json, bytes.size());
  DebianIndexReader index(std::make_unique<MemorySource>(bytes, step), kMax);
  Drain(&index, bytes.size());
}

void FuzzTexts(std::string_view bytes) {
  const ParsedEtag etag = ParseEtag(bytes);
  if (etag.form == EtagForm::kVersion) PARTITA_ASSERT(bytes.find(FormatEtag(etag.version)) != bytes.npos);
  const Result<DateTime> time = ParseDateTime(bytes);
  if (time.ok()) PARTITA_ASSERT(ParseDateTime(FormatDateTime(*time))->ticks == time->ticks);
}

}  // namespace
}  // namespace partita

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      partita::FuzzRecord(bytes);
      break;
    case 1:
      partita::FuzzJson(bytes);
      break;
    case 2:
      partita::FuzzReaders(bytes, 1 + data[0] / 4);
      break;
    default:
      partita::FuzzTexts(bytes);
  }
  return 0;
}
