#include "engine/io/sim_names.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace partita {

namespace {

// `path` is `directory` or lies in it, at whatever depth.
bool IsWithin(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

std::string_view SimParentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

SimNames::InodePtr SimNames::Find(std::string_view path) const {
  const auto found = now_.files.find(path);
  return found == now_.files.end() ? nullptr : found->second;
}

bool SimNames::HasDirectory(std::string_view path) const {
  return path.empty() || now_.directories.contains(path);
}

void SimNames::Create(std::string_view path, InodePtr inode, uint64_t sequence) {
  PARTITA_ASSERT(HasDirectory(SimParentOf(path)) && !now_.files.contains(path));
  Add({.kind = Kind::kCreate, .sequence = sequence, .path = std::string(path), .inode = std::move(inode)});
}

void SimNames::Link(std::string_view path, InodePtr inode, uint64_t sequence) {
  PARTITA_ASSERT(HasDirectory(SimParentOf(path)) && IsFree(path));
  Add({.kind = Kind::kLink, .sequence = sequence, .path = std::string(path), .inode = std::move(inode)});
}

void SimNames::CreateDirectory(std::string_view path, uint64_t sequence) {
  PARTITA_ASSERT(HasDirectory(SimParentOf(path)));
  Add({.kind = Kind::kCreateDirectory, .sequence = sequence, .path = std::string(path)});
}

void SimNames::Remove(std::string_view path, uint64_t sequence) {
  InodePtr inode = Find(path);
  PARTITA_ASSERT(inode != nullptr);
  Add({.kind = Kind::kRemove, .sequence = sequence, .path = std::string(path), .inode = std::move(inode)});
}

void SimNames::Rename(std::string_view from, std::string_view to, uint64_t sequence) {
  InodePtr inode = Find(from);
  PARTITA_ASSERT(inode != nullptr && HasDirectory(SimParentOf(to)));
  if (from == to) return;
  Add({.kind = Kind::kRename,
       .sequence = sequence,
       .path = std::string(from),
       .to = std::string(to),
       .inode = std::move(inode),
       .replaced = Find(to)});
}

void SimNames::RenameDirectory(std::string_view from, std::string_view to, uint64_t sequence) {
  PARTITA_ASSERT(HasDirectory(from) && HasDirectory(SimParentOf(to)) && IsFree(to) && !IsWithin(to, from));
  for (const Change& change : pending_) {
    PARTITA_ASSERT(!IsWithin(SimParentOf(change.path), from) && !IsWithin(SimParentOf(change.to), from));
  }
  Add({.kind = Kind::kRenameDirectory,
       .sequence = sequence,
       .path = std::string(from),
       .to = std::string(to)});
}

void SimNames::MoveDirectory(State& state, const std::string& from, const std::string& to) {
  const auto moved = [&](const std::string& path) { return to + path.substr(from.size()); };
  FileMap files;
  for (auto& [path, inode] : state.files) files[IsWithin(path, from) ? moved(path) : path] = inode;
  std::set<std::string, std::less<>> directories;
  for (const std::string& path : state.directories) {
    directories.insert(IsWithin(path, from) ? moved(path) : path);
  }
  state.files = std::move(files);
  state.directories = std::move(directories);
}

void SimNames::Apply(State& state, const Change& change) {
  switch (change.kind) {
    case Kind::kCreate:
    case Kind::kLink:
      state.files[change.path] = change.inode;
      return;
    case Kind::kCreateDirectory:
      state.directories.insert(change.path);
      return;
    case Kind::kRemove:
      state.files.erase(change.path);
      return;
    case Kind::kRename:
      state.files.erase(change.path);
      state.files[change.to] = change.inode;
      return;
    case Kind::kRenameDirectory:
      MoveDirectory(state, change.path, change.to);
      return;
  }
}

bool SimNames::DependsOn(const Change& later, const Change& earlier) {
  if (earlier.kind == Kind::kCreateDirectory) {
    return later.path == earlier.path || SimParentOf(later.path) == earlier.path ||
           (!later.to.empty() && SimParentOf(later.to) == earlier.path);
  }
  if (earlier.kind == Kind::kRenameDirectory) {
    const auto moves = [&](const std::string& path) {
      return IsWithin(path, earlier.path) || IsWithin(path, earlier.to);
    };
    return moves(later.path) || (!later.to.empty() && moves(later.to));
  }
  const auto touches = [&](const std::string& path) {
    return !path.empty() && (path == earlier.path || path == earlier.to);
  };
  const auto holds = [&](const InodePtr& inode) {
    const bool same = inode != nullptr && (inode == earlier.inode || inode == earlier.replaced);
    return same && earlier.kind != Kind::kLink;
  };
  return touches(later.path) || touches(later.to) || holds(later.inode) || holds(later.replaced);
}

void SimNames::Add(Change change) {
  Apply(now_, change);
  if (change.replaced != nullptr) change.replaced->RemoveName();
  if (change.kind == Kind::kCreate || change.kind == Kind::kLink) change.inode->AddName();
  if (change.kind == Kind::kRemove) change.inode->RemoveName();
  pending_.push_back(std::move(change));
  if (pending_.size() <= kPendingMax) return;
  std::vector<bool> wanted(pending_.size(), false);
  std::fill_n(wanted.begin(), kPendingMax / 2, true);
  Commit(wanted);
}

// Notes that `directory` is flushed; true when that makes the change durable.
bool SimNames::TakeFlushed(Change& change, std::string_view directory) const {
  if (SimParentOf(change.path) == directory) change.from_flushed = true;
  if (change.to.empty()) return change.from_flushed;
  if (SimParentOf(change.to) == directory) change.to_flushed = true;
  return change.from_flushed && change.to_flushed;
}

void SimNames::Flush(std::string_view directory, uint64_t covered) {
  std::vector<bool> wanted(pending_.size(), false);
  for (size_t i = 0; i < pending_.size() && pending_[i].sequence <= covered; ++i) {
    wanted[i] = TakeFlushed(pending_[i], directory);
  }
  Commit(wanted);
}

// Makes the wanted changes durable, and all that they depend on, in order.
void SimNames::Commit(const std::vector<bool>& wanted_in) {
  std::vector<bool> wanted = wanted_in;
  for (size_t i = pending_.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    for (size_t earlier = 0; earlier < i; ++earlier) {
      // A directory's own name is flushed through its parent, not through what lies in it.
      const Kind kind = pending_[earlier].kind;
      if (kind == Kind::kCreateDirectory || kind == Kind::kRenameDirectory) continue;
      if (DependsOn(pending_[i], pending_[earlier])) wanted[earlier] = true;
    }
  }
  std::vector<Change> kept;
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (wanted[i]) {
      Apply(durable_, pending_[i]);
    } else {
      kept.push_back(std::move(pending_[i]));
    }
  }
  pending_ = std::move(kept);
}

void SimNames::MakeAllDurable() {
  pending_.clear();
  durable_ = now_;
}

void SimNames::CrashPower(const SimCrashDice& dice) {
  std::vector<bool> survives(pending_.size());
  // Journals commit in order: half the time only a prefix survives, else any set that is possible.
  const bool in_order = dice.Word(0, pending_.size()) % 2 == 0;
  bool cut = false;
  for (size_t i = 0; i < pending_.size(); ++i) {
    bool alive = dice.NameSurvives(pending_[i].sequence) && !cut;
    for (size_t earlier = 0; earlier < i && alive; ++earlier) {
      if (!survives[earlier] && DependsOn(pending_[i], pending_[earlier])) alive = false;
    }
    survives[i] = alive;
    cut = cut || (in_order && !alive);
  }
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (survives[i]) Apply(durable_, pending_[i]);
  }
  for (const InodePtr& inode : AllFiles()) inode->ForgetNames();
  // A directory whose name is gone takes along what lies in it. Sorted, so parents come first.
  std::erase_if(durable_.directories, [this](const std::string& path) {
    for (std::string_view parent = SimParentOf(path); !parent.empty(); parent = SimParentOf(parent)) {
      if (!durable_.directories.contains(parent)) return true;
    }
    return false;
  });
  std::erase_if(durable_.files, [this](const auto& file) {
    const std::string_view parent = SimParentOf(file.first);
    return !parent.empty() && !durable_.directories.contains(parent);
  });
  pending_.clear();
  now_ = durable_;
  for (const auto& [path, inode] : now_.files) inode->AddName();
}

std::vector<SimNames::InodePtr> SimNames::AllFiles() const {
  std::map<uint64_t, InodePtr> files;
  const auto add = [&files](const InodePtr& inode) {
    if (inode != nullptr) files[inode->id()] = inode;
  };
  for (const auto& [path, inode] : now_.files) add(inode);
  for (const auto& [path, inode] : durable_.files) add(inode);
  for (const Change& change : pending_) {
    add(change.inode);
    add(change.replaced);
  }
  std::vector<InodePtr> list;
  for (auto& [id, inode] : files) list.push_back(std::move(inode));
  return list;
}

SimNames SimNames::CloneWith(const std::map<const SimInode*, InodePtr>& copies) const {
  SimNames clone = *this;
  const auto swap = [&copies](InodePtr& inode) {
    if (inode != nullptr) inode = copies.at(inode.get());
  };
  for (auto& [path, inode] : clone.now_.files) swap(inode);
  for (auto& [path, inode] : clone.durable_.files) swap(inode);
  for (Change& change : clone.pending_) {
    swap(change.inode);
    swap(change.replaced);
  }
  return clone;
}

}  // namespace partita
