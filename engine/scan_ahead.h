#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/base/event.h"
#include "engine/base/task_group.h"
#include "engine/io/runtime.h"
#include "engine/shard.h"

namespace partita {

// The ranges that a scan will come to, scanned on other workers while the first one still is: a filter that
// few rows pass is then evaluated by all shards at once.
//
// 1. Nothing is started before the scan has lasted a millisecond and its sink says that it is worth it
//    (RowSink::NewSieve): a page that fills up soon, or within the range in turn, costs no other shard
//    anything. Asked again after twice the time.
// 2. Then, from where the scan is by that time, each other worker scans one range, in the order in which the
//    scan will come to them, and keeps the rows that pass, at most kBytesMax of all together. What it does
//    not find room for is not lost: the page ends there, so that a partition is never given from two points
//    in time (F14).
// 3. The scan comes to such a range: Take waits for it, gives its rows to the sink in key order, on the
//    thread of the scan, and the worker that is free goes on with another range.
//
// Belongs to one call of Store::Scan; used by one thread at a time, but for the scans that it runs. Close
// must end before it goes, and what it was given outlives that.
class ScanAhead {
 public:
  static constexpr uint64_t kStartAfterNanos = 1'000'000;
  static constexpr size_t kBytesMax = 4u << 20;
  static constexpr size_t kRangesMax = 16;

  // How many scans of a store may yet work ahead at the same time: each holds up to kBytesMax.
  struct Slots {
    explicit Slots(int count) : free(count) {}
    std::atomic<int> free;
  };

  // A range's part of the scan.
  struct Piece {
    Shard* shard = nullptr;
    const Status* damage = nullptr;  // Instead of the shard: why it is not served.
    ScanRequest request;
  };
  // The next piece of a scan, of which its request is cut off; nothing at the end or when routing fails.
  using Router = std::function<std::optional<Piece>(ScanRequest* rest)>;

  // `turn`: what is being scanned; `rest`: what lies behind that, wherever the scan is. Both outlive this.
  ScanAhead(Runtime& runtime, Slots& slots, const Piece& turn, const ScanRequest& rest, RowSink* sink,
            Router router);
  ~ScanAhead();

  // What ranges are to be scanned with that nobody has scanned ahead: the sink, and it sees when to start.
  RowSink* sink() { return &watch_; }
  // To be called before each of them.
  void BeginTurn() { taken_in_turn_ = 0; }

  // True when the piece is, or has been, scanned ahead. What lies in front of it is dropped.
  bool Has(const ScanRequest& piece);
  // As Shard::Scan of the piece, with what was found before. REQUIRES: Has(piece).
  Task<Result<ScanAnswer>> Take(const ScanRequest& piece);

  // Stops what runs and waits for it.
  Task<void> Close();

 private:
  // Passes everything on, and asks once a slice whether it is time to start.
  class Watch final : public RowSink {
   public:
    explicit Watch(ScanAhead* owner) : owner_(owner) {}
    uint64_t Wanted(std::span<const KeylessRow> rows) override { return owner_->target_->Wanted(rows); }
    Verdict Add(std::string_view user_key, Version version, std::string_view content) override {
      return Count(owner_->target_->Add(user_key, version, content));
    }
    Verdict AddPinned(std::string_view key, Version at, std::string_view content,
                      const BlockPin& pin) override {
      return Count(owner_->target_->AddPinned(key, at, content, pin));
    }
    // Between ranges.
    bool GoOn() override { return GoOnBehind(0, BlockCounts()); }
    bool GoOnBehind(uint64_t scanned, const BlockCounts& blocks) override;

   private:
    Verdict Count(Verdict verdict) {
      owner_->taken_in_turn_ += verdict == Verdict::kTaken;
      return verdict;
    }
    ScanAhead* owner_;
  };
  class RangeScan;

  using RowsExpectedFunction = std::function<uint64_t()>;
  bool Start(const RowsExpectedFunction& rows_expected);
  void StartMore(const RowsExpectedFunction& rows_expected);
  // As NewSieve takes it, when the scan of the piece in turn has come so far.
  uint64_t RowsExpected(uint64_t scanned, const BlockCounts& blocks) const;
  bool TakeSlot();
  static Task<void> Run(RangeScan* scan);

  Runtime& runtime_;
  Slots& slots_;
  RowSink* const target_;
  const Router router_;
  Watch watch_{this};
  const uint64_t began_ns_;
  uint64_t ask_at_ns_;  // Whether it is worth it.
  bool started_ = false;
  uint64_t taken_in_turn_ = 0;
  bool has_slot_ = false;
  std::vector<Executor*> workers_;                   // Without the one that runs the scan.
  const Piece& turn_;                                // The scan's,
  const ScanRequest& behind_turn_;                   // as well.
  ScanRequest rest_;                                 // Once begun: what is not yet scanned ahead.
  std::deque<std::unique_ptr<RangeScan>> scans_;     // In the order of the scan.
  std::vector<std::unique_ptr<RangeScan>> dropped_;  // Stopped, perhaps not at their end.
  TaskGroup tasks_;
};

}  // namespace partita
