#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace partita::http {

// What a request turned out to ask for (spec 3).
enum class RequestKind : uint8_t {
  kQueryTables,
  kGetTable,
  kCreateTable,
  kDeleteTable,
  kGetTableAcl,
  kSetTableAcl,
  kQueryEntities,
  kGetEntity,
  kInsertEntity,
  kUpdateEntity,
  kMergeEntity,
  kInsertOrReplaceEntity,
  kInsertOrMergeEntity,
  kDeleteEntity,
  kBatch,
  kGetServiceProperties,
  kSetServiceProperties,
  kGetServiceStats,
  kPreflight,
  kUnknown,  // Refused before it was clear.
};
inline constexpr size_t kRequestKindCount = static_cast<size_t>(RequestKind::kUnknown) + 1;

// "GetEntity" and so on, as metrics and logs name it.
std::string_view RequestKindName(RequestKind kind);

// One answered request, for the access log. The views are valid during the call only.
struct AccessRecord {
  RequestKind kind = RequestKind::kUnknown;
  std::string_view method;
  std::string_view target;  // Path and query as sent, but the value of `sig` stands as REDACTED.
  std::string_view account;
  std::string_view remote_address;
  std::string_view request_id;         // x-ms-request-id.
  std::string_view client_request_id;  // Empty when none was sent.
  std::string_view error_code;         // Empty when there was no error.
  int status = 0;
  uint64_t bytes_in = 0;  // Of the bodies.
  uint64_t bytes_out = 0;
  uint64_t microseconds = 0;
};
// Called on the worker's thread; must not block, and not throw.
using AccessLog = std::function<void(const AccessRecord&)>;

// How many requests of each operation were answered with which class of status, and how long they took.
//
// Written by all workers at once without sharing a cache line: every thread has a slot (64 of them; more
// threads share), and its counts are relaxed atomics. Read by whoever shows metrics; a sum taken meanwhile
// is a little behind.
class ServiceCounters {
 public:
  // Bucket i counts requests of fewer than 2^i microseconds that no smaller one counts; the last one all
  // that took longer (some 8 s).
  static constexpr size_t kLatencyBuckets = 24;
  static constexpr size_t kStatusClasses = 4;  // 2xx, 3xx, 4xx, 5xx.

  struct KindTotals {
    std::array<uint64_t, kStatusClasses> by_status_class{};
    std::array<uint64_t, kLatencyBuckets> by_latency{};
    uint64_t microseconds = 0;
  };
  struct Totals {
    std::array<KindTotals, kRequestKindCount> kinds{};
    uint64_t bytes_in = 0;
    uint64_t bytes_out = 0;
    uint64_t entities_scanned = 0;  // By queries.
    uint64_t batch_operations = 0;
    uint64_t throttled = 0;  // 503 answers.
  };

  ServiceCounters();
  ~ServiceCounters();

  void CountRequest(RequestKind kind, int status, uint64_t microseconds, uint64_t bytes_in,
                    uint64_t bytes_out);
  void CountScanned(uint64_t entities);
  void CountBatchOperations(uint64_t operations);

  Totals Sum() const;

 private:
  struct Slot;
  Slot& MySlot();

  std::unique_ptr<Slot[]> slots_;
};

}  // namespace partita::http
