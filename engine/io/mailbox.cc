#include "engine/io/mailbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "engine/io/errno_status.h"

namespace partita {

namespace {

// Stands in `head_` for "the receiver sleeps"; never run.
Runnable sleep_mark;

}  // namespace

Mailbox::~Mailbox() {
  if (wake_descriptor_ >= 0) close(wake_descriptor_);
}

Status Mailbox::Open() {
  // Blocking on purpose: the ring refuses to wait for a non-blocking descriptor, and whoever else
  // reads it has polled it first.
  wake_descriptor_ = eventfd(0, EFD_CLOEXEC);
  if (wake_descriptor_ < 0) return ErrnoStatus("eventfd", "worker mailbox", errno);
  return Status();
}

void Mailbox::Send(Runnable* work) {
  Runnable* head = head_.load(std::memory_order_relaxed);
  do {
    work->next = head == &sleep_mark ? nullptr : head;
  } while (!head_.compare_exchange_weak(head, work, std::memory_order_release, std::memory_order_relaxed));
  if (head != &sleep_mark) return;
  const uint64_t one = 1;
  while (write(wake_descriptor_, &one, sizeof one) < 0) PARTITA_ASSERT(errno == EINTR);
}

Runnable* Mailbox::TakeAll() {
  if (head_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  Runnable* newest = head_.exchange(nullptr, std::memory_order_acquire);
  if (newest == &sleep_mark) return nullptr;
  Runnable* oldest = nullptr;
  while (newest != nullptr) {
    Runnable* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

bool Mailbox::AnnounceSleep() {
  Runnable* empty = nullptr;
  return head_.compare_exchange_strong(empty, &sleep_mark, std::memory_order_relaxed);
}

}  // namespace partita
