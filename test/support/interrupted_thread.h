#pragma once
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>

namespace partita {

// Interrupts system calls of the thread that makes it, as a stop and its end do: only those that are not
// begun again by themselves notice. One at a time.
class InterruptedThread {
 public:
  InterruptedThread() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &former_);
  }
  ~InterruptedThread() { sigaction(SIGUSR1, &former_, nullptr); }
  InterruptedThread(const InterruptedThread&) = delete;
  InterruptedThread& operator=(const InterruptedThread&) = delete;

  // On another thread. Several times, as it may be about to begin the call.
  void Interrupt() const {
    for (int i = 0; i < 30; ++i) {
      pthread_kill(thread_, SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  const pthread_t thread_ = pthread_self();
  struct sigaction former_ {};
};

}  // namespace partita
