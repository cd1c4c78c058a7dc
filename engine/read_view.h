#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/event.h"
#include "engine/base/ids.h"
#include "engine/hazard.h"
#include "memtable/memtable.h"
#include "sstable/level_set.h"

namespace partita {

// One range of a shard as readers see it.
struct RangeView {
  std::string lower;  // Inclusive.
  std::string upper;  // Exclusive; empty: to the end.
  RangeEpoch epoch;
  std::shared_ptr<const LevelSet> levels;
  bool fenced = false;                 // On its way to another shard: read, but not written here (DESIGN 8).
  std::shared_ptr<Event> fence_end{};  // While it is fenced: what its writes wait for.
};

// A frozen memtable.
struct MemtableRef {
  std::shared_ptr<Memtable> table;
  LogPosition last;    // Last position in it.
  uint64_t bytes = 0;  // Memory it took when it was frozen.
};

// All that a read of one shard needs, as one picture: the active and frozen memtables and the level
// sets of the shard's ranges. What keeps it keeps all of that alive. To be changed it is copied.
struct ReadPicture {
  std::shared_ptr<Memtable> active;
  std::vector<MemtableRef> frozen;  // Newest first.
  std::vector<RangeView> ranges;    // Sorted by lower, disjoint.
  // Rises whenever something left the memtables or the ranges (a flush was installed, a table
  // dropped): what was resolved under another counter must be resolved again (DESIGN 2).
  uint64_t structure_counter = 0;
  // The last move that brought a range here (RangeDescriptor::move_attempt).
  uint64_t move_attempt = 0;
};

// A picture to be published, and not changed from then on (elsewhere called a superversion).
struct ReadView : ReadPicture {
  // The range that holds the key, or null.
  const RangeView* FindRange(std::string_view user_key) const;

  // The newest entry with version <= at_most in the memtables.
  Lookup GetFromMemtables(std::string_view user_key, Version at_most) const;
  // False: no memtable has an entry, of whatever version, of a key in [first, last].
  bool MemtablesHoldAnyOf(std::string_view first, std::string_view last) const;
  // Between its first key and its last nothing lies of a table, nor of an older memtable, which becomes one.
  bool LiesOnNothing(const Memtable& memtable) const;

 private:
  friend class ReadViewPublisher;
  static constexpr uint32_t kRetired = 1u << 31;
  mutable std::atomic<uint32_t> pins_{0};  // And kRetired, from when on another is published.
};

// A counted hold on a view, for whoever waits (misses, scans, writes). Movable.
class ViewPin {
 public:
  ViewPin() = default;
  ViewPin(ViewPin&& other) noexcept
      : publisher_(std::exchange(other.publisher_, nullptr)), view_(std::exchange(other.view_, nullptr)) {}
  ViewPin& operator=(ViewPin&& other) noexcept {
    if (this != &other) {
      Release();
      publisher_ = std::exchange(other.publisher_, nullptr);
      view_ = std::exchange(other.view_, nullptr);
    }
    return *this;
  }
  ~ViewPin() { Release(); }
  void Release();

  const ReadView* operator->() const { return view_; }
  const ReadView& operator*() const { return *view_; }
  explicit operator bool() const { return view_ != nullptr; }

 private:
  friend class ReadViewPublisher;
  ViewPin(class ReadViewPublisher* publisher, const ReadView* view) : publisher_(publisher), view_(view) {}
  class ReadViewPublisher* publisher_ = nullptr;
  const ReadView* view_ = nullptr;
};

// Publishes a shard's view and frees old ones when nobody looks at them any more.
//
// Atomics: `current_` is written on the shard's strand and read by any thread; a reader's hazard
// slot by that reader; a view's pin count by any thread that holds a slot or a pin on it. A pin is
// taken only while the slot protects the view, so a view that no slot holds and whose count is zero
// can be freed: nobody can reach it again. The last pin frees a retired view as it goes. A slot that is
// cleared tells nobody, as that is what makes point reads fast: `on_held` is told of views that stay for one.
class ReadViewPublisher {
 public:
  // `on_held` has Reclaim called again soon, but not before it returns. It is called on any thread and must
  // not wait.
  explicit ReadViewPublisher(std::function<void()> on_held) : on_held_(std::move(on_held)) {}
  ~ReadViewPublisher();  // REQUIRES: no reader left.
  ReadViewPublisher(const ReadViewPublisher&) = delete;
  ReadViewPublisher& operator=(const ReadViewPublisher&) = delete;

  // Replaces the view, and frees what can be freed.
  void Publish(std::unique_ptr<ReadView> next) {
    Show(std::move(next));
    Reclaim();
  }
  // Publish in two steps, for the strand, which others wait for: older views are there until Reclaim.
  void Show(std::unique_ptr<ReadView> next);

  // The current view, while the Guard lives. No system call, wait, or second Guard on the same
  // thread meanwhile: it is one slot.
  class Guard {
   public:
    explicit Guard(ReadViewPublisher& publisher);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    const ReadView* operator->() const { return view_; }
    const ReadView& operator*() const { return *view_; }
    // Turns into a counted hold that outlives the guard.
    ViewPin ToPin() const;

   private:
    ReadViewPublisher& publisher_;
    std::atomic<const void*>* slot_;
    const ReadView* view_;
  };

  ViewPin Pin() { return Guard(*this).ToPin(); }

  // Whether no other has been published since. Any thread, while it keeps the view.
  bool IsCurrent(const ReadView& view) const { return current_.load(std::memory_order_acquire) == &view; }

  // The view as the strand sees it. On the strand.
  const ReadView& current() const { return *current_.load(std::memory_order_relaxed); }

  // Frees what can be freed: with a system call, and whole memtables and tables may go. Any thread that holds
  // no strand.
  void Reclaim();

  size_t retired_count();

 private:
  friend class ViewPin;
  void Unpin(const ReadView* view);

  const std::function<void()> on_held_;
  std::atomic<const ReadView*> current_{nullptr};
  struct Retired {
    uint64_t number;
    std::unique_ptr<const ReadView> view;
  };
  std::mutex mutex_;              // Guards what follows, and the slow road of readers without a slot.
  std::vector<Retired> retired_;  // The oldest first.
  uint64_t retired_so_far_ = 0;
};

}  // namespace partita
