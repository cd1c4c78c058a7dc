#pragma once
#include <optional>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/status.h"

namespace partita {

namespace internal {
// Ends the process as AssertFailed does, and says of which failure a value was asked.
[[noreturn]] void ValueOfFailure(const Status& status);
}  // namespace internal

// A T or a non-ok Status. Value type; not thread-safe.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) {  // NOLINT: implicit by intent
    PARTITA_ASSERT(!status_.ok());
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Code code() const { return status_.code(); }

  // REQUIRES: ok().
  T& value() & {
    AssertOk();
    return *value_;
  }
  const T& value() const& {
    AssertOk();
    return *value_;
  }
  T&& value() && {
    AssertOk();
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void AssertOk() const {
    if (!ok()) [[unlikely]]
      internal::ValueOfFailure(status_);
  }

  Status status_;
  std::optional<T> value_;
};

namespace internal {
inline Status ToStatus(Status status) { return status; }
template <typename T>
Status ToStatus(const Result<T>& result) {
  return result.status();
}
}  // namespace internal

}  // namespace partita

#define PARTITA_CONCAT_INNER(a, b) a##b
#define PARTITA_CONCAT(a, b) PARTITA_CONCAT_INNER(a, b)

// Returns a non-ok status to the caller. Stands alone as a statement.
#define PARTITA_TRY(expression)                                      \
  do {                                                               \
    auto partita_status = ::partita::internal::ToStatus(expression); \
    if (!partita_status.ok()) return partita_status;                 \
  } while (false)

// `PARTITA_ASSIGN(auto x, F());` unwraps the value or returns the status.
#define PARTITA_ASSIGN(declaration, expression) \
  PARTITA_ASSIGN_INNER(PARTITA_CONCAT(partita_result_, __LINE__), declaration, return, expression)

// The same inside coroutines; the expression may hold a co_await.
#define PARTITA_CO_TRY(expression)                                                   \
  do {                                                                               \
    auto partita_outcome = (expression);                                             \
    auto partita_status = ::partita::internal::ToStatus(std::move(partita_outcome)); \
    if (!partita_status.ok()) co_return partita_status;                              \
  } while (false)

#define PARTITA_CO_ASSIGN(declaration, expression) \
  PARTITA_ASSIGN_INNER(PARTITA_CONCAT(partita_result_, __LINE__), declaration, co_return, expression)

#define PARTITA_ASSIGN_INNER(result, declaration, leave, expression) \
  auto result = (expression);                                        \
  if (!result.ok()) leave result.status();                           \
  declaration = std::move(result).value()
