#pragma once
#include <liburing.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "engine/base/result.h"

namespace partita {

// One io_uring instance, used by the thread that opened it and by no other. After fork(2) the
// child's copy is dead, as its memory stays with the parent: Close only forgets it there.
//
// Set-up asks for everything that makes it fast and gives up, flag by flag, what the kernel does
// not know; what correctness needs (completions are never dropped, F60) is demanded.
class Uring {
 public:
  struct Options {
    uint32_t submissions = 256;
    uint32_t completions = 4096;
  };

  Uring() = default;
  ~Uring() { Close(); }
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;

  // kUnsupported: the message names the errno, its likely cause and what to do (F59).
  Status Open(const Options& options);
  void Close();

  bool is_open() const { return open_; }
  bool OpenedByThisProcess() const;

  // IOSQE_CQE_SKIP_SUCCESS is there.
  bool SkipsCompletions() const { return (ring_.features & IORING_FEAT_CQE_SKIP) != 0; }
  io_uring* get() { return &ring_; }
  // e.g. "single-issuer, defer-taskrun, registered-ring".
  std::string Features() const;

 private:
  int SetUp(const Options& options);
  Status CheckAbilities();

  io_uring ring_{};
  bool open_ = false;
  bool registered_ = false;
  uint32_t setup_flags_ = 0;
  pid_t process_ = 0;  // That opened it.
};

// Why io_uring cannot be used here, in words; Unmet::kIoUring, but where only descriptors are used up.
Status UringRefused(int error);

}  // namespace partita
