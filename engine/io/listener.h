#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/base/task_group.h"
#include "engine/io/connection.h"
#include "engine/io/runtime.h"
#include "engine/io/socket_address.h"
#include "engine/io/worker_sockets.h"

namespace partita {

// Listens on one address and serves each connection by a coroutine of its own, on the workers of a runtime.
//
// The first worker accepts and gives each connection to the worker that has fewest. (With one listening
// socket a worker, SO_REUSEPORT, the kernel deals by hash: measured, 16 connections over two workers fell
// apart 11 to 5 or worse in one case of five.) From there on it stays on its worker: no hop per request.
//
// Connections have TCP_NODELAY and SO_KEEPALIVE (a silent peer is found dead after two minutes).
//
// Lifecycle: Open, Close, destruction, before the runtime closes. Open, StopAccepting and Close block and
// are not for workers' threads; otherwise thread-safe.
class Listener {
 public:
  // The coroutine of a connection; its end closes the connection.
  using Serve = std::function<Task<void>(ConnectionHandle connection)>;

  struct Counters {
    uint64_t accepted = 0;
    uint64_t accept_failures = 0;  // No descriptor or memory left; tried again ten times a second.
    uint64_t open = 0;             // Now.
  };

  // Accepts when it returns. Port 0 lets the system choose one. kUnsupported: not a real runtime, or a kernel
  // that lacks what the ring needs. kInvalidArgument: the address is none of this machine, or not for this
  // user. kLocked: it is in use. kResourceExhausted, kIoError.
  static Result<std::unique_ptr<Listener>> Open(Runtime& runtime, const SocketAddress& address, Serve serve);
  ~Listener();

  const SocketAddress& address() const { return address_; }  // As bound.
  Counters counters() const;
  // Open connections of one worker.
  uint64_t OpenOn(ShardId shard) const;

  // Refuses new connections from here on. Idempotent.
  void StopAccepting();

  // Stops accepting, ends connections that wait in Connection::Readable or come to, lets the others go on for
  // `grace_ms`, then cuts those that are left. Returns when every coroutine has ended. Idempotent.
  void Close(uint32_t grace_ms);

 private:
  // A worker's share. `first` and `draining` are of its thread only.
  struct Lane {
    IoWorker* worker = nullptr;
    WorkerSockets* sockets = nullptr;
    Connection* first = nullptr;
    bool draining = false;
    std::atomic<uint64_t> open{0};  // Written by the first worker and by this one.
  };
  struct Arrival;

  explicit Listener(Serve serve) : serve_(std::move(serve)) {}
  Status Start(Runtime& runtime, const SocketAddress& address);
  Task<Status> SetUpLane(Lane* lane);
  Task<Status> StartAccepting(int descriptor);
  Task<void> Stop(Event* stopped);
  Task<void> EndIdle(Lane* lane);
  Task<void> CutAll(Lane* lane);
  template <typename Act>
  void OnEachLane(Act act);

  void Accepted(int descriptor);
  void Arrived(Lane* lane, int descriptor);
  Task<void> ServeOne(Lane* lane, ConnectionHandle connection);
  bool WaitUntilNoneLeft(uint32_t grace_ms);

  const Serve serve_;
  SocketAddress address_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<Acceptor> acceptor_;
  std::atomic<uint64_t> accepted_{0};
  std::atomic<uint64_t> accept_failures_{0};
  TaskGroup serving_;

  std::mutex mutex_;
  std::condition_variable none_left_;
  uint64_t open_ = 0;  // Guarded by mutex_.
  bool closed_ = false;
};

}  // namespace partita
