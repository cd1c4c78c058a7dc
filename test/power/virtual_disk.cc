#define FUSE_USE_VERSION 312
#include "test/power/virtual_disk.h"

#include <fuse3/fuse_lowlevel.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/base/assert.h"

// The parent asks over a socket pair; the child has one thread, which answers the kernel and the parent in
// turn, so that nothing here needs a lock.

namespace partita {

struct VirtualDisk::Command {
  enum class Kind : uint32_t { kRestart, kFaults, kSize, kCut, kCutAgain, kSaveImage, kLoad } kind;
  uint64_t cut = 0;
  uint64_t seed = 0;
  DiskFaults faults = {};
  char path[512] = {};
};

struct VirtualDisk::Answer {
  LogSize size;
  char error[256] = {};  // Empty: done.
};

namespace {

constexpr fuse_ino_t kDiskInode = 2;
constexpr const char* kDiskName = "disk";
constexpr unsigned kWriteMax = 1u << 20;
constexpr double kAttributesValidSeconds = 3600;

DiskContent* ContentOf(fuse_req_t request) { return static_cast<DiskContent*>(fuse_req_userdata(request)); }

struct stat AttributesOf(fuse_ino_t inode, uint64_t size) {
  struct stat attributes {};
  attributes.st_ino = inode;
  attributes.st_mode = inode == kDiskInode ? S_IFREG | 0600 : S_IFDIR | 0700;
  attributes.st_nlink = 1;
  attributes.st_size = inode == kDiskInode ? static_cast<off_t>(size) : 0;
  return attributes;
}

void LookUp(fuse_req_t request, fuse_ino_t parent, const char* name) {
  if (parent != FUSE_ROOT_ID || std::strcmp(name, kDiskName) != 0) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_entry_param entry{};
  entry.ino = kDiskInode;
  entry.attr = AttributesOf(kDiskInode, ContentOf(request)->size());
  entry.attr_timeout = entry.entry_timeout = kAttributesValidSeconds;
  fuse_reply_entry(request, &entry);
}

void GetAttributes(fuse_req_t request, fuse_ino_t inode, fuse_file_info*) {
  const struct stat attributes = AttributesOf(inode, ContentOf(request)->size());
  fuse_reply_attr(request, &attributes, kAttributesValidSeconds);
}

void Open(fuse_req_t request, fuse_ino_t, fuse_file_info* file) {
  file->direct_io = 1;  // The kernel must not keep what an image showed.
  fuse_reply_open(request, file);
}

void Read(fuse_req_t request, fuse_ino_t, size_t size, off_t offset, fuse_file_info*) {
  const auto bytes = ContentOf(request)->Read(static_cast<uint64_t>(offset), size);
  if (bytes.has_value()) {
    fuse_reply_buf(request, reinterpret_cast<const char*>(bytes->data()), bytes->size());
  } else {
    fuse_reply_err(request, EIO);
  }
}

void Write(fuse_req_t request, fuse_ino_t, const char* data, size_t size, off_t offset, fuse_file_info*) {
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(data), size);
  if (ContentOf(request)->Write(static_cast<uint64_t>(offset), bytes)) {
    fuse_reply_write(request, size);
  } else {
    fuse_reply_err(request, EIO);
  }
}

void Synchronize(fuse_req_t request, fuse_ino_t, int, fuse_file_info*) {
  fuse_reply_err(request, ContentOf(request)->Flush() ? 0 : EIO);
}

void Initialize(void*, fuse_conn_info* connection) {
  connection->max_write = kWriteMax;
  connection->max_readahead = 0;
}

fuse_lowlevel_ops Operations() {
  fuse_lowlevel_ops operations{};
  operations.init = Initialize;
  operations.lookup = LookUp;
  operations.getattr = GetAttributes;
  operations.open = Open;
  operations.read = Read;
  operations.write = Write;
  operations.fsync = Synchronize;
  return operations;
}

}  // namespace

// The child: serves the file system until the parent hangs up.
class DiskServer {
 public:
  using Command = VirtualDisk::Command;
  using Answer = VirtualDisk::Answer;

  DiskServer(uint64_t size, size_t sector, std::atomic<uint64_t>* entries, int control)
      : content_(size, sector, entries), control_(control) {}

  bool Mount(const std::string& mount_point) {
    char program[] = "power_cut", option[] = "-odefault_permissions,fsname=partita-disk";
    char* arguments[] = {program, option, nullptr};
    fuse_args args = FUSE_ARGS_INIT(2, arguments);
    const fuse_lowlevel_ops operations = Operations();
    session_ = fuse_session_new(&args, &operations, sizeof operations, &content_);
    fuse_opt_free_args(&args);
    return session_ != nullptr && fuse_session_mount(session_, mount_point.c_str()) == 0;
  }

  void Serve() {
    fuse_buf buffer{};
    pollfd ready[2] = {{fuse_session_fd(session_), POLLIN, 0}, {control_, POLLIN, 0}};
    while (fuse_session_exited(session_) == 0) {
      if (poll(ready, 2, -1) < 0 && errno != EINTR) return;
      if (ready[0].revents != 0) {
        const int received = fuse_session_receive_buf(session_, &buffer);
        if (received == 0 || (received < 0 && received != -EINTR)) return;
        if (received > 0) fuse_session_process_buf(session_, &buffer);
      }
      if (ready[1].revents != 0 && !AnswerOne()) return;
    }
  }

 private:
  bool AnswerOne() {
    Command command;
    if (recv(control_, &command, sizeof command, 0) != sizeof command) return false;
    const Status done = Do(command);
    const BlockLog& log = content_.recording();
    Answer answer{.size = {log.size(), log.bytes(), log.flushes()}};
    if (!done.ok()) done.ToString().copy(answer.error, sizeof answer.error - 1);
    return send(control_, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer;
  }

  Status Do(const Command& command) {
    using Kind = Command::Kind;
    switch (command.kind) {
      case Kind::kRestart:
        content_.Restart();
        return Status();
      case Kind::kFaults:
        content_.SetFaults(command.faults);
        return Status();
      case Kind::kSize:
        return Status();
      case Kind::kCut:
        return content_.ShowCut(command.cut, command.seed);
      case Kind::kCutAgain:
        return content_.ShowCutAgain(command.seed);
      case Kind::kSaveImage:
        return content_.SaveImage(command.path);
      case Kind::kLoad:
        return content_.Load(command.path);
    }
    return Status::InvalidArgument("unknown command");
  }

  DiskContent content_;
  const int control_;
  fuse_session* session_ = nullptr;
};

Result<std::unique_ptr<VirtualDisk>> VirtualDisk::Start(const std::string& mount_point, uint64_t size,
                                                        size_t sector) {
  if (access("/dev/fuse", R_OK | W_OK) != 0) return Status::Unsupported("/dev/fuse is missing or forbidden");
  std::unique_ptr<VirtualDisk> disk(new VirtualDisk());
  disk->mount_point_ = mount_point;
  disk->file_ = mount_point + "/" + kDiskName;
  void* shared =
      mmap(nullptr, sizeof(std::atomic<uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PARTITA_ASSERT(shared != MAP_FAILED);
  disk->entries_ = new (shared) std::atomic<uint64_t>(0);
  int ends[2];
  PARTITA_ASSERT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  disk->control_ = ends[0];
  const pid_t parent = getpid();
  disk->server_ = fork();
  PARTITA_ASSERT(disk->server_ >= 0);
  if (disk->server_ == 0) {
    // Ctrl-C reaches the whole group; the parent needs this process until it has unmounted.
    for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(ignored, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    DiskServer server(size, sector, disk->entries_, ends[1]);
    const char mounted = server.Mount(mount_point) ? 1 : 0;
    if (send(ends[1], &mounted, 1, MSG_NOSIGNAL) != 1 || mounted == 0) _exit(1);
    server.Serve();
    _exit(0);
  }
  close(ends[1]);
  char mounted = 0;
  if (recv(disk->control_, &mounted, 1, 0) != 1 || mounted == 0) {
    return Status::Unsupported("a FUSE file system cannot be mounted here");
  }
  return disk;
}

VirtualDisk::~VirtualDisk() {
  // Its end aborts what the kernel still asks of it; then nothing can hang on the mount.
  if (server_ > 0) {
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
  }
  if (!mount_point_.empty()) umount2(mount_point_.c_str(), MNT_DETACH);
  if (control_ >= 0) close(control_);
  if (entries_ != nullptr) munmap(entries_, sizeof *entries_);
}

Result<VirtualDisk::LogSize> VirtualDisk::Ask(const Command& command) {
  Answer answer;
  if (send(control_, &command, sizeof command, MSG_NOSIGNAL) != sizeof command ||
      recv(control_, &answer, sizeof answer, 0) != sizeof answer) {
    return Status::IoError("the process that serves the disk is gone");
  }
  if (answer.error[0] != 0) return Status::IoError(answer.error);
  return answer.size;
}

Status VirtualDisk::Restart() { return Ask({.kind = Command::Kind::kRestart}).status(); }
Status VirtualDisk::SetFaults(const DiskFaults& faults) {
  return Ask({.kind = Command::Kind::kFaults, .faults = faults}).status();
}
Result<VirtualDisk::LogSize> VirtualDisk::log_size() { return Ask({.kind = Command::Kind::kSize}); }
Status VirtualDisk::ShowCut(uint64_t cut, uint64_t seed) {
  return Ask({.kind = Command::Kind::kCut, .cut = cut, .seed = seed}).status();
}
Status VirtualDisk::ShowCutAgain(uint64_t seed) {
  return Ask({.kind = Command::Kind::kCutAgain, .seed = seed}).status();
}
Status VirtualDisk::SaveImage(const std::string& path) {
  Command command{.kind = Command::Kind::kSaveImage};
  path.copy(command.path, sizeof command.path - 1);
  return Ask(command).status();
}
Status VirtualDisk::Load(const std::string& path) {
  Command command{.kind = Command::Kind::kLoad};
  path.copy(command.path, sizeof command.path - 1);
  return Ask(command).status();
}

}  // namespace partita
