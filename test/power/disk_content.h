#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "engine/base/result.h"
#include "test/power/block_log.h"

namespace partita {

// How many in a thousand reads, writes and flushes fail with EIO. A failed write leaves a drawn part of its
// sectors; a failed flush leaves its writes where they were, in the volatile cache.
struct DiskFaults {
  uint32_t reads_per_mille = 0;
  uint32_t writes_per_mille = 0;
  uint32_t flushes_per_mille = 0;
  uint64_t seed = 1;
};

// The content of a VirtualDisk, in the process that serves it.
//
// While recording, reads and writes go to the base, shared memory as large as the disk. An image is a private
// mapping of the base, which holds what is durable at the cut: the kernel copies the pages that are written,
// and dropping the copies is how an image ends. One thread.
class DiskContent {
 public:
  // Writes are torn at multiples of `sector`. `entries` is told how much was recorded.
  DiskContent(uint64_t size, size_t sector, std::atomic<uint64_t>* entries);
  ~DiskContent();
  DiskContent(const DiskContent&) = delete;
  DiskContent& operator=(const DiskContent&) = delete;

  uint64_t size() const { return size_; }
  std::optional<std::span<const uint8_t>> Read(uint64_t offset, size_t size);  // None: EIO.
  bool Write(uint64_t offset, std::span<const uint8_t> data);                  // False: EIO.
  bool Flush();                                                                // False: EIO.

  void Restart();
  void SetFaults(const DiskFaults& faults);
  Status ShowCut(uint64_t cut, uint64_t seed);
  Status ShowCutAgain(uint64_t seed);
  // The image as it was when it was first shown, as a recording of its own.
  Status SaveImage(const std::string& path);
  Status Load(const std::string& path);
  const BlockLog& recording() const { return recording_; }

 private:
  void Clear();
  void BuildImage();
  std::span<const uint8_t> Shown(uint64_t offset, size_t size) const;
  bool Draw(uint32_t per_mille) { return per_mille > 0 && random_() % 1000 < per_mille; }

  const uint64_t size_;
  const size_t sector_;
  std::atomic<uint64_t>* const entries_;
  int memory_ = -1;
  std::span<uint8_t> base_;   // Shared.
  std::span<uint8_t> image_;  // Private copy of the base.
  bool shows_image_ = false;
  BlockLog recording_;
  size_t applied_ = 0;  // Entries of the recording that are in the base, when it serves images.
  struct Image {
    uint64_t cut = 0, seed = 0;
    BlockLog before_second;  // What was done to it before the second loss of power, if there was one.
    uint64_t second_seed = 0;
  } shown_;
  BlockLog image_log_;  // What was done to the image since.
  DiskFaults faults_;
  std::mt19937_64 random_{1};
};

}  // namespace partita
