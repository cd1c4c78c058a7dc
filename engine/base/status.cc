#include "engine/base/status.h"

namespace partita {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "Ok";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kPreconditionFailed:
      return "PreconditionFailed";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kThrottled:
      return "Throttled";
    case Code::kBusy:
      return "Busy";
    case Code::kNoSpace:
      return "NoSpace";
    case Code::kResourceExhausted:
      return "ResourceExhausted";
    case Code::kUnknown:
      return "Unknown";
    case Code::kDeadlineExceeded:
      return "DeadlineExceeded";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kClosed:
      return "Closed";
    case Code::kLocked:
      return "Locked";
    case Code::kUnsupported:
      return "Unsupported";
    case Code::kIoError:
      return "IoError";
    case Code::kCorruption:
      return "Corruption";
    case Code::kMoved:
      return "Moved";
  }
  return "?";
}

std::string Status::ToString() const {
  std::string text(CodeName(code_));
  if (!message_.empty()) text.append(": ").append(message_);
  return text;
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  Status status(code_, std::string(context) + ": " + message_);
  status.retry_after_us_ = retry_after_us_;
  status.detail_ = detail_;
  return status;
}

}  // namespace partita
