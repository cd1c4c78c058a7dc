#include "engine/io/sim_disk.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/assert.h"
#include "engine/io/sim_runtime.h"

namespace partita {

namespace {
// Keeps a disk's chance apart from that of a runtime with the same seed.
constexpr uint64_t kCrashSalt = 0xd15cd15c;

constexpr std::string_view kSimOpNames[] = {
    "open",   "read",  "write",           "flush", "size",   "truncate", "drop-cache", "remove",
    "rename", "mkdir", "flush-directory", "list",  "exists", "lock",     "free-bytes", "allocate",
    "link",   "store"};
static_assert(std::size(kSimOpNames) == kSimOpCount);

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
}  // namespace

std::string_view SimOpName(SimOp op) { return kSimOpNames[static_cast<size_t>(op)]; }

std::string SimOperationRecord::ToString() const {
  char text[96];
  std::snprintf(text, sizeof(text), "p%u #%llu %llu ns ", process, static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(time_ns));
  std::string line(text);
  line.append(SimOpName(op)).append(" '").append(path).append("'");
  if (offset != 0 || size != 0) {
    line.append(" at ").append(std::to_string(offset)).append("+").append(std::to_string(size));
  }
  if (code != Code::kOk) line.append(" -> ").append(CodeName(code));
  return line;
}

SimDisk::SimDisk(uint64_t seed) : seed_(seed), random_(seed ^ kCrashSalt) {}

SimDisk::~SimDisk() { PARTITA_ASSERT(live_.empty()); }

void SimDisk::EndProcesses() {
  for (SimRuntime* runtime : live_) runtime->CrashNow();
  lock_holder_ = 0;
  lock_readers_.clear();
}

void SimDisk::CrashPower() {
  EndProcesses();
  const SimCrashDice dice(random_.Next());
  names_.CrashPower(dice);
  for (const auto& inode : names_.AllFiles()) inode->CrashPower(dice);
}

void SimDisk::CrashProcess() {
  EndProcesses();
  // What a failed flush lost may leave the page cache at any time, or stay.
  for (const auto& inode : names_.AllFiles()) {
    if (random_.Chance(0.5)) inode->DropCache();
  }
}

Result<std::string> SimDisk::ReadFile(std::string_view path) const {
  const auto inode = names_.Find(path);
  if (inode == nullptr) return Status::NotFound("simulated file '" + std::string(path) + "' is absent");
  std::string content(inode->size(), '\0');
  inode->Read(0, {reinterpret_cast<uint8_t*>(content.data()), content.size()});
  return content;
}

void SimDisk::WriteFile(std::string_view path, std::string_view content) {
  const auto inode = FindOrMake(path);
  inode->Truncate(0, ++sequence_);
  inode->Write(0, AsBytes(content), ++sequence_);
  inode->MakeAllDurable();
}

void SimDisk::WriteFileAt(std::string_view path, uint64_t offset, std::string_view bytes) {
  const auto inode = FindOrMake(path);
  inode->Write(offset, AsBytes(bytes), ++sequence_);
  inode->MakeAllDurable();
}

void SimDisk::TruncateFile(std::string_view path, uint64_t size) {
  const auto inode = names_.Find(path);
  PARTITA_ASSERT(inode != nullptr);
  inode->Truncate(size, ++sequence_);
  inode->MakeAllDurable();
}

bool SimDisk::RemoveFile(std::string_view path) {
  if (names_.Find(path) == nullptr) return false;
  names_.Remove(path, ++sequence_);
  names_.MakeAllDurable();
  return true;
}

void SimDisk::RenameFile(std::string_view from, std::string_view to) {
  names_.Rename(from, to, ++sequence_);
  names_.MakeAllDurable();
}

void SimDisk::FlipBit(std::string_view path, uint64_t offset, uint32_t bit) {
  const auto inode = names_.Find(path);
  PARTITA_ASSERT(inode != nullptr);
  inode->FlipBit(offset, bit);
  NoteStruck(inode.get());
}

// By each of its names.
void SimDisk::NoteStruck(const SimInode* inode) {
  for (const auto& [path, named] : names_.files()) {
    if (named.get() == inode) struck_.insert(path);
  }
}

std::vector<std::string> SimDisk::ListFiles(std::string_view path_prefix) const {
  std::vector<std::string> paths;
  for (auto it = names_.files().lower_bound(path_prefix);
       it != names_.files().end() && it->first.starts_with(path_prefix); ++it) {
    paths.push_back(it->first);
  }
  return paths;
}

bool SimDisk::FileExists(std::string_view path) const { return names_.Find(path) != nullptr; }

uint64_t SimDisk::UnflushedSectors() const {
  uint64_t count = 0;
  for (const auto& [path, inode] : names_.files()) count += inode->UnflushedSectors();
  return count;
}

std::unique_ptr<SimDisk> SimDisk::Clone() const {
  PARTITA_ASSERT(live_.empty());
  auto clone = std::make_unique<SimDisk>(seed_);
  clone->random_ = random_;
  clone->sequence_ = sequence_;
  clone->next_inode_ = next_inode_;
  clone->capacity_ = capacity_;
  clone->processes_ = processes_;
  clone->lacking_ = lacking_;
  clone->struck_ = struck_;
  std::map<const SimInode*, std::shared_ptr<SimInode>> copies;
  for (const auto& inode : names_.AllFiles()) {
    copies[inode.get()] = std::make_shared<SimInode>(*inode, clone->pool_);
  }
  clone->names_ = names_.CloneWith(copies);
  return clone;
}

void SimDisk::Reseed(uint64_t seed) {
  seed_ = seed;
  random_ = SimRandom(seed ^ kCrashSalt);
}

std::vector<SimOperationRecord> SimDisk::operations() const {
  std::vector<SimOperationRecord> list;
  list.reserve(log_.size());
  const uint64_t first = logged_ - log_.size();
  for (uint64_t i = first; i < logged_; ++i) list.push_back(log_[i % kLogSize]);
  return list;
}

std::string SimDisk::DescribeOperations(size_t count_max) const {
  const std::vector<SimOperationRecord> list = operations();
  std::string text;
  for (size_t i = list.size() - std::min(count_max, list.size()); i < list.size(); ++i) {
    text.append("  ").append(list[i].ToString()).append("\n");
  }
  return text;
}

void SimDisk::Record(const SimOperationRecord& record) {
  ++counts_[static_cast<size_t>(record.op)];
  if (log_.size() < kLogSize) {
    log_.push_back(record);
  } else {
    log_[logged_ % kLogSize] = record;
  }
  ++logged_;
}

std::string_view SimDisk::Intern(std::string_view path) {
  const auto found = interned_.find(path);
  return found != interned_.end() ? *found : *interned_.emplace(path).first;
}

std::shared_ptr<SimInode> SimDisk::NewInode() { return std::make_shared<SimInode>(next_inode_++, pool_); }

std::shared_ptr<SimInode> SimDisk::FindOrMake(std::string_view path) {
  auto inode = names_.Find(path);
  if (inode != nullptr) return inode;
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    if (!names_.HasDirectory(path.substr(0, slash)))
      names_.CreateDirectory(path.substr(0, slash), ++sequence_);
  }
  inode = NewInode();
  names_.Create(path, inode, ++sequence_);
  names_.MakeAllDurable();
  return inode;
}

}  // namespace partita
