#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/event.h"
#include "engine/io/connection.h"
#include "engine/io/deadline_wheel.h"

namespace partita {

class IoWorker;

// Accepts on one listening descriptor, on one worker, until it is stopped. Of that worker's thread.
class Acceptor {
 public:
  // Gets each accepted descriptor, or -1 when one could not be accepted because descriptors or memory
  // are used up; then the acceptor rests a while before it tries again, as a listening descriptor stays
  // readable as long as somebody waits (or it would spin). Called while the worker reaps completions: it
  // may post work and nothing else.
  using Taker = std::function<void(int descriptor)>;
  static constexpr uint64_t kRestNanos = 100'000'000;

  virtual ~Acceptor() = default;
  // Closes the descriptor; sets `stopped` once the kernel is done with it. To be called once.
  virtual void Stop(Event* stopped) = 0;
};

// The network half of a worker: made at its first use, gone with the worker. Of the worker's thread.
class WorkerSockets {
 public:
  explicit WorkerSockets(IoWorker& worker);
  virtual ~WorkerSockets() = default;

  // A connected socket becomes a connection of this worker, which closes it.
  virtual ConnectionHandle Adopt(int descriptor) = 0;
  // A listening socket, closed by the acceptor.
  virtual std::unique_ptr<Acceptor> Accept(int descriptor, Acceptor::Taker taker) = 0;
  // The flags that sockets given to Adopt and Accept must be made with.
  virtual int socket_flags() const = 0;

  IoWorker& worker() { return worker_; }
  DeadlineWheel& deadlines() { return deadlines_; }

  // Memory of messages, kept for the next ones, as most connections are idle most of the time.
  void Supply(std::string* empty);
  void Recycle(std::string* buffer);

 private:
  static constexpr size_t kSparesMax = 256;
  static constexpr size_t kSpareBytesMax = 16 << 10;

  IoWorker& worker_;
  DeadlineWheel deadlines_;
  std::vector<std::string> spares_;
};

// Whether a failure of accept concerns only the one connection it would have given.
bool AcceptGoesOn(int error);

}  // namespace partita
