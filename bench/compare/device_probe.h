#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/result.h"

namespace partita::bench {

// A file that lies on the device, written once, for asking the device how fast it is past the page cache.
class DeviceProbe {
 public:
  // Makes a file of 256 MiB in `directory`; removed by the destructor. The rate of writing it is
  // write_bytes_per_second().
  static Result<std::unique_ptr<DeviceProbe>> Open(const std::string& directory);
  ~DeviceProbe();
  DeviceProbe(const DeviceProbe&) = delete;
  DeviceProbe& operator=(const DeviceProbe&) = delete;

  double write_bytes_per_second() const { return write_bytes_per_second_; }

  // 4 KiB at random places, so many outstanding; a second's count.
  Result<double> RandomReads(uint32_t outstanding, double seconds);
  // 1 MiB after the other, two outstanding; bytes a second.
  Result<double> SequentialBytes(double seconds);
  // 4 KiB over old bytes, then a flush, one after the other; a second's count.
  enum class FlushBy : uint8_t { kFdatasync, kDsync };
  Result<double> Flushes(FlushBy by, double seconds);

 private:
  DeviceProbe(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Status Fill();
  Result<double> Reads(uint32_t outstanding, size_t size, bool random, double seconds);

  std::string path_;
  int descriptor_;
  double write_bytes_per_second_ = 0;
};

}  // namespace partita::bench
