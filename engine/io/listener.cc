#include "engine/io/listener.h"

#include <netinet/tcp.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "engine/io/errno_status.h"
#include "engine/io/io_worker.h"

namespace partita {

namespace {

// As many as the kernel allows (net.core.somaxconn, 4096 by default).
constexpr int kBacklog = 4096;
// A peer that has silently gone is found after 60 + 4 * 15 seconds.
constexpr int kKeepAliveIdleSeconds = 60;
constexpr int kKeepAliveProbeSeconds = 15;
constexpr int kKeepAliveProbes = 4;

Status BindStatus(const SocketAddress& address, int error) {
  const std::string text = address.ToString();
  switch (error) {
    case EADDRINUSE:
      return Status::Locked("address " + text + " is in use; another server runs on it");
    case EADDRNOTAVAIL:
      return Status::InvalidArgument("address " + text + " is none of this machine");
    case EACCES:
    case EPERM:
      return Status::InvalidArgument("address " + text + " is not allowed to this user" +
                                     (address.port() < 1024 ? "; ports below 1024 need privileges" : ""));
    default:
      return ErrnoStatus("listen on", text, error);
  }
}

// What a peer may send ahead. The kernel's own rule lets it grow to 6 MiB, and a ring delivers all of it in
// one turn, before anybody can say that there is no room for it. 128 KiB a round trip are 2.5 MB/s over 50
// ms.
constexpr int kReceiveBytes = 128 << 10;

void SetOption(int descriptor, int level, int option, int value) {
  // Fails only for options a socket of this kind does not have; all of these are for speed and tidiness.
  (void)setsockopt(descriptor, level, option, &value, sizeof value);
}

// A bound and listening socket; what is set here the accepted ones inherit.
Result<int> OpenListeningSocket(const SocketAddress& address, int socket_flags) {
  const int descriptor = socket(address.family(), SOCK_STREAM | socket_flags, 0);
  if (descriptor < 0) return ErrnoStatus("open socket for", address.ToString(), errno);
  SetOption(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveProbeSeconds);
  SetOption(descriptor, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  SetOption(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(descriptor, SOL_SOCKET, SO_RCVBUF, kReceiveBytes);
  if (address.family() == AF_INET6) SetOption(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(descriptor, address.get(), address.size()) == 0 && listen(descriptor, kBacklog) == 0) {
    return descriptor;
  }
  Status status = BindStatus(address, errno);
  close(descriptor);
  return status;
}

Task<void> Store(Task<Status> task, Status* out) { *out = co_await std::move(task); }

Status RunOnWorker(IoWorker& worker, Task<Status> task) {
  Status status;
  TaskGroup group;
  group.Spawn(worker, Store(std::move(task), &status));
  RunBlocking(group.Join());
  return status;
}

}  // namespace

// An accepted descriptor on its way to the worker that will serve it.
struct Listener::Arrival : Runnable {
  Listener* listener;
  Lane* lane;
  int descriptor;
};

Result<std::unique_ptr<Listener>> Listener::Open(Runtime& runtime, const SocketAddress& address,
                                                 Serve serve) {
  PARTITA_ASSERT(Executor::Current() == nullptr);
  std::unique_ptr<Listener> listener(new Listener(std::move(serve)));
  Status started = listener->Start(runtime, address);
  if (!started.ok()) {
    listener->closed_ = true;
    return started;
  }
  return listener;
}

Status Listener::Start(Runtime& runtime, const SocketAddress& address) {
  for (uint32_t shard = 0; shard < runtime.shard_count(); ++shard) {
    auto* worker = dynamic_cast<IoWorker*>(&runtime.shard_executor(ShardId(shard)));
    if (worker == nullptr) {
      return Status::Unsupported(std::string("the ") + runtime.name() + " has no network");
    }
    auto lane = std::make_unique<Lane>();
    lane->worker = worker;
    PARTITA_TRY(RunOnWorker(*worker, SetUpLane(lane.get())));
    lanes_.push_back(std::move(lane));
  }
  PARTITA_ASSIGN(const int descriptor, OpenListeningSocket(address, lanes_.front()->sockets->socket_flags()));
  address_ = SocketAddress::LocalOf(descriptor);
  return RunOnWorker(*lanes_.front()->worker, StartAccepting(descriptor));
}

Listener::~Listener() { Close(0); }

Task<Status> Listener::SetUpLane(Lane* lane) {
  PARTITA_CO_ASSIGN(lane->sockets, lane->worker->Sockets());
  co_return Status();
}

Task<Status> Listener::StartAccepting(int descriptor) {
  auto taker = [this](int accepted) { Accepted(accepted); };
  acceptor_ = lanes_.front()->sockets->Accept(descriptor, taker);
  co_return Status();
}

// On the first worker.
void Listener::Accepted(int descriptor) {
  if (descriptor < 0) {
    accept_failures_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  accepted_.fetch_add(1, std::memory_order_relaxed);
  Lane* lane = lanes_.front().get();
  for (const auto& other : lanes_) {
    if (other->open.load(std::memory_order_relaxed) < lane->open.load(std::memory_order_relaxed)) {
      lane = other.get();
    }
  }
  lane->open.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);
    ++open_;
  }
  auto* arrival = new Arrival;
  arrival->listener = this;
  arrival->lane = lane;
  arrival->descriptor = descriptor;
  arrival->where = std::source_location::current();
  arrival->run = [](Runnable* self) {
    std::unique_ptr<Arrival> arrival(static_cast<Arrival*>(self));
    arrival->listener->Arrived(arrival->lane, arrival->descriptor);
  };
  lane->worker->Post(arrival);
}

// On the lane's worker.
void Listener::Arrived(Lane* lane, int descriptor) {
  ConnectionHandle connection = lane->sockets->Adopt(descriptor);
  connection->next_of_list = lane->first;
  connection->link_of_list = &lane->first;
  if (lane->first != nullptr) lane->first->link_of_list = &connection->next_of_list;
  lane->first = connection.get();
  if (lane->draining) connection->EndWhenIdle();
  serving_.Spawn(*lane->worker, ServeOne(lane, std::move(connection)));
}

Task<void> Listener::ServeOne(Lane* lane, ConnectionHandle connection) {
  co_await serve_(std::move(connection));
  lane->open.fetch_sub(1, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  if (--open_ == 0) none_left_.notify_all();
}

Listener::Counters Listener::counters() const {
  Counters counters;
  counters.accepted = accepted_.load(std::memory_order_relaxed);
  counters.accept_failures = accept_failures_.load(std::memory_order_relaxed);
  for (const auto& lane : lanes_) counters.open += lane->open.load(std::memory_order_relaxed);
  return counters;
}

uint64_t Listener::OpenOn(ShardId shard) const {
  PARTITA_ASSERT(shard.value < lanes_.size());
  return lanes_[shard.value]->open.load(std::memory_order_relaxed);
}

Task<void> Listener::Stop(Event* stopped) {
  acceptor_->Stop(stopped);
  co_return;
}

void Listener::StopAccepting() {
  PARTITA_ASSERT(Executor::Current() == nullptr);
  if (acceptor_ == nullptr) return;
  Event stopped;
  TaskGroup group;
  group.Spawn(*lanes_.front()->worker, Stop(&stopped));
  RunBlocking(group.Join());
  auto wait = [](Event& event) -> Task<void> { co_await event.Wait(); };
  RunBlocking(wait(stopped));
  acceptor_.reset();
}

Task<void> Listener::EndIdle(Lane* lane) {
  lane->draining = true;
  for (Connection* c = lane->first; c != nullptr; c = c->next_of_list) c->EndWhenIdle();
  co_return;
}

Task<void> Listener::CutAll(Lane* lane) {
  for (Connection* c = lane->first; c != nullptr; c = c->next_of_list) c->Cut();
  co_return;
}

template <typename Act>
void Listener::OnEachLane(Act act) {
  TaskGroup group;
  for (const auto& lane : lanes_) group.Spawn(*lane->worker, act(lane.get()));
  RunBlocking(group.Join());
}

bool Listener::WaitUntilNoneLeft(uint32_t grace_ms) {
  std::unique_lock lock(mutex_);
  return none_left_.wait_for(lock, std::chrono::milliseconds(grace_ms), [this] { return open_ == 0; });
}

void Listener::Close(uint32_t grace_ms) {
  if (std::exchange(closed_, true)) return;
  StopAccepting();
  // Arrivals that are still on their way come before this, or find their lane draining.
  OnEachLane([this](Lane* lane) { return EndIdle(lane); });
  if (!WaitUntilNoneLeft(grace_ms)) {
    OnEachLane([this](Lane* lane) { return CutAll(lane); });
    std::unique_lock lock(mutex_);
    none_left_.wait(lock, [this] { return open_ == 0; });
  }
  RunBlocking(serving_.Join());
}

}  // namespace partita
