#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/entity.h"
#include "api/http/service_error.h"

namespace partita::http {

// More distinct names than this in one body are TooManyProperties even if most are null, so that a hostile
// body costs little. (An entity has at most 252 properties, each with an annotation.)
inline constexpr size_t kBodyNamesMax = 1024;

// Reads the JSON bodies of requests (spec 5.5, 6). Keeps its buffers between calls; used by one thread.
//
// `body` must be followed by 64 readable bytes, whatever they hold (HttpRequest::body and every piece of
// it is). The entity is filled anew; it holds copies, nothing of the body. After a refusal its content is
// unspecified.
//
// Refusals, 400: InvalidInput for what is no JSON object, nested values, unknown types, text that is not of
// its type, a key that is no string; DuplicatePropertiesSpecified; PropertiesNeedValue; OutOfRangeInput for a
// DateTime before 1601; TooManyProperties above kBodyNamesMax. Names, values and sizes are left to
// ValidateEntity (every write asks it), and the order of checks is that of spec 8 all the same: when a value
// cannot be converted, an entity with too many properties or a bad name is refused for those first.
class JsonBodyReader {
 public:
  JsonBodyReader();
  ~JsonBodyReader();
  JsonBodyReader(JsonBodyReader&&) noexcept;
  JsonBodyReader& operator=(JsonBodyReader&&) noexcept;

  // This thread's own. The calls do not suspend, so coroutines may use it between two awaits.
  static JsonBodyReader& OfThisThread();

  // The entity of an insert: both keys are required.
  std::optional<ServiceError> ReadInsert(std::string_view body, Entity* entity);

  // The entity of a replace, merge or upsert: the URL's keys decide; in the body they may be absent or null,
  // and else must be equal (InvalidInput).
  std::optional<ServiceError> ReadUpdate(std::string_view body, std::string_view partition_key,
                                         std::string_view row_key, Entity* entity);

  // `{"TableName":"t"}`: the name, unchecked. PropertiesNeedValue when absent or null; other names
  // mean nothing.
  std::optional<ServiceError> ReadTableName(std::string_view body, std::string* name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita::http
