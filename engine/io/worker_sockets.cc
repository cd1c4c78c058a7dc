#include "engine/io/worker_sockets.h"

#include <cerrno>

#include "engine/io/io_worker.h"

namespace partita {

namespace {

// Up to this the memory lies in the string itself.
size_t InPlace() { return std::string().capacity(); }

}  // namespace

WorkerSockets::WorkerSockets(IoWorker& worker) : worker_(worker), deadlines_(worker) {
  spares_.reserve(kSparesMax);
}

void WorkerSockets::Supply(std::string* empty) {
  if (empty->capacity() > InPlace() || spares_.empty()) return;
  empty->swap(spares_.back());
  spares_.pop_back();
}

void WorkerSockets::Recycle(std::string* buffer) {
  if (buffer->capacity() <= InPlace()) {
    buffer->clear();
    return;
  }
  if (buffer->capacity() <= kSpareBytesMax && spares_.size() < kSparesMax) {
    buffer->clear();
    spares_.push_back(std::move(*buffer));
  }
  std::string().swap(*buffer);
}

bool AcceptGoesOn(int error) {
  switch (error) {
    // The connection went before it was taken, or the network had something to report for it.
    case ECONNABORTED:
    case EINTR:
    case EAGAIN:
    case EPROTO:
    case EPERM:  // A firewall rule.
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace partita
