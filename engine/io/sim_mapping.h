#pragma once
#include <memory>
#include <string_view>

#include "engine/base/aligned_buffer.h"
#include "engine/io/file.h"
#include "engine/io/sim_device.h"

namespace partita {

// A file's page cache as a process maps it: what is stored here and announced by Stored() is in the
// kernel's hands at once, what was not announced at the latest when the process ends.
class SimMapping : public SharedMapping {
 public:
  SimMapping(SimDevice& device, std::string_view path, std::shared_ptr<SimInode> inode, uint64_t size);
  ~SimMapping() override;

  std::span<uint8_t> bytes() override { return memory_.span().first(size_); }
  Status Stored(uint64_t offset, uint64_t size) override;

  // Hands the kernel all that differs from the file.
  void KeepUnannounced();

 private:
  SimDevice& device_;
  const std::string_view path_;
  const std::shared_ptr<SimInode> inode_;
  const uint64_t size_;
  AlignedBuffer memory_;
};

}  // namespace partita
