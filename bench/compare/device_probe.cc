#include "bench/compare/device_probe.h"

#include <fcntl.h>
#include <liburing.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "bench/load/tally.h"

namespace partita::bench {
namespace {

constexpr uint64_t kFileBytes = uint64_t{256} << 20;
constexpr size_t kPage = 4096;
constexpr size_t kChunk = size_t{1} << 20;

struct FreeAligned {
  void operator()(char* bytes) const { std::free(bytes); }
};
using AlignedBytes = std::unique_ptr<char[], FreeAligned>;

AlignedBytes Allocate(size_t size) {
  AlignedBytes bytes(static_cast<char*>(std::aligned_alloc(kPage, size)));
  // Not zeros: a device may store those for nothing.
  std::mt19937_64 random(size);
  for (size_t at = 0; at + 8 <= size; at += 8) {
    const uint64_t word = random();
    std::memcpy(&bytes[at], &word, sizeof word);
  }
  return bytes;
}

Status Failed(const char* what, int error) {
  return Status::IoError(std::string("probe: ") + what + ": " + std::strerror(error));
}

// A ring with its buffers; reads until the time is over.
class RingReads {
 public:
  RingReads(int descriptor, uint32_t outstanding, size_t size)
      : descriptor_(descriptor),
        outstanding_(outstanding),
        size_(size),
        bytes_(Allocate(size * outstanding)) {}
  ~RingReads() {
    if (open_) io_uring_queue_exit(&ring_);
  }
  RingReads(const RingReads&) = delete;
  RingReads& operator=(const RingReads&) = delete;

  // Reads from where `next` says, until `end_ns`; answers how many.
  Result<uint64_t> Run(const std::function<uint64_t()>& next, uint64_t end_ns) {
    const int made = io_uring_queue_init(outstanding_, &ring_, 0);
    if (made < 0) return Failed("io_uring", -made);
    open_ = true;
    for (uint32_t slot = 0; slot < outstanding_; ++slot) Prepare(slot, next());
    uint64_t done = 0;
    for (uint32_t running = outstanding_; running > 0;) {
      const int submitted = io_uring_submit_and_wait(&ring_, 1);
      if (submitted < 0 && submitted != -EINTR) return Failed("io_uring", -submitted);
      io_uring_cqe* completion = nullptr;
      while (io_uring_peek_cqe(&ring_, &completion) == 0) {
        const int result = completion->res;
        const auto slot = static_cast<uint32_t>(io_uring_cqe_get_data64(completion));
        io_uring_cqe_seen(&ring_, completion);
        if (result != static_cast<int>(size_)) return Failed("read", result < 0 ? -result : EIO);
        ++done;
        if (NowNanos() < end_ns) {
          Prepare(slot, next());
        } else {
          --running;
        }
      }
    }
    return done;
  }

 private:
  void Prepare(uint32_t slot, uint64_t offset) {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    io_uring_prep_read(entry, descriptor_, &bytes_[slot * size_], static_cast<unsigned>(size_), offset);
    io_uring_sqe_set_data64(entry, slot);
  }

  int descriptor_;
  uint32_t outstanding_;
  size_t size_;
  AlignedBytes bytes_;
  io_uring ring_{};
  bool open_ = false;
};

}  // namespace

Result<std::unique_ptr<DeviceProbe>> DeviceProbe::Open(const std::string& directory) {
  const std::string path = directory + "/probe-" + std::to_string(getpid());
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0644);
  if (descriptor < 0) return Failed(path.c_str(), errno);
  std::unique_ptr<DeviceProbe> probe(new DeviceProbe(path, descriptor));
  PARTITA_TRY(probe->Fill());
  return probe;
}

DeviceProbe::~DeviceProbe() {
  close(descriptor_);
  unlink(path_.c_str());
}

Status DeviceProbe::Fill() {
  const AlignedBytes chunk = Allocate(kChunk);
  const uint64_t started = NowNanos();
  for (uint64_t at = 0; at < kFileBytes; at += kChunk) {
    if (pwrite(descriptor_, chunk.get(), kChunk, static_cast<off_t>(at)) != static_cast<ssize_t>(kChunk)) {
      return Failed("write", errno);
    }
  }
  if (fdatasync(descriptor_) != 0) return Failed("fdatasync", errno);
  write_bytes_per_second_ = static_cast<double>(kFileBytes) * 1e9 / static_cast<double>(NowNanos() - started);
  return Status();
}

Result<double> DeviceProbe::Reads(uint32_t outstanding, size_t size, bool random, double seconds) {
  RingReads reads(descriptor_, outstanding, size);
  std::mt19937_64 places(outstanding);
  uint64_t position = 0;
  const uint64_t started = NowNanos();
  PARTITA_ASSIGN(const uint64_t done,
                 reads.Run([&] { return (random ? places() : position++) % (kFileBytes / size) * size; },
                           started + static_cast<uint64_t>(seconds * 1e9)));
  return static_cast<double>(done) * 1e9 / static_cast<double>(NowNanos() - started);
}

Result<double> DeviceProbe::RandomReads(uint32_t outstanding, double seconds) {
  return Reads(outstanding, kPage, /*random=*/true, seconds);
}

Result<double> DeviceProbe::SequentialBytes(double seconds) {
  PARTITA_ASSIGN(const double chunks, Reads(/*outstanding=*/2, kChunk, /*random=*/false, seconds));
  return chunks * static_cast<double>(kChunk);
}

Result<double> DeviceProbe::Flushes(FlushBy by, double seconds) {
  const AlignedBytes page = Allocate(kPage);
  iovec bytes{.iov_base = page.get(), .iov_len = kPage};
  const uint64_t started = NowNanos();
  uint64_t done = 0, now = started;
  for (const auto span = static_cast<uint64_t>(seconds * 1e9); now - started < span; now = NowNanos()) {
    const auto offset = static_cast<off_t>(done % (kFileBytes / kPage) * kPage);
    const ssize_t written = pwritev2(descriptor_, &bytes, 1, offset, by == FlushBy::kDsync ? RWF_DSYNC : 0);
    if (written != static_cast<ssize_t>(kPage)) return Failed("write", errno);
    if (by == FlushBy::kFdatasync && fdatasync(descriptor_) != 0) return Failed("fdatasync", errno);
    ++done;
  }
  return static_cast<double>(done) * 1e9 / static_cast<double>(now - started);
}

}  // namespace partita::bench
