#pragma once
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/base/executor.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/io/deadline_wheel.h"

namespace partita {

class WorkerSockets;

// One connected stream socket of a worker. The backends do the input and output: RingConnection,
// EpollConnection.
//
// Of one worker's thread, all of it. Owned by a ConnectionHandle, whose end closes the connection: at
// once, or as soon as the kernel has given back what it was lent (F62). At most one coroutine receives
// and one sends, and a handle goes only while neither waits.
//
// Errors: kIoError (reset by the peer and the like), kDeadlineExceeded, kCancelled (cut, or ended while
// idle). After one of Send's, what the peer got of the bytes is unknown.
class Connection : private DeadlineWheel::Entry {
 public:
  enum class More : uint8_t {
    kNo,
    kYes,  // The rest follows at once: the kernel need not send a packet that is not full.
  };

  // Who is at the other end: numeric, without port.
  const std::string& peer_host() const { return peer_host_; }
  // Whether that is a process of this machine: it came from a loopback address, or from the very address it
  // came to.
  bool peer_is_local() const { return peer_is_local_; }

  // The operations that wait, now or later, end with kDeadlineExceeded after this time; a Send over its time
  // cuts the connection. Fires up to 100 ms late. 0: no deadline.
  void SetDeadline(uint32_t from_now_ms);
  // From here on that time starts again whenever the peer took some bytes of a Send; however often it does,
  // Sends end so long from now. Until the next SetDeadline. REQUIRES: there is a deadline.
  void LimitSends(uint64_t from_now_ms);

  class Waiting;
  // `Status s = co_await Readable();` waits without holding memory until there is something to Receive,
  // be it the end. This is how a connection is idle: kCancelled when idle ones are ended.
  Waiting Readable(std::source_location at = std::source_location::current());
  class Receiving;
  // `Result<size_t> n = co_await Receive(&in);` appends what has come, at least a byte, or returns 0:
  // the peer sends no more. Takes memory for an empty `in` from the worker, see Recycle.
  Receiving Receive(std::string* in, std::source_location at = std::source_location::current());

  class Sending;
  // `Status s = co_await Send(bytes);` returns when the kernel has taken all `bytes`, which must stay.
  Sending Send(std::string_view bytes, More more = More::kNo,
               std::source_location at = std::source_location::current());

  class Lasting;
  // `bool in_time = co_await InTime(task);` waits for the end of `task`, which has been started. False when
  // the deadline passes before: the task goes on, and may be waited for again.
  Lasting InTime(Task<void>& task, std::source_location at = std::source_location::current());

  // Tells the peer that nothing more will be sent. Receive goes on.
  void EndSending();
  // Cuts the connection: what waits, and whatever comes, fails with kCancelled.
  void Cut();
  // Ends it if it waits in Readable without input, or as soon as it would.
  void EndWhenIdle();

  // True once it is known that nobody reads what is sent. Any thread.
  const std::atomic<bool>& gone() const { return gone_; }
  // True once the peer sends no more. It may still read, but most who end first have gone: a plain close
  // looks like this until something is sent. Any thread.
  const std::atomic<bool>& hung_up() const { return hung_up_; }

  // Keeps the memory of `buffer` for the next message on this worker, of whichever connection, or frees
  // it when it is large or there is enough of it. `buffer` is empty and without memory afterwards.
  void Recycle(std::string* buffer);

  uint64_t bytes_received() const { return bytes_received_; }
  uint64_t bytes_sent() const { return bytes_sent_; }

  class Reading {
   public:
    bool await_ready();
    void await_suspend(std::coroutine_handle<> handle);

   protected:
    Reading(Connection& connection, std::string* target, std::source_location at)
        : connection_(connection), target_(target), at_(at) {}
    Connection& connection_;
    std::string* target_;
    std::source_location at_;
  };
  class Waiting : public Reading {
   public:
    Waiting(Connection& connection, std::source_location at) : Reading(connection, nullptr, at) {}
    Status await_resume();
  };
  class Receiving : public Reading {
   public:
    Receiving(Connection& connection, std::string* target, std::source_location at)
        : Reading(connection, target, at) {}
    Result<size_t> await_resume();
  };

  class Sending {
   public:
    bool await_ready();
    void await_suspend(std::coroutine_handle<> handle) { connection_.send_resume_.Suspend(handle, at_); }
    Status await_resume();

   private:
    friend class Connection;
    Sending(Connection& connection, std::string_view bytes, More more, std::source_location at)
        : connection_(connection), bytes_(bytes), more_(more), at_(at) {}
    Connection& connection_;
    std::string_view bytes_;
    More more_;
    std::source_location at_;
  };

  class Lasting {
   public:
    bool await_ready() const { return task_.done() || connection_.timed_out_; }
    void await_suspend(std::coroutine_handle<> handle);
    bool await_resume();

   private:
    friend class Connection;
    Lasting(Connection& connection, Task<void>& task, std::source_location at);
    void GiveUp();
    Connection& connection_;
    Task<void>& task_;
    ResumeRunnable resume_;
  };

  // Links of the list of its Listener.
  Connection* next_of_list = nullptr;
  Connection** link_of_list = nullptr;

 protected:
  Connection(WorkerSockets& sockets, int descriptor);
  virtual ~Connection();

  // Input, from the backend's side.
  // Looks for input the kernel has; calls Deliver or DeliverEnd when there is any.
  virtual void Look() {}
  // A reader waits: make sure that input is delivered when it comes.
  virtual void WantInput() {}
  void Deliver(const char* bytes, size_t size);
  void DeliverEnd(int error);  // 0: an orderly end.
  void PeerIsGone() {
    gone_.store(true, std::memory_order_relaxed);
    PeerHungUp();
  }
  void PeerHungUp() { hung_up_.store(true, std::memory_order_relaxed); }
  bool reader_waits() const { return reader_waits_; }
  bool input_ended() const { return input_ended_; }
  size_t inbox_size() const { return inbox_.size(); }

  // Output. Tries to send send_rest_, or has it sent; reports by Sent.
  virtual void StartSend() = 0;
  // `result`: bytes taken, or a negative errno. True when some are left, to be sent again.
  bool Sent(int64_t result);
  bool sending() const { return sending_; }

  // No coroutine knows it any more: close and delete this, now or when the kernel is done.
  virtual void CloseAndDelete() = 0;

  WorkerSockets& sockets_;
  const int descriptor_;
  std::string_view send_rest_;
  More send_more_ = More::kNo;

 private:
  friend struct ConnectionCloser;
  void Release();
  Status ReadStatus() const;
  void WakeReader();
  void FinishSend(Status status);
  void DeadlinePassed() override;
  void RestartDeadline(uint64_t now_ns);
  bool HasInput() const { return !inbox_.empty() || input_ended_; }

  std::string peer_host_;
  bool peer_is_local_ = false;
  uint64_t bytes_received_ = 0;
  uint64_t bytes_sent_ = 0;
  uint32_t deadline_ms_ = 0;
  uint64_t sends_end_ns_ = 0;  // Monotonic; 0: never.
  std::atomic<bool> gone_{false};
  std::atomic<bool> hung_up_{false};
  bool cut_ = false;
  bool ends_when_idle_ = false;
  bool timed_out_ = false;
  Lasting* lasting_ = nullptr;  // What is to be given up at the deadline.

  // The reader.
  bool reader_waits_ = false;  // From its suspension to its resumption.
  bool reader_woken_ = false;
  bool input_ended_ = false;
  int input_error_ = 0;
  size_t received_ = 0;  // Delivered to `target_` directly.
  std::string* target_ = nullptr;
  std::string inbox_;  // Came while nobody received.
  ResumeRunnable read_resume_;

  // The sender.
  bool sending_ = false;
  bool send_suspended_ = false;
  Status send_status_;
  ResumeRunnable send_resume_;
};

struct ConnectionCloser {
  void operator()(Connection* connection) const { connection->Release(); }
};
using ConnectionHandle = std::unique_ptr<Connection, ConnectionCloser>;

}  // namespace partita
