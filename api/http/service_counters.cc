#include "api/http/service_counters.h"

#include <algorithm>
#include <bit>

#include "engine/base/assert.h"

namespace partita::http {

namespace {

constexpr size_t kSlots = 64;

constexpr std::array<std::string_view, kRequestKindCount> kKindNames = {
    "QueryTables",
    "GetTable",
    "CreateTable",
    "DeleteTable",
    "GetTableACL",
    "SetTableACL",
    "QueryEntities",
    "GetEntity",
    "InsertEntity",
    "UpdateEntity",
    "MergeEntity",
    "InsertOrReplaceEntity",
    "InsertOrMergeEntity",
    "DeleteEntity",
    "Batch",
    "GetServiceProperties",
    "SetServiceProperties",
    "GetServiceStats",
    "PreflightRequest",
    "Unknown",
};

using Counter = std::atomic<uint64_t>;

void Add(Counter* counter, uint64_t value) { counter->fetch_add(value, std::memory_order_relaxed); }
uint64_t Read(const Counter& counter) { return counter.load(std::memory_order_relaxed); }

struct KindCounters {
  std::array<Counter, ServiceCounters::kStatusClasses> by_status_class{};
  std::array<Counter, ServiceCounters::kLatencyBuckets> by_latency{};
  Counter microseconds{0};
};

size_t StatusClass(int status) { return static_cast<size_t>(std::clamp(status / 100 - 2, 0, 3)); }

size_t LatencyBucket(uint64_t microseconds) {
  return std::min<size_t>(static_cast<size_t>(std::bit_width(microseconds)),
                          ServiceCounters::kLatencyBuckets - 1);
}

// The slot of this thread: in the order in which threads first count anything.
size_t SlotOfThread() {
  static std::atomic<size_t> threads{0};
  thread_local const size_t slot = threads.fetch_add(1, std::memory_order_relaxed) % kSlots;
  return slot;
}

}  // namespace

struct alignas(64) ServiceCounters::Slot {
  std::array<KindCounters, kRequestKindCount> kinds{};
  Counter bytes_in{0};
  Counter bytes_out{0};
  Counter entities_scanned{0};
  Counter batch_operations{0};
  Counter throttled{0};
};

std::string_view RequestKindName(RequestKind kind) {
  PARTITA_ASSERT(static_cast<size_t>(kind) < kRequestKindCount);
  return kKindNames[static_cast<size_t>(kind)];
}

ServiceCounters::ServiceCounters() : slots_(std::make_unique<Slot[]>(kSlots)) {}
ServiceCounters::~ServiceCounters() = default;

ServiceCounters::Slot& ServiceCounters::MySlot() { return slots_[SlotOfThread()]; }

void ServiceCounters::CountRequest(RequestKind kind, int status, uint64_t microseconds, uint64_t bytes_in,
                                   uint64_t bytes_out) {
  Slot& slot = MySlot();
  KindCounters& counters = slot.kinds[static_cast<size_t>(kind)];
  Add(&counters.by_status_class[StatusClass(status)], 1);
  Add(&counters.by_latency[LatencyBucket(microseconds)], 1);
  Add(&counters.microseconds, microseconds);
  Add(&slot.bytes_in, bytes_in);
  Add(&slot.bytes_out, bytes_out);
  if (status == 503) Add(&slot.throttled, 1);
}

void ServiceCounters::CountScanned(uint64_t entities) { Add(&MySlot().entities_scanned, entities); }
void ServiceCounters::CountBatchOperations(uint64_t operations) {
  Add(&MySlot().batch_operations, operations);
}

ServiceCounters::Totals ServiceCounters::Sum() const {
  Totals totals;
  for (size_t s = 0; s < kSlots; ++s) {
    const Slot& slot = slots_[s];
    for (size_t o = 0; o < kRequestKindCount; ++o) {
      const KindCounters& from = slot.kinds[o];
      KindTotals& to = totals.kinds[o];
      for (size_t i = 0; i < kStatusClasses; ++i) to.by_status_class[i] += Read(from.by_status_class[i]);
      for (size_t i = 0; i < kLatencyBuckets; ++i) to.by_latency[i] += Read(from.by_latency[i]);
      to.microseconds += Read(from.microseconds);
    }
    totals.bytes_in += Read(slot.bytes_in);
    totals.bytes_out += Read(slot.bytes_out);
    totals.entities_scanned += Read(slot.entities_scanned);
    totals.batch_operations += Read(slot.batch_operations);
    totals.throttled += Read(slot.throttled);
  }
  return totals;
}

}  // namespace partita::http
