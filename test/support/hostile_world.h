#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace partita {

// What a test needs to put a store into a hostile environment, and to see that nothing was lost.

// A small file system in memory, mounted while this lives. Mounting needs CAP_SYS_ADMIN: without it
// mounted() is false.
class TmpfsMount {
 public:
  // `path` is an existing directory.
  TmpfsMount(std::string path, uint64_t size_mib);
  ~TmpfsMount();
  TmpfsMount(const TmpfsMount&) = delete;
  TmpfsMount& operator=(const TmpfsMount&) = delete;

  bool mounted() const { return mounted_; }
  bool Remount(bool read_only);
  uint64_t FreeBytes() const;
  // Takes all space but `left` with one file; Drain gives it back.
  bool Fill(uint64_t left);
  void Drain();

 private:
  const std::string path_;
  const uint64_t size_mib_;
  bool mounted_ = false;
};

// Runs `body` in a forked child and returns what it returned; "signal 11" and the like when it died.
// For whatever limits a process for good. REQUIRES: no database is open in this process.
std::string RunInChild(const std::function<std::string()>& body);

// A file as it was, kept to be put back. Holes and zeros are not stored.
class SavedFile {
 public:
  explicit SavedFile(std::string path);
  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }

  void Restore() const;
  void Flip(uint64_t offset) const;
  void Overwrite(uint64_t offset, std::string_view bytes) const;
  void Truncate(uint64_t size) const;
  void Remove() const;
  void ReplaceBy(const SavedFile& other) const;
  std::string Read(uint64_t offset, uint64_t size) const;

 private:
  void WriteTo(const std::string& path) const;
  const std::string path_;
  uint64_t size_ = 0;
  std::map<uint64_t, std::string> pages_;
};

}  // namespace partita
