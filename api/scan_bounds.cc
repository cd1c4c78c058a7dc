#include <algorithm>
#include <array>
#include <cstring>

#include "api/continuation.h"
#include "api/database_impl.h"
#include "api/names.h"
#include "engine/base/coding.h"

namespace partita {

KeyBuffer::KeyBuffer(TableId table, std::string_view partition_key, std::string_view row_key,
                     bool ordered_text) {
  PARTITA_ASSERT(partition_key.size() + row_key.size() <= kRawKeysMax);
  StoreBe32(bytes_, table.value);
  size_ = kTableIdSize;
  Append(partition_key, ordered_text);
  bytes_[size_++] = '\0';
  Append(row_key, ordered_text);
}

void KeyBuffer::Append(std::string_view text, bool ordered_text) {
  std::memcpy(bytes_ + size_, text.data(), text.size());
  if (ordered_text) {
    // UTF-8 with the lead bytes EE and EF as F5 and F6 (user_key.h).
    for (size_t i = size_; i < size_ + text.size(); ++i) {
      uint8_t byte = static_cast<uint8_t>(bytes_[i]);
      if (byte >= 0xEE && byte <= 0xEF) bytes_[i] = static_cast<char>(byte + 7);
    }
  }
  size_ += text.size();
}

Status CheckDurability(Durability durability) {
  if (durability <= Durability::kMemory) return Status();
  return Status::InvalidArgument("durability is " + std::to_string(static_cast<int>(durability)) +
                                 "; it must be kTableDefault, kPower, kProcess or kMemory");
}

Status CheckScanOrder(ScanOrder order) {
  if (order <= ScanOrder::kDescending) return Status();
  return Status::InvalidArgument("order is " + std::to_string(static_cast<int>(order)) +
                                 "; it must be kAscending or kDescending");
}

DurabilityLevel LevelOf(Durability asked, Durability table_default) {
  Durability durability = asked == Durability::kTableDefault ? table_default : asked;
  return static_cast<DurabilityLevel>(durability);
}

namespace {

std::string StoredText(std::string_view text, bool ordered_text) {
  return ordered_text ? OrderedText(text) : std::string(text);
}

struct NamedBound {
  std::string_view name;
  const std::optional<std::string>* value;
};

std::array<NamedBound, 5> NamedBounds(const ScanOptions& options) {
  return {{{"partition", &options.partition},
           {"partition_lower", &options.partition_lower},
           {"partition_upper", &options.partition_upper},
           {"row_lower", &options.row_lower},
           {"row_upper", &options.row_upper}}};
}

Status CheckScanOptions(const ScanOptions& options) {
  if (options.limit < 1 || options.limit > 100'000) {
    return Status::InvalidArgument("limit is " + std::to_string(options.limit) + "; it must be 1 to 100,000");
  }
  PARTITA_TRY(CheckScanOrder(options.order));
  if ((options.row_lower || options.row_upper) && !options.partition) {
    return Status::InvalidArgument("row bounds need `partition`: rows are ordered within a partition only");
  }
  if (options.partition && (options.partition_lower || options.partition_upper)) {
    return Status::InvalidArgument("give either `partition` or partition bounds, not both");
  }
  for (const auto& [name, bound] : NamedBounds(options)) {
    if (*bound && (*bound)->find('\0') != std::string::npos) {
      return Status::InvalidArgument(std::string(name) + " holds a zero byte");
    }
  }
  return Status();
}

// Bounds need not be keys, but text they must be: other bytes may be the stored form of another text.
Status CheckTextBounds(const ScanOptions& options) {
  if (options.partition) PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, *options.partition));
  for (const auto& [name, bound] : NamedBounds(options)) {
    if (*bound) PARTITA_TRY(CheckUtf8(name, **bound));
  }
  return Status();
}

}  // namespace

Result<ScanBounds> BoundsOf(const ScanOptions& options, TableId table, bool ordered_text) {
  PARTITA_TRY(CheckScanOptions(options));
  if (ordered_text) PARTITA_TRY(CheckTextBounds(options));
  ScanBounds bounds{TableLowerBound(table), TableUpperBound(table)};
  if (options.partition) {
    std::string partition = StoredText(*options.partition, ordered_text);
    bounds.lower = EncodeUserKey(table, partition, StoredText(options.row_lower.value_or(""), ordered_text));
    if (options.row_upper) {
      bounds.upper = EncodeUserKey(table, partition, StoredText(*options.row_upper, ordered_text));
    } else {
      bounds.upper = PrefixSuccessor(EncodeUserKey(table, partition, ""));
    }
  }
  if (options.partition_lower) {
    bounds.lower = EncodeUserKey(table, StoredText(*options.partition_lower, ordered_text), "");
  }
  if (options.partition_upper) {
    bounds.upper = EncodeUserKey(table, StoredText(*options.partition_upper, ordered_text), "");
  }
  if (options.continuation.empty()) return bounds;
  PARTITA_ASSIGN(std::string from, KeyOfContinuation(options.continuation, options.order, table));
  if (options.order == ScanOrder::kAscending) {
    bounds.lower = std::max(bounds.lower, from);
  } else {
    bounds.upper = std::min(bounds.upper, from);
  }
  return bounds;
}

Direction DirectionOf(ScanOrder order) {
  return order == ScanOrder::kAscending ? Direction::kForward : Direction::kBackward;
}

ScanOrder OrderOf(Direction direction) {
  return direction == Direction::kForward ? ScanOrder::kAscending : ScanOrder::kDescending;
}

size_t PageBytesMax(uint64_t rows_max, size_t row_bytes_max, uint64_t bytes_limit) {
  constexpr size_t kPageCallBytes = 8192;
  return kPageCallBytes + std::min<uint64_t>(rows_max * row_bytes_max, bytes_limit);
}

Result<std::string> KeyOfContinuation(std::string_view continuation, ScanOrder order, TableId table) {
  PARTITA_ASSIGN(Continuation from, DecodeContinuation(continuation));
  if (from.table != table || from.direction != DirectionOf(order)) {
    return Status::InvalidArgument("the continuation belongs to another table or order");
  }
  // A key of another table, or none, would lead the scan out of this one (F78).
  if (!from.user_key.starts_with(TableLowerBound(table)) && from.user_key != TableUpperBound(table)) {
    return Status::InvalidArgument("the continuation is not one that a scan returned");
  }
  return std::move(from.user_key);
}

std::string ContinuationOf(ScanOrder order, TableId table, std::string next_key) {
  return EncodeContinuation(Continuation{DirectionOf(order), table, std::move(next_key)});
}

}  // namespace partita
