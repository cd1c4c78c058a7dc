#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/result.h"
#include "test/power/virtual_disk.h"

namespace partita {

enum class FileSystemKind : uint8_t { kExt4, kXfs };

// A real file system on a VirtualDisk, by way of a loop device.
//
// All mounts lie in a mount namespace of this process (EnterOwnMounts) and the loop device detaches itself
// with its last user: whatever ends this process, a Ctrl-C or a SIGKILL, nothing is left behind.
//
// Lifecycle: Start; Format; then Mount and Unmount in turn. Between them the disk may show another image.
class MountedDisk {
 public:
  // kUnsupported: namespaces, mounts or loop devices are forbidden here, or mkfs is missing; says which.
  // `directory`: an empty one, for mount points.
  static Result<std::unique_ptr<MountedDisk>> Start(const std::string& directory, FileSystemKind kind);
  ~MountedDisk();

  VirtualDisk& disk() { return *disk_; }
  const std::string& path() const { return path_; }  // Of the mounted file system.

  Status Format();
  Status Mount();
  Status Unmount();  // REQUIRES: no process has a file open there.

 private:
  explicit MountedDisk(FileSystemKind kind) : kind_(kind) {}
  Status AttachLoop();

  const FileSystemKind kind_;
  std::unique_ptr<VirtualDisk> disk_;
  std::string path_;
  std::string device_;
  int device_descriptor_ = -1;
  bool mounted_ = false;
};

// Before any of the above: mounts of this process and its children are theirs alone from here on.
Status EnterOwnMounts();

}  // namespace partita
