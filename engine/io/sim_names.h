#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/io/sim_inode.h"

namespace partita {

// "" for a name in the root.
std::string_view SimParentOf(std::string_view path);

// A file system's names: what processes see, what the device holds, and the name operations in
// between, which a FlushDirectory makes durable and a power cut keeps or drops.
//
// An operation depends on the earlier ones that share a path or a file with it, or that made its
// directory: it survives a power cut only if they do. Operations without such a tie survive or not
// each by itself. A rename from one directory to another is durable once both are flushed. A second name
// of a file needs the first one's creation, but nothing that happens to the first one needs the second.
class SimNames {
 public:
  using InodePtr = std::shared_ptr<SimInode>;
  using FileMap = std::map<std::string, InodePtr, std::less<>>;

  InodePtr Find(std::string_view path) const;  // Null when absent.
  bool HasDirectory(std::string_view path) const;
  bool IsFree(std::string_view path) const { return Find(path) == nullptr && !HasDirectory(path); }
  const FileMap& files() const { return now_.files; }

  // REQUIRES: the parent directory exists and the name is free.
  void Create(std::string_view path, InodePtr inode, uint64_t sequence);
  void CreateDirectory(std::string_view path, uint64_t sequence);
  // REQUIRES: as for Create, and `inode` has a name.
  void Link(std::string_view path, InodePtr inode, uint64_t sequence);
  // REQUIRES: the file exists.
  void Remove(std::string_view path, uint64_t sequence);
  // REQUIRES: `from` exists, and the parent directory of `to`.
  void Rename(std::string_view from, std::string_view to, uint64_t sequence);
  // Of a directory, with all that lies in it. REQUIRES: nothing that was done to names in it is volatile, as
  // this model does not say what a flush under the new name covers; `to` is free, and its parent exists.
  void RenameDirectory(std::string_view from, std::string_view to, uint64_t sequence);

  // Makes the operations in `directory` up to `covered` durable, with what they depend on.
  void Flush(std::string_view directory, uint64_t covered);
  void MakeAllDurable();

  void CrashPower(const SimCrashDice& dice);

  size_t pending() const { return pending_.size(); }

  // A copy; `copies` gives the copy of each file.
  SimNames CloneWith(const std::map<const SimInode*, InodePtr>& copies) const;
  // Each file that a name, now or after some crash, leads to; once.
  std::vector<InodePtr> AllFiles() const;

 private:
  enum class Kind : uint8_t { kCreate, kLink, kCreateDirectory, kRemove, kRename, kRenameDirectory };
  struct Change {
    Kind kind;
    uint64_t sequence;
    std::string path;
    std::string to;             // Of a rename.
    InodePtr inode;             // The file created, linked, removed or renamed.
    InodePtr replaced;          // The file that a rename replaced.
    bool from_flushed = false;  // Of a rename: its directories flushed so far.
    bool to_flushed = false;
  };
  struct State {
    FileMap files;
    std::set<std::string, std::less<>> directories;
  };

  // A journal that never commits by itself would be endless: past this the oldest changes do.
  static constexpr size_t kPendingMax = 512;

  static void Apply(State& state, const Change& change);
  static void MoveDirectory(State& state, const std::string& from, const std::string& to);
  static bool DependsOn(const Change& later, const Change& earlier);
  void Add(Change change);
  bool TakeFlushed(Change& change, std::string_view directory) const;
  void Commit(const std::vector<bool>& wanted);

  State now_;
  State durable_;
  std::vector<Change> pending_;
};

}  // namespace partita
