#include "engine/strand.h"

namespace partita {

namespace {
thread_local const Strand* current_strand = nullptr;
}  // namespace

bool Strand::HeldByThisThread() const { return current_strand == this; }

bool Strand::AnyHeldByThisThread() { return current_strand != nullptr; }

bool Strand::TryAcquire() {
  // Both in the one order of Enqueue and DrainAndRelease, or what was pushed might be run by nobody.
  return !held_.load(std::memory_order_seq_cst) && !held_.exchange(true, std::memory_order_seq_cst);
}

void Strand::RunHeld(Request* request) {
  const Strand* previous = current_strand;
  current_strand = this;
  request->decide(request);
  current_strand = previous;
}

bool Strand::TryRunInline(Request* request) {
  if (!TryAcquire()) return false;
  RunHeld(request);
  DrainAndRelease();
  return true;
}

void Strand::Enqueue(Request* request, Waiter* waiter) {
  request->waiter_ = waiter;
  queued_.fetch_add(1, std::memory_order_relaxed);
  Request* head = queue_.load(std::memory_order_relaxed);
  do {
    request->next_ = head;
  } while (!queue_.compare_exchange_weak(head, request, std::memory_order_seq_cst));
  // The holder may have left before our push: then the queue is ours to run. (Push, then try;
  // the holder leaves, then looks: one of the two sees the other.)
  if (TryAcquire()) DrainAndRelease();
}

void Strand::DrainAndRelease() {
  do {
    Request* list = queue_.exchange(nullptr, std::memory_order_seq_cst);
    Request* in_order = nullptr;  // The queue is last in, first out; the strand is fair.
    while (list != nullptr) {
      Request* next = list->next_;
      list->next_ = in_order;
      in_order = list;
      list = next;
    }
    while (in_order != nullptr) {
      Request* request = in_order;
      in_order = request->next_;
      Waiter* waiter = request->waiter_;
      RunHeld(request);
      queued_.fetch_sub(1, std::memory_order_relaxed);
      waiter->Wake();  // The sender may be gone from here on.
    }
    held_.store(false, std::memory_order_seq_cst);
  } while (queue_.load(std::memory_order_seq_cst) != nullptr && TryAcquire());
}

namespace {

struct StrandWork : Strand::Request {
  std::function<void()> work;
  explicit StrandWork(std::function<void()> w) : work(std::move(w)) {
    decide = [](Strand::Request* self) { static_cast<StrandWork*>(self)->work(); };
  }
};

}  // namespace

Task<void> OnStrand(Strand& strand, std::function<void()> work) {
  StrandWork request(std::move(work));
  co_await strand.Run(&request);
}

}  // namespace partita
