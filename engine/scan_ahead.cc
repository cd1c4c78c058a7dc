#include "engine/scan_ahead.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

// One range, scanned into memory. The members above `done` belong to the worker until it is set.
class ScanAhead::RangeScan final : public RowSink {
 public:
  RangeScan(Piece piece, std::unique_ptr<RowSieve> sieve, size_t bytes_max, Executor* worker)
      : piece(std::move(piece)), worker(worker), sieve_(std::move(sieve)), bytes_max_(bytes_max) {}

  uint64_t Wanted(std::span<const KeylessRow> rows) override { return sieve_->Wanted(rows); }

  Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
    if (!sieve_->Passes(user_key, version, content)) return Verdict::kPassed;
    const size_t size = user_key.size() + content.size();
    if (!rows_.empty() && bytes_.size() + size > bytes_max_) return Verdict::kStop;
    rows_.push_back({version, bytes_.size(), user_key.size(), content.size()});
    bytes_.append(user_key).append(content);
    return Verdict::kTaken;
  }

  bool GoOn() override { return !stopped.load(std::memory_order_relaxed) && sieve_->GoOn(); }

  // Gives the rows to `sink` as a scan of `request` would have. REQUIRES: done, and ok.
  ScanAnswer Give(const ScanRequest& request, RowSink* sink) {
    ScanAnswer given = std::move(**answer);
    given.rows = given.bytes = 0;
    for (const Row& row : rows_) {
      const std::string_view key = std::string_view(bytes_).substr(row.at, row.key_size);
      const std::string_view content =
          std::string_view(bytes_).substr(row.at + row.key_size, row.content_size);
      Verdict verdict = Verdict::kStop;
      const bool full = given.rows >= request.limit || (given.rows > 0 && given.bytes >= request.bytes_limit);
      if (!full) {
        const KeylessRow keyless{row.version, content};
        const bool wanted = (sink->Wanted({&keyless, 1}) & 1) != 0;
        verdict = wanted ? sink->Add(key, row.version, content) : Verdict::kPassed;
      }
      if (verdict == Verdict::kStop) {
        given.done = false;
        given.next_key = std::string(key);
        if (request.direction == Direction::kBackward) given.next_key.push_back('\0');  // Exclusive.
        return given;
      }
      if (verdict == Verdict::kTaken) {
        ++given.rows;
        given.bytes += key.size() + content.size();
      }
    }
    return given;
  }

  const Piece piece;
  Executor* const worker;
  std::optional<Result<ScanAnswer>> answer;
  Event done;
  std::atomic<bool> stopped{false};

 private:
  struct Row {
    Version version;
    size_t at, key_size, content_size;
  };
  const std::unique_ptr<RowSieve> sieve_;
  const size_t bytes_max_;
  std::string bytes_;
  std::vector<Row> rows_;
};

ScanAhead::ScanAhead(Runtime& runtime, Slots& slots, const Piece& turn, const ScanRequest& rest,
                     RowSink* sink, Router router)
    : runtime_(runtime),
      slots_(slots),
      target_(sink),
      router_(std::move(router)),
      began_ns_(runtime.clock().MonotonicNanos()),
      ask_at_ns_(began_ns_ + kStartAfterNanos),
      turn_(turn),
      behind_turn_(rest) {}

ScanAhead::~ScanAhead() {
  PARTITA_ASSERT(tasks_.running() == 0);
  if (has_slot_) slots_.free.fetch_add(1, std::memory_order_relaxed);
}

bool ScanAhead::Watch::GoOnBehind(uint64_t scanned, const BlockCounts& blocks) {
  ScanAhead& owner = *owner_;
  if (!owner.target_->GoOnBehind(scanned, blocks)) return false;
  if (owner.started_) return true;
  const uint64_t now_ns = owner.runtime_.clock().MonotonicNanos();
  if (now_ns < owner.ask_at_ns_) return true;
  std::optional<uint64_t> expected;  // Asked for each worker, and reckoned once.
  owner.started_ = owner.Start([&] {
    if (!expected) expected = owner.RowsExpected(scanned, blocks);
    return *expected;
  });
  owner.ask_at_ns_ = owner.began_ns_ + 2 * (owner.runtime_.clock().MonotonicNanos() - owner.began_ns_);
  return true;
}

// What is in memtables is not told by range, and left out; an older version counts as a row. Of several
// intervals nothing is known: they may be small parts of the range.
uint64_t ScanAhead::RowsExpected(uint64_t scanned, const BlockCounts& blocks) const {
  if (turn_.shard == nullptr || turn_.request.only.size() > 1) return 0;
  const double of_block = blocks.blocks_read == 0
                              ? static_cast<double>(kEntriesPerSlice)
                              : static_cast<double>(scanned) / static_cast<double>(blocks.blocks_read);
  const double past = static_cast<double>(scanned) + of_block * static_cast<double>(blocks.blocks_skipped);
  const auto all = static_cast<double>(turn_.shard->EntriesWithin(turn_.request.lower, turn_.request.upper));
  if (past == 0 || all <= past) return 0;
  return static_cast<uint64_t>(static_cast<double>(taken_in_turn_) * (all - past) / past);
}

// False: it is not worth it, so far.
bool ScanAhead::Start(const RowsExpectedFunction& rows_expected) {
  rest_ = behind_turn_;
  workers_.clear();
  for (uint32_t i = 0; i < runtime_.shard_count() && workers_.size() < kRangesMax; ++i) {
    Executor* worker = &runtime_.shard_executor(ShardId(i));
    if (worker != Executor::Current()) workers_.push_back(worker);
  }
  StartMore(rows_expected);
  return !scans_.empty();
}

// Gives each worker without a range the next one.
void ScanAhead::StartMore(const RowsExpectedFunction& rows_expected) {
  for (Executor* worker : workers_) {
    const auto is_its = [&](const auto& scan) { return scan->worker == worker; };
    if (std::any_of(scans_.begin(), scans_.end(), is_its)) continue;
    std::unique_ptr<RowSieve> sieve = target_->NewSieve(rows_expected);
    if (sieve == nullptr) return;
    std::optional<Piece> piece = router_(&rest_);
    if (!piece || !TakeSlot()) return;
    scans_.push_back(std::make_unique<RangeScan>(std::move(*piece), std::move(sieve),
                                                 kBytesMax / workers_.size(), worker));
    tasks_.Spawn(*worker, Run(scans_.back().get()));
  }
}

// Once there is something to do with it: there are few, and most scans want none.
bool ScanAhead::TakeSlot() {
  if (has_slot_) return true;
  has_slot_ = slots_.free.fetch_sub(1, std::memory_order_relaxed) > 0;
  if (!has_slot_) slots_.free.fetch_add(1, std::memory_order_relaxed);
  return has_slot_;
}

Task<void> ScanAhead::Run(RangeScan* scan) {
  scan->answer.emplace(co_await scan->piece.shard->Scan(scan->piece.request, scan));
  scan->done.Set();
}

bool ScanAhead::Has(const ScanRequest& piece) {
  const auto is_it = [&](const auto& scan) {
    return scan->piece.request.lower == piece.lower && scan->piece.request.upper == piece.upper;
  };
  const auto found = std::find_if(scans_.begin(), scans_.end(), is_it);
  if (found == scans_.end()) return false;
  for (auto scan = scans_.begin(); scan != found; ++scan) {
    (*scan)->stopped.store(true, std::memory_order_relaxed);
    dropped_.push_back(std::move(*scan));
  }
  scans_.erase(scans_.begin(), found);
  return true;
}

Task<Result<ScanAnswer>> ScanAhead::Take(const ScanRequest& piece) {
  std::unique_ptr<RangeScan> scan = std::move(scans_.front());
  scans_.pop_front();
  co_await scan->done.Wait();
  // Waited for as long as may be: asked again, or with more begun, the scan would be answered at twice that.
  if (scan->answer->code() == Code::kDeadlineExceeded) co_return scan->answer->status();
  if (!scan->answer->ok() || (*scan->answer)->done)
    StartMore([] { return uint64_t{0}; });  // Else the page ends here.
  if (!scan->answer->ok()) {
    // What was met ahead of time may be gone, or the range be elsewhere: the scan asks in its turn.
    co_return co_await scan->piece.shard->Scan(piece, target_);
  }
  co_return scan->Give(piece, target_);
}

Task<void> ScanAhead::Close() {
  for (auto& scan : scans_) scan->stopped.store(true, std::memory_order_relaxed);
  co_await tasks_.Join();
}

}  // namespace partita
