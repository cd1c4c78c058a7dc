#pragma once
#include <atomic>

#include "engine/base/executor.h"
#include "engine/base/status.h"

namespace partita {

// Work sent to one thread by many, intrusive and without a lock. The receiver takes all at once,
// in the order in which each sender sent; it may announce that it goes to sleep, and then the
// first message, and only that one, wakes it through an eventfd.
//
// One word holds it all: null (empty, receiver awake), the sleep mark (empty, receiver asleep or
// about to be), or the last message of a list. Sleeping is a compare-and-swap from empty to the
// mark, so a message can never slip in between the last look and the sleep.
//
//   `head_`: senders push (release); the receiver takes all (acquire), which orders everything a
//   sender did before Send before the work's run.
class Mailbox {
 public:
  ~Mailbox();

  // Creates the eventfd. kResourceExhausted.
  Status Open();

  // Any thread. `work` belongs to the receiver from here on.
  void Send(Runnable* work);

  // Receiver: everything sent, oldest first, linked by `next`; null when there is nothing. Ends
  // the announcement of sleep.
  Runnable* TakeAll();

  // Receiver: announces sleep. False when there is something to take. After true the eventfd
  // becomes readable with the next message, and the receiver must call TakeAll before it trusts
  // anything else.
  bool AnnounceSleep();

  // Becomes readable when a message comes during sleep; its reader must read it empty.
  int wake_descriptor() const { return wake_descriptor_; }

 private:
  std::atomic<Runnable*> head_{nullptr};
  int wake_descriptor_ = -1;
};

}  // namespace partita
