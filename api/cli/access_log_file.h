#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "api/http/service_counters.h"
#include "engine/base/result.h"

namespace partita {

// The access log of `partita serve`: one line for each answered request, as space-separated fields with a
// name, which both people and tools read:
//
//   2026-01-15T10:20:30.123456Z 127.0.0.1 devstoreaccount1 GetEntity GET /devstoreaccount1/t(...) 200
//     in=0 out=181 us=57 error=- id=5f2c... client=7d1f...
//
// (on one line). A signature never stands in it: the service redacts `sig`.
//
// Thread-safe. Add never waits for the disk: lines go to a bounded buffer that a thread of its own writes
// out, 100 ms after the first of them or when they are many, so that a request neither wakes a thread nor
// costs a write; when it is full lines are dropped and counted, and the log says how many. So it does with
// those that a write loses, as on a full disk. Where it writes to a pipe, whose reader may hang, its end does
// not wait for who takes nothing for a second.
class AccessLogFile {
 public:
  // Appends to `path`, or to standard output for "-". kIoError, also for a pipe that nobody reads: neither
  // this nor Reopen waits for a reader. kResourceExhausted: there is no thread.
  static Result<std::unique_ptr<AccessLogFile>> Open(const std::string& path);
  ~AccessLogFile();  // Writes what is left, as far as it is taken.

  void Add(const http::AccessRecord& record);

  // Goes on in `path`, opened anew: the same, as after a rotation, or another (SIGHUP). The old file still
  // gets what was added before; of a pipe from which nobody takes anything for a second these lines are lost.
  // After a failure it is written on.
  Status Reopen(const std::string& path);

 private:
  explicit AccessLogFile(int descriptor);
  void WriteLoop();
  std::string_view WriteAll(std::string_view text);
  bool WaitUntilTaken();

  static constexpr size_t kBufferBytesMax = 8u << 20;
  static constexpr size_t kGatherBytes = 256u << 10;  // So much is written at once.

  std::mutex mutex_;  // Guards all below.
  std::condition_variable wake_;
  std::string buffer_;
  uint64_t dropped_ = 0;
  int descriptor_;
  int replacement_ = -1;  // The writer changes to it.
  bool stopping_ = false;
  bool given_up_ = false;  // Of the writer alone.
  std::thread writer_;
};

}  // namespace partita
