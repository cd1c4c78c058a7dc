#include "test/support/hostile_world.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

namespace partita {

namespace {

constexpr uint64_t kPage = 4096;

std::string FillerPath(const std::string& mount) { return mount + "/filler"; }

}  // namespace

TmpfsMount::TmpfsMount(std::string path, uint64_t size_mib) : path_(std::move(path)), size_mib_(size_mib) {
  std::string size = "size=" + std::to_string(size_mib_) + "m";
  mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, size.c_str()) == 0;
}

TmpfsMount::~TmpfsMount() {
  if (mounted_) umount2(path_.c_str(), MNT_DETACH);
}

bool TmpfsMount::Remount(bool read_only) {
  std::string size = "size=" + std::to_string(size_mib_) + "m";
  return mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT | (read_only ? MS_RDONLY : 0), size.c_str()) == 0;
}

uint64_t TmpfsMount::FreeBytes() const {
  struct statvfs information {};
  if (statvfs(path_.c_str(), &information) != 0) return 0;
  return static_cast<uint64_t>(information.f_bavail) * information.f_frsize;
}

bool TmpfsMount::Fill(uint64_t left) {
  int descriptor = open(FillerPath(path_).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) return false;
  // In steps, because others may take space meanwhile.
  constexpr uint64_t kStep = 256u << 10;
  uint64_t size = 0;
  for (uint64_t free = FreeBytes(); free > left; free = FreeBytes(), size += kStep) {
    uint64_t step = std::min(kStep, free - left);
    if (posix_fallocate(descriptor, static_cast<off_t>(size), static_cast<off_t>(step)) == ENOSPC) break;
  }
  close(descriptor);
  return FreeBytes() <= left + kStep;
}

void TmpfsMount::Drain() { std::filesystem::remove(FillerPath(path_)); }

std::string RunInChild(const std::function<std::string()>& body) {
  int answer[2];
  if (pipe(answer) != 0) return "no pipe";
  pid_t child = fork();
  if (child == 0) {
    close(answer[0]);
    std::string text = body();
    (void)!write(answer[1], text.data(), text.size());
    _exit(0);
  }
  close(answer[1]);
  std::string text;
  char piece[4096];
  for (ssize_t size; (size = read(answer[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<size_t>(size));
  close(answer[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return "no child";
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? text : "exit code " + std::to_string(WEXITSTATUS(status));
}

// ---- Files.

SavedFile::SavedFile(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_, std::ios::binary);
  std::string page(kPage, '\0');
  while (file.read(page.data(), kPage) || file.gcount() > 0) {
    size_t count = static_cast<size_t>(file.gcount());
    if (page.find_first_not_of('\0') < count) pages_[size_] = page.substr(0, count);
    size_ += count;
  }
}

void SavedFile::WriteTo(const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (const auto& [offset, page] : pages_) {
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(page.data(), static_cast<std::streamsize>(page.size()));
  }
  file.close();
  std::filesystem::resize_file(path, size_);
}

void SavedFile::Restore() const { WriteTo(path_); }
void SavedFile::ReplaceBy(const SavedFile& other) const { other.WriteTo(path_); }
void SavedFile::Truncate(uint64_t size) const { std::filesystem::resize_file(path_, size); }
void SavedFile::Remove() const { std::filesystem::remove(path_); }

std::string SavedFile::Read(uint64_t offset, uint64_t size) const {
  std::ifstream file(path_, std::ios::binary);
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

void SavedFile::Overwrite(uint64_t offset, std::string_view bytes) const {
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void SavedFile::Flip(uint64_t offset) const {
  std::string byte = Read(offset, 1);
  byte[0] = static_cast<char>(byte[0] ^ 0x10);
  Overwrite(offset, byte);
}

}  // namespace partita
