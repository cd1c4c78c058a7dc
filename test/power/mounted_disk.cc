#include "test/power/mounted_disk.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace partita {

namespace {

constexpr int kLoopTriesMax = 20;  // Others take loop devices too.
constexpr int kUnmountTriesMax = 20'000;
constexpr useconds_t kUnmountRetryMicroseconds = 1000;

// XFS below 300 MiB is refused by mkfs. What is never written takes no memory.
uint64_t SizeOf(FileSystemKind kind) {
  return kind == FileSystemKind::kXfs ? uint64_t{320} << 20 : uint64_t{64} << 20;
}

// XFS relies on its metadata blocks being written whole: it refuses to mount after a directory block was torn
// at 512 bytes, since recovery skips a block whose head is already new. ext4 replays whole blocks. See
// kSuperBlockEnd.
size_t SectorOf(FileSystemKind kind) { return kind == FileSystemKind::kXfs ? 4096 : 512; }

Status Forbidden(const std::string& what) { return Status::Unsupported(what + ": " + std::strerror(errno)); }

// Runs a program to its end, without its output. 127: there is no such program.
int RunProgram(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    const int nowhere = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor <= 2; ++descriptor) dup2(nowhere, descriptor);
    setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Status EnterOwnMounts() {
  if (unshare(CLONE_NEWNS) != 0) return Forbidden("a mount namespace (CAP_SYS_ADMIN)");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Forbidden("private mounts");
  return Status();
}

Result<std::unique_ptr<MountedDisk>> MountedDisk::Start(const std::string& directory, FileSystemKind kind) {
  std::unique_ptr<MountedDisk> mounted(new MountedDisk(kind));
  const std::string fuse = directory + "/fuse";
  mounted->path_ = directory + "/mount";
  if (mkdir(fuse.c_str(), 0700) != 0 || mkdir(mounted->path_.c_str(), 0700) != 0) {
    return Status::IoError("cannot make directories in " + directory);
  }
  PARTITA_ASSIGN(mounted->disk_, VirtualDisk::Start(fuse, SizeOf(kind), SectorOf(kind)));
  // Again, so that the file system on the disk is not mounted where the disk's server lives: killed last
  // there, it would unmount it while it dies, which waits for its own answers for ever.
  PARTITA_TRY(EnterOwnMounts());
  PARTITA_TRY(mounted->AttachLoop());
  return mounted;
}

MountedDisk::~MountedDisk() {
  if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  if (device_descriptor_ >= 0) close(device_descriptor_);
}

Status MountedDisk::AttachLoop() {
  const int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
  if (control < 0) return Forbidden("loop devices");
  const int file = open(disk_->file().c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    close(control);
    return Forbidden("the file of the disk");
  }
  Status status = Status::Unsupported("no loop device is free");
  for (int i = 0; i < kLoopTriesMax && device_descriptor_ < 0; ++i) {
    const int number = ioctl(control, LOOP_CTL_GET_FREE);
    device_ = "/dev/loop" + std::to_string(number);
    const int device = number < 0 ? -1 : open(device_.c_str(), O_RDWR | O_CLOEXEC);
    if (device < 0) {
      status = Forbidden("a loop device");
      break;
    }
    loop_config config{};
    config.fd = static_cast<uint32_t>(file);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(device, LOOP_CONFIGURE, &config) == 0) {
      device_descriptor_ = device;
      status = Status();
      break;
    }
    const bool taken = errno == EBUSY;
    status = Forbidden("setting up a loop device");
    close(device);
    if (!taken) break;
  }
  close(file);
  close(control);
  return status;
}

Status MountedDisk::Format() {
  const bool xfs = kind_ == FileSystemKind::kXfs;
  const std::vector<std::string> words =
      xfs ? std::vector<std::string>{"mkfs.xfs", "-f", "-q", "-K", device_}
          : std::vector<std::string>{"mkfs.ext4", "-F",   "-q", "-E",     "nodiscard,lazy_itable_init=0",
                                     "-N",        "1024", "-J", "size=4", device_};
  const int code = RunProgram(words);
  if (code == 127) return Status::Unsupported(words[0] + " is not installed");
  if (code != 0) return Status::IoError(words[0] + " failed with exit code " + std::to_string(code));
  return Status();
}

Status MountedDisk::Mount() {
  // What the device's own cache holds may be of another image.
  if (ioctl(device_descriptor_, BLKFLSBUF) != 0) return Status::IoError("cannot drop the device's cache");
  const bool xfs = kind_ == FileSystemKind::kXfs;
  if (mount(device_.c_str(), path_.c_str(), xfs ? "xfs" : "ext4", MS_NOATIME, "") != 0) {
    const int error = errno;
    const std::string message = std::string("mount: ") + std::strerror(error);
    return error == EPERM || error == ENODEV ? Status::Unsupported(message) : Status::IoError(message);
  }
  mounted_ = true;
  return Status();
}

Status MountedDisk::Unmount() {
  // A killed process may hold its files while the kernel ends its I/O.
  for (int tries = 0; umount2(path_.c_str(), 0) != 0; ++tries) {
    if (errno != EBUSY || tries >= kUnmountTriesMax) {
      return Status::IoError(std::string("umount: ") + std::strerror(errno));
    }
    usleep(kUnmountRetryMicroseconds);
  }
  mounted_ = false;
  return Status();
}

}  // namespace partita
