#include "engine/io/sim_mapping.h"

#include <algorithm>
#include <cstring>

#include "engine/base/assert.h"

namespace partita {

SimMapping::SimMapping(SimDevice& device, std::string_view path, std::shared_ptr<SimInode> inode,
                       uint64_t size)
    : device_(device), path_(path), inode_(std::move(inode)), size_(size), memory_(size) {
  PARTITA_ASSERT(size == 0 || memory_.data() != nullptr);
  const size_t read = inode_->Read(0, bytes());
  PARTITA_ASSERT(read == size);
  inode_->AddMapping(bytes());
  device_.AddMapping(this);
}

SimMapping::~SimMapping() {
  if (!device_.crashed()) KeepUnannounced();
  device_.RemoveMapping(this);
  inode_->RemoveMapping(bytes());
}

Status SimMapping::Stored(uint64_t offset, uint64_t size) {
  PARTITA_ASSERT(offset <= size_ && size <= size_ - offset);
  if (device_.crashed() || size == 0) return Status();
  device_.RecordStore(path_, offset, size);
  inode_->Write(offset, bytes().subspan(offset, size), device_.NextSequence());
  return Status();
}

void SimMapping::KeepUnannounced() {
  uint8_t now[kPageSize];
  // A truncated file has no page there to store to any more.
  const uint64_t end = std::min(size_, inode_->size());
  for (uint64_t offset = 0; offset < end; offset += kPageSize) {
    const size_t count = std::min<uint64_t>(kPageSize, end - offset);
    inode_->Read(offset, {now, count});
    const std::span<const uint8_t> stored = bytes().subspan(offset, count);
    if (std::memcmp(now, stored.data(), count) != 0) inode_->Write(offset, stored, device_.NextSequence());
  }
}

}  // namespace partita
