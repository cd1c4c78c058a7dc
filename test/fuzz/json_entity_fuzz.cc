// Hostile JSON bodies of the HTTP face. What is accepted and what a table takes must come back from its own
// answer; the 64 bytes behind a body must not matter.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "api/entity.h"
#include "api/http/json_reader.h"
#include "api/http/json_writer.h"
#include "engine/base/assert.h"
#include "engine/base/text.h"
#include "engine/base/user_key.h"

namespace partita::http {
namespace {

constexpr size_t kBehind = 64;

// A copy with exactly the bytes behind it that are promised, so that a sanitizer sees each one more.
class Body {
 public:
  Body(std::string_view text, char behind)
      : size_(text.size()), bytes_(std::make_unique<char[]>(size_ + kBehind)) {
    text.copy(bytes_.get(), size_);
    std::fill_n(bytes_.get() + size_, kBehind, behind);
  }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  size_t size_;
  std::unique_ptr<char[]> bytes_;
};

void CheckAnswer(const Entity& entity, MetadataLevel level) {
  const std::string record = EncodeEntityRecord(entity.properties());
  const EntityFormat format(EntityFormat::Shape::kLone, level, {.host = "h"}, "acct1", "t", Selection());
  const std::string partition_key = OrderedText(entity.partition_key());
  const std::string row_key = OrderedText(entity.row_key());
  std::string json;
  format.AppendEntity(&json, {partition_key, row_key, 1, EntityRecordView(record)});
  PARTITA_ASSERT(IsValidUtf8(json));
  Entity again;
  PARTITA_ASSERT(!JsonBodyReader::OfThisThread().ReadInsert(Body(json, 'x').view(), &again));
  PARTITA_ASSERT(again == entity);
}

void FuzzBody(std::string_view bytes) {
  JsonBodyReader& reader = JsonBodyReader::OfThisThread();
  Entity entity;
  Entity same;
  const std::optional<ServiceError> refusal = reader.ReadInsert(Body(bytes, '\0').view(), &entity);
  const std::optional<ServiceError> again = reader.ReadInsert(Body(bytes, '"').view(), &same);
  PARTITA_ASSERT(refusal.has_value() == again.has_value());
  Entity update;
  std::string table;
  (void)reader.ReadTableName(Body(bytes, '}').view(), &table);
  const std::optional<ServiceError> update_refusal =
      reader.ReadUpdate(Body(bytes, '1').view(), entity.partition_key(), entity.row_key(), &update);
  if (refusal) {
    PARTITA_ASSERT(refusal->status == 400 && refusal->code == again->code);
    return;
  }
  PARTITA_ASSERT(entity == same);
  PARTITA_ASSERT(!update_refusal && update == entity);
  if (!ValidateEntity(entity).ok()) return;
  CheckAnswer(entity, MetadataLevel::kMinimal);
  CheckAnswer(entity, MetadataLevel::kFull);
}

}  // namespace
}  // namespace partita::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  partita::http::FuzzBody(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
