#include "engine/io/written_mapping.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/assert.h"
#include "engine/io/errno_status.h"

namespace partita {

bool StoresNeedSpace(int descriptor) {
  constexpr uint32_t kBtrfs = 0x9123683E, kF2fs = 0xF2F52010, kBcachefs = 0xCA451A4E, kZfs = 0x2FC12FC1;
  constexpr uint32_t kOverlay = 0x794C7630;  // Over whatever it may be.
  struct statfs information {};
  if (fstatfs(descriptor, &information) != 0) return false;
  const uint32_t type = static_cast<uint32_t>(information.f_type);
  return type == kBtrfs || type == kF2fs || type == kBcachefs || type == kZfs || type == kOverlay;
}

WrittenMapping::WrittenMapping(int descriptor, uint64_t size, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), memory_(size) {}

WrittenMapping::~WrittenMapping() { close(descriptor_); }

Result<std::unique_ptr<SharedMapping>> WrittenMapping::Make(int descriptor, uint64_t size, std::string name) {
  std::unique_ptr<WrittenMapping> mapping(new WrittenMapping(descriptor, size, std::move(name)));
  if (mapping->memory_.data() == nullptr) return Status::ResourceExhausted("no memory for " + mapping->name_);
  PARTITA_TRY(mapping->Read());
  return std::unique_ptr<SharedMapping>(std::move(mapping));
}

Status WrittenMapping::Read() {
  for (size_t done = 0; done < memory_.size();) {
    const ssize_t count =
        pread(descriptor_, memory_.data() + done, memory_.size() - done, static_cast<off_t>(done));
    if (count == 0) return Status::IoError(name_ + ": the file became shorter while it was read");
    if (count < 0 && errno != EINTR) return ErrnoStatusAt("read", name_, done, errno);
    done += static_cast<size_t>(std::max<ssize_t>(count, 0));
  }
  return Status();
}

Status WrittenMapping::Stored(uint64_t offset, uint64_t size) {
  PARTITA_ASSERT(offset <= memory_.size() && size <= memory_.size() - offset);
  for (const uint64_t end = offset + size; offset < end;) {
    const ssize_t count =
        pwrite(descriptor_, memory_.data() + offset, end - offset, static_cast<off_t>(offset));
    if (count < 0 && errno != EINTR) return ErrnoStatusAt("write", name_, offset, errno);
    offset += static_cast<uint64_t>(std::max<ssize_t>(count, 0));
  }
  return Status();
}

}  // namespace partita
