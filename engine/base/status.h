#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace partita {

// A code means a decision the caller can take; what happened is in the message.
enum class Code : uint8_t {
  kOk = 0,
  kNotFound,            // No such entity or table.
  kAlreadyExists,       // An insert met an existing entity or table.
  kPreconditionFailed,  // The ETag given is not the entity's current one; of ranges, they are on two shards.
  kInvalidArgument,     // A name, key, value or option breaks a rule; the message says which.
  kThrottled,           // Over a throughput target; retry_after_us() says how long to wait.
  kBusy,                // A bounded queue or the memory budget is full; try again soon.
  kNoSpace,             // The disk is full; reads go on, writes resume when space returns.
  kResourceExhausted,   // Memory or descriptors are used up.
  kUnknown,             // In doubt: the write is wholly there or wholly not (F15).
  kDeadlineExceeded,
  kCancelled,
  kClosed,       // The store is closed or closing.
  kLocked,       // Another process holds the store (F64).
  kUnsupported,  // A newer format, a feature this machine lacks, a write to what is open for reading only.
  kIoError,      // The disk failed. Of a write: not done, and its shard takes none until its log works again.
  kCorruption,   // Bytes failed verification; the keys they hold cannot be answered (F43).
  kMoved,        // Engine only: the range has another owner now; route again.
};

// The code's name as it is printed, e.g. "NotFound".
std::string_view CodeName(Code code);

// Ok, or a code with a message that says what, where and which rule. Value type; not thread-safe.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status NotFound(std::string m) { return {Code::kNotFound, std::move(m)}; }
  static Status AlreadyExists(std::string m) { return {Code::kAlreadyExists, std::move(m)}; }
  static Status PreconditionFailed(std::string m) { return {Code::kPreconditionFailed, std::move(m)}; }
  static Status InvalidArgument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
  static Status Throttled(std::string m, uint64_t retry_after_us) {
    Status status(Code::kThrottled, std::move(m));
    status.retry_after_us_ = retry_after_us;
    return status;
  }
  static Status Busy(std::string m) { return {Code::kBusy, std::move(m)}; }
  static Status NoSpace(std::string m) { return {Code::kNoSpace, std::move(m)}; }
  static Status ResourceExhausted(std::string m) { return {Code::kResourceExhausted, std::move(m)}; }
  static Status Unknown(std::string m) { return {Code::kUnknown, std::move(m)}; }
  static Status DeadlineExceeded(std::string m) { return {Code::kDeadlineExceeded, std::move(m)}; }
  static Status Cancelled(std::string m) { return {Code::kCancelled, std::move(m)}; }
  static Status Closed(std::string m) { return {Code::kClosed, std::move(m)}; }
  static Status Locked(std::string m) { return {Code::kLocked, std::move(m)}; }
  static Status Unsupported(std::string m) { return {Code::kUnsupported, std::move(m)}; }
  static Status IoError(std::string m) { return {Code::kIoError, std::move(m)}; }
  static Status Corruption(std::string m) { return {Code::kCorruption, std::move(m)}; }
  static Status Moved(std::string m) { return {Code::kMoved, std::move(m)}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // The wait that would suffice, in microseconds; 0 unless kThrottled.
  uint64_t retry_after_us() const { return retry_after_us_; }

  // A finer reason within the code, for a face that must tell reasons apart; 0 = none. Who sets it owns the
  // enum behind it: of kInvalidArgument Violation (api/names.h, ViolationOf), of kThrottled ThrottledBy
  // (throughput_targets.h), of kNotFound and kUnsupported those below.
  uint16_t detail() const { return detail_; }
  Status WithDetail(uint16_t detail) && {
    detail_ = detail;
    return std::move(*this);
  }

  // "Ok", or "Corruption: file 12, offset 4096: bad seal".
  std::string ToString() const;

  // The same code, with `context` and ": " before the message.
  Status WithContext(std::string_view context) const;

 private:
  Code code_ = Code::kOk;
  uint16_t detail_ = 0;
  uint64_t retry_after_us_ = 0;
  std::string message_;
};

// What is not there, of a kNotFound.
enum class Missing : uint16_t {
  kOther = 0,  // A row; a file, a directory.
  kTable = 1,  // The table: a handle to it is of no use any more, also where there is a new one of that name.
};
inline Missing MissingOf(const Status& status) {
  return status.code() == Code::kNotFound ? static_cast<Missing>(status.detail()) : Missing::kOther;
}

// What a store is not opened for want of, of a kUnsupported.
enum class Unmet : uint16_t {
  kOther = 0,          // A version that reads this format, above all.
  kIoUring = 1,        // IoBackend::kThreads does without.
  kStableStorage = 2,  // Options::allow_volatile_storage does without.
};
inline Unmet UnmetOf(const Status& status) {
  return status.code() == Code::kUnsupported ? static_cast<Unmet>(status.detail()) : Unmet::kOther;
}

}  // namespace partita
