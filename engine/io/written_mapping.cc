#include "engine/io/written_mapping.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

#include "engine/base/assert.h"

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
    : file_{.descriptor = descriptor, .path = std::move(name)}, memory_(size) {}

WrittenMapping::~WrittenMapping() { close(file_.descriptor); }

Result<std::unique_ptr<SharedMapping>> WrittenMapping::Make(int descriptor, uint64_t size, std::string name) {
  std::unique_ptr<WrittenMapping> mapping(new WrittenMapping(descriptor, size, std::move(name)));
  const FileHandle& file = mapping->file_;
  if (mapping->memory_.data() == nullptr) return Status::ResourceExhausted("no memory for " + file.path);
  PARTITA_ASSIGN(const size_t read, BlockingRead(file, 0, mapping->bytes()));
  if (read != size) return Status::IoError(file.path + ": the file became shorter while it was read");
  return std::unique_ptr<SharedMapping>(std::move(mapping));
}

Status WrittenMapping::Stored(uint64_t offset, uint64_t size) {
  PARTITA_ASSERT(offset <= memory_.size() && size <= memory_.size() - offset);
  return BlockingWrite(file_, offset, bytes().subspan(offset, size));
}

}  // namespace partita
