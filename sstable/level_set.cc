#include "sstable/level_set.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/heap_bytes.h"
#include "engine/base/user_key.h"
#include "sstable/files_beneath.h"
#include "sstable/level_iterator.h"
#include "sstable/rising_lookup.h"
#include "sstable/table_scan.h"

namespace partita {

void AppendFileMeta(std::string* out, const FileMeta& meta) {
  AppendVarint(out, meta.level);
  AppendBytes(out, meta.lower);
  AppendBytes(out, meta.upper);
  AppendTableInfo(out, *meta.info);
}

FileMeta ReadFileMeta(ByteReader* reader) {
  FileMeta meta;
  const uint64_t level = reader->ReadVarint();
  if (level >= kLevels) reader->ReadRaw(SIZE_MAX);  // Fails the reader.
  meta.level = static_cast<uint32_t>(level);
  meta.lower = reader->ReadBytes();
  meta.upper = reader->ReadBytes();
  meta.info = ReadTableInfo(reader);
  return meta;
}

// --- File references ---

std::string_view FileRef::first() const { return std::max<std::string_view>(lower, info->smallest); }

std::string FileRef::end() const {
  std::string end = info->largest + '\0';
  return upper.empty() || end < upper ? end : upper;
}

bool FileRef::IsWhole() const { return lower <= info->smallest && (upper.empty() || upper > info->largest); }

bool FileRef::MayHold(std::string_view user_key) const {
  return IsInKeyRange(user_key, lower, upper) && user_key >= info->smallest && user_key <= info->largest;
}

bool FileRef::OverlapsBounds(std::string_view lower_bound, std::string_view upper_bound) const {
  if (!upper_bound.empty() && first() >= upper_bound) return false;
  return info->largest >= lower_bound && (upper.empty() || upper > lower_bound);
}

namespace {

bool Newer(const FileRef& a, const FileRef& b) {
  const auto key = [](const FileRef& f) {
    return std::make_tuple(f.info->version_max, f.info->version_min, f.info->id);
  };
  return key(a) > key(b);
}

bool KeyOrder(const FileRef& a, const FileRef& b) { return a.first() < b.first(); }

// True when every key of `a` is below every key of `b`. REQUIRES: a.first() <= b.first().
bool EndsBefore(const FileRef& a, const FileRef& b) {
  return std::string_view(a.info->largest) < b.first() ||
         (!a.upper.empty() && std::string_view(a.upper) <= b.first());
}

// Each to its place in the level, behind those of the same.
void AddFiles(std::vector<const FileRef*> added, size_t level, std::vector<FileRef>* files) {
  const auto order = level == 0 ? Newer : KeyOrder;
  std::sort(added.begin(), added.end(), [order](const FileRef* a, const FileRef* b) {
    return order(*a, *b) || (!order(*b, *a) && a < b);
  });
  std::vector<FileRef> all;
  all.reserve(files->size() + added.size());
  auto kept = files->begin();
  for (const FileRef* file : added) {
    for (; kept != files->end() && !order(*file, *kept); ++kept) all.push_back(std::move(*kept));
    all.push_back(*file);
    all.back().seek_bytes = level == 0 ? std::make_shared<std::atomic<uint64_t>>(0) : nullptr;
  }
  std::move(kept, files->end(), std::back_inserter(all));
  *files = std::move(all);
}

KeyFences FirstsOf(const std::vector<FileRef>& files) {
  return KeyFences(files.size(), [&](size_t i) { return files[i].first(); });
}

uint64_t EntriesOf(const std::vector<FileRef>& files) {
  uint64_t entries = 0;
  for (const FileRef& file : files) entries += file.info->entry_count;
  return entries;
}

Status CheckLevel(size_t level, const std::vector<FileRef>& files) {
  for (size_t i = 1; i < files.size(); ++i) {
    const bool in_order = level == 0 ? !Newer(files[i], files[i - 1]) : EndsBefore(files[i - 1], files[i]);
    if (!in_order) {
      return Status::Corruption("level " + std::to_string(level) + ": files " +
                                std::to_string(files[i - 1].info->id.value) + " and " +
                                std::to_string(files[i].info->id.value) +
                                (level == 0 ? " are out of order" : " overlap"));
    }
  }
  return Status();
}

}  // namespace

// --- Levels ---

LevelSet::Level::Level() : intervals(std::make_unique<const Level0Intervals>()) {}

LevelSet::Level::Level(std::vector<FileRef> of_level, size_t level)
    : files(std::move(of_level)), entries(EntriesOf(files)) {
  files.shrink_to_fit();
  if (level > 0) {
    firsts = FirstsOf(files);
  } else {
    intervals = std::make_unique<const Level0Intervals>(files);
  }
}

namespace {

// To what is never destroyed. Nobody owns it, so that copies, which all shards make of one, count nothing.
template <typename T>
const std::shared_ptr<const T>& Unowned(const T* object) {
  return *new std::shared_ptr<const T>(std::shared_ptr<void>(), object);
}

}  // namespace

const LevelSet::LevelPtr& LevelSet::NoFiles() {
  static const LevelPtr& none = Unowned(new Level);
  return none;
}

const std::shared_ptr<const LevelSet>& LevelSet::Empty() {
  static const std::shared_ptr<const LevelSet>& empty = Unowned(new LevelSet);
  return empty;
}

size_t LevelSet::memory_bytes() const {
  constexpr size_t kCounter = HeapBytes(kSharedCounts + sizeof(std::atomic<uint64_t>));
  size_t bytes = HeapBytes(sizeof(LevelSet) + kSharedCounts);
  for (const LevelPtr& level : levels_) {
    if (level->files.empty()) continue;  // That one is shared by all sets.
    bytes +=
        HeapBytes(sizeof(Level) + kSharedCounts) + HeapBytes(level->files) + level->firsts.memory_bytes();
    for (const FileRef& file : level->files) {
      bytes += HeapBytes(file.lower) + HeapBytes(file.upper) + (file.seek_bytes != nullptr ? kCounter : 0);
    }
    if (level->intervals == nullptr) continue;
    bytes += HeapBytes(sizeof(Level0Intervals)) + level->intervals->memory_bytes();
  }
  return bytes;
}

// --- Edits ---

Result<std::shared_ptr<const LevelSet>> LevelSet::Apply(const LevelEdit& edit) const {
  std::array<std::optional<std::vector<FileRef>>, kLevels> changed;
  const auto files_of = [&](size_t level) -> std::vector<FileRef>& {
    if (!changed[level]) changed[level] = levels_[level]->files;
    return *changed[level];
  };
  for (const LevelEdit::Removed& removed : edit.removed) {
    if (removed.level >= kLevels)
      return Status::InvalidArgument("edit of level " + std::to_string(removed.level));
    std::vector<FileRef>& files = files_of(removed.level);
    const auto at = std::find_if(files.begin(), files.end(), [&](const FileRef& file) {
      return file.info->id == removed.id && file.lower == removed.lower;
    });
    if (at == files.end()) {
      return Status::InvalidArgument("edit removes file " + std::to_string(removed.id.value) +
                                     ", which level " + std::to_string(removed.level) + " does not have");
    }
    files.erase(at);
  }
  std::array<std::vector<const FileRef*>, kLevels> added;
  for (const LevelEdit::Added& one : edit.added) {
    if (one.level >= kLevels) return Status::InvalidArgument("edit of level " + std::to_string(one.level));
    added[one.level].push_back(&one.file);
  }
  auto next = std::make_shared<LevelSet>(*this);
  for (size_t level = 0; level < kLevels; ++level) {
    if (!added[level].empty()) AddFiles(std::move(added[level]), level, &files_of(level));
    if (!changed[level]) continue;
    Status status = CheckLevel(level, *changed[level]);
    if (!status.ok()) return Status::InvalidArgument("edit refused: " + status.message());
    const bool any = !changed[level]->empty();
    next->levels_[level] = any ? std::make_shared<const Level>(std::move(*changed[level]), level) : NoFiles();
  }
  if (next->empty()) return Empty();
  return std::shared_ptr<const LevelSet>(std::move(next));
}

Result<std::shared_ptr<const LevelSet>> LevelSet::Join(
    const std::vector<std::shared_ptr<const LevelSet>>& parts, std::string_view lower,
    std::string_view upper) {
  LevelEdit edit;
  for (uint32_t level = 0; level < kLevels; ++level) {
    std::map<ObjectId, size_t> last_of;  // The last reference to each file.
    for (const std::shared_ptr<const LevelSet>& part : parts) {
      for (const FileRef& known : part->level(level)) {
        if (!known.OverlapsBounds(lower, upper)) continue;
        FileRef file = known;
        if (!CutTo(lower, upper, &file)) continue;
        const auto last = last_of.find(file.info->id);
        if (last != last_of.end() && edit.added[last->second].file.upper == file.lower) {
          edit.added[last->second].file.upper = std::move(file.upper);
        } else {
          last_of[file.info->id] = edit.added.size();
          edit.added.push_back({level, std::move(file)});
        }
      }
    }
  }
  return Empty()->Apply(edit);
}

// --- Reading ---

bool LevelSet::empty() const { return file_count() == 0; }

size_t LevelSet::file_count() const {
  size_t count = 0;
  for (const LevelPtr& level : levels_) count += level->files.size();
  return count;
}

uint64_t LevelSet::LevelBytes(size_t level) const {
  uint64_t bytes = 0;
  for (const FileRef& file : levels_[level]->files) bytes += file.info->file_size;
  return bytes;
}

const FileRef* LevelSet::FindFile(size_t level, std::string_view user_key) const {
  const std::vector<FileRef>& files = levels_[level]->files;
  if (files.empty()) return nullptr;  // As most levels are.
  const size_t up_to =
      levels_[level]->firsts.CountUpTo(user_key, [&](size_t i) { return files[i].first() <= user_key; });
  if (up_to == 0) return nullptr;
  const FileRef& file = files[up_to - 1];
  const bool is_behind = user_key > file.info->largest || (!file.upper.empty() && user_key >= file.upper);
  return is_behind ? nullptr : &file;
}

bool LevelSet::MayHoldPartition(std::string_view user_key, const KeyHash& hash) const {
  const std::string_view lower = PartitionPrefixOrAll(user_key);
  const std::string upper = PrefixSuccessor(lower);
  const auto may_hold = [&](const FileRef& file) {
    return file.OverlapsBounds(lower, upper) &&
           (file.table == nullptr || file.table->MayContainPartition(hash));
  };
  for (const uint32_t file : level0_intervals().FilesIn(lower, upper)) {
    if (may_hold(level(0)[file])) return true;
  }
  for (size_t level = 1; level < kLevels; ++level) {
    const std::vector<FileRef>& files = levels_[level]->files;
    const auto end = std::partition_point(files.begin(), files.end(), [&](const FileRef& file) {
      return upper.empty() || file.first() < upper;
    });
    // Those that end below the partition stand in front of those that do not.
    for (auto file = end; file != files.begin() && (file - 1)->info->largest >= lower; --file) {
      if (may_hold(*(file - 1))) return true;
    }
  }
  return false;
}

TableLookup LevelSet::TryGet(std::string_view user_key, const KeyHash& hash, Version at_most,
                             BlockPin* pin) const {
  TableLookup best;
  for (const uint32_t index : level0_intervals().FilesAt(user_key)) {
    const FileRef& file = level(0)[index];
    // All files from here on are older than what was found; without a find nothing is.
    if (best.lookup.state != LookupState::kAbsent && file.info->version_max <= best.lookup.version) break;
    if (file.info->version_min > at_most) continue;
    if (file.table == nullptr) return {.lookup = {}, .needs_io = true};
    BlockPin own;
    TableLookup found = file.table->TryGet(hash, user_key, at_most, &own);
    if (found.needs_io) return found;
    if (found.lookup.state == LookupState::kAbsent) continue;
    if (best.lookup.state != LookupState::kAbsent && found.lookup.version <= best.lookup.version) continue;
    best = found;
    *pin = std::move(own);
  }
  for (size_t level = 1; level < kLevels && best.lookup.state == LookupState::kAbsent; ++level) {
    const FileRef* file = FindFile(level, user_key);
    if (file == nullptr || file->info->version_min > at_most) continue;
    if (file->table == nullptr) return {.lookup = {}, .needs_io = true};
    best = file->table->TryGet(hash, user_key, at_most, pin);
    if (best.needs_io) return best;
  }
  return best;
}

Task<Result<Lookup>> LevelSet::Get(std::string_view user_key, KeyHash hash, Version at_most, BlockPin* pin,
                                   BlocksFrom from) const {
  const auto get = [&](const FileRef& file, BlockPin* of_file) {
    return from == BlocksFrom::kDevice ? file.table->GetAnew(hash, user_key, at_most, of_file)
                                       : file.table->Get(hash, user_key, at_most, of_file);
  };
  Lookup best;
  for (const uint32_t index : level0_intervals().FilesAt(user_key)) {
    const FileRef& file = level(0)[index];
    if (best.state != LookupState::kAbsent && file.info->version_max <= best.version) break;
    if (file.info->version_min > at_most) continue;
    if (file.table == nullptr) co_return *file.damage;
    if (!file.table->MayHold(hash)) continue;  // Most files of level 0, and that without a frame.
    BlockPin own;
    Result<Lookup> found = co_await get(file, &own);
    if (!found.ok()) co_return found.status();
    if (found->state == LookupState::kAbsent) continue;
    if (best.state != LookupState::kAbsent && found->version <= best.version) continue;
    best = *found;
    *pin = std::move(own);
  }
  for (size_t level = 1; level < kLevels && best.state == LookupState::kAbsent; ++level) {
    const FileRef* file = FindFile(level, user_key);
    if (file == nullptr || file->info->version_min > at_most) continue;
    if (file->table == nullptr) co_return *file->damage;
    PARTITA_CO_ASSIGN(best, co_await get(*file, pin));
  }
  co_return best;
}

namespace {

// Whether no file that is as old as `version_max` or older changes what is known of the key.
bool IsSettled(const SoughtTogether& key, Version version_max) {
  if (key.found.state == LookupState::kAbsent) return key.needs_io;
  return version_max <= key.found.version;
}

// Looks for keys, all within its bounds, in one file more.
void LookInto(const FileRef& file, std::span<SoughtTogether* const> keys, Version at_most) {
  const TableReader* const table = file.table.get();
  if (file.info->version_min > at_most) return;
  // Between two keys of one partition there are none of another. Equal hashes do not say that it is one.
  const SoughtKey& first = keys.front()->key;
  if (table != nullptr &&
      PartitionPrefixOrAll(first.user_key) == PartitionPrefixOrAll(keys.back()->key.user_key) &&
      !table->MayContainPartition(first.hash))
    return;
  std::optional<RisingLookup> lookup;
  if (table != nullptr) lookup.emplace(*table);
  for (SoughtTogether* const key : keys) {
    if (IsSettled(*key, file.info->version_max)) continue;
    BlockPin pin;
    const TableLookup looked = lookup.has_value() ? lookup->TryGet(key->key, at_most, &pin)
                                                  : TableLookup{.lookup = {}, .needs_io = true};
    if (looked.needs_io) {
      key->found = {};
      key->pin.Release();
      key->needs_io = true;
      key->reads = table;
    } else if (looked.lookup.state != LookupState::kAbsent &&
               (key->found.state == LookupState::kAbsent || looked.lookup.version > key->found.version)) {
      key->found = looked.lookup;
      key->pin = std::move(pin);
    }
  }
}

}  // namespace

void LevelSet::TryGetTogether(std::span<SoughtTogether> keys, Version at_most) const {
  std::vector<SoughtTogether*> open;
  open.reserve(keys.size());
  for (SoughtTogether& key : keys) {
    PARTITA_DEBUG_ASSERT(open.empty() || open.back()->key.user_key <= key.key.user_key);
    key.found = {};
    key.pin.Release();
    key.needs_io = false;
    key.reads = nullptr;
    open.push_back(&key);
  }
  for (size_t i = 0, end = 0; i < open.size(); i = end) {
    const std::span<const uint32_t> files = level0_intervals().FilesAt(open[i]->key.user_key);
    const Level0Intervals::Bound* bound = level0_intervals().EndOfInterval(open[i]->key.user_key);
    const auto is_before = [&](const SoughtTogether* key) {
      return bound == nullptr || !bound->IsUpTo(key->key.user_key);
    };
    for (end = i + 1; end < open.size() && is_before(open[end]);) ++end;
    const std::span<SoughtTogether* const> of_interval(open.data() + i, end - i);
    for (const uint32_t index : files) {
      const FileRef& file = level(0)[index];
      const auto is_settled = [&](const SoughtTogether* key) {
        return IsSettled(*key, file.info->version_max);
      };
      if (std::all_of(of_interval.begin(), of_interval.end(), is_settled)) break;
      LookInto(file, of_interval, at_most);
    }
  }
  for (size_t level = 1; level < kLevels; ++level) {
    std::erase_if(open, [](const SoughtTogether* key) {
      return key->needs_io || key->found.state != LookupState::kAbsent;
    });
    for (size_t i = 0, end = 0; i < open.size(); i = end) {
      end = i + 1;
      const FileRef* const file = FindFile(level, open[i]->key.user_key);
      if (file == nullptr) continue;
      while (end < open.size() && file->MayHold(open[end]->key.user_key)) ++end;
      LookInto(*file, std::span<SoughtTogether* const>(open.data() + i, end - i), at_most);
    }
  }
}

Task<Status> LevelSet::ReadTogether(std::span<const SoughtTogether> keys) const {
  std::vector<const SoughtTogether*> sought;
  for (const SoughtTogether& key : keys) {
    if (key.reads != nullptr) sought.push_back(&key);
  }
  std::sort(sought.begin(), sought.end(), [](const SoughtTogether* a, const SoughtTogether* b) {
    return a->reads != b->reads ? std::less<>()(a->reads, b->reads) : a->key.user_key < b->key.user_key;
  });
  std::vector<std::string_view> of_table;
  for (size_t i = 0; i < sought.size();) {
    const TableReader* table = sought[i]->reads;
    of_table.clear();
    for (; i < sought.size() && sought[i]->reads == table; ++i) of_table.push_back(sought[i]->key.user_key);
    PARTITA_CO_TRY(co_await table->ReadTogether(of_table));
  }
  co_return Status();
}

std::vector<const FileRef*> LevelSet::Overlapping(size_t level, std::string_view lower,
                                                  std::string_view upper) const {
  const std::vector<FileRef>& of_level = levels_[level]->files;
  std::vector<const FileRef*> files;
  if (level == 0) {
    for (const uint32_t index : level0_intervals().FilesIn(lower, upper)) files.push_back(&of_level[index]);
    return files;
  }
  auto file = std::partition_point(of_level.begin(), of_level.end(),
                                   [&](const FileRef& file) { return file.first() <= lower; });
  if (file != of_level.begin()) --file;
  for (; file != of_level.end() && (upper.empty() || file->first() < upper); ++file) {
    if (file->OverlapsBounds(lower, upper)) files.push_back(&*file);
  }
  return files;
}

void LevelSet::AddIterators(Direction direction, const IterOptions& options,
                            std::vector<std::unique_ptr<EntryIterator>>* out) const {
  const bool passes_over = options.scan != nullptr && options.scan->predicate != nullptr;
  const auto beneath = [&](size_t level, const FileRef* self) -> std::optional<FilesBeneath> {
    if (!passes_over) return std::nullopt;
    return FilesBeneath(*this, level, self, *options.scan->predicate);
  };
  // As if all of them held keys from everywhere.
  uint64_t all = 0;
  for (const LevelPtr& level : levels_) all += level->entries;
  const auto with_share = [&](uint64_t entries) {
    IterOptions own = options;
    own.expected_share = static_cast<double>(entries) / static_cast<double>(std::max<uint64_t>(all, 1));
    return own;
  };
  for (const FileRef* file : Overlapping(0, options.lower, options.upper)) {
    std::vector<const FileRef*> one{file};
    IterOptions own = with_share(file->info->entry_count);
    own.seek_bytes = file->seek_bytes.get();
    out->push_back(
        std::make_unique<LevelIterator>(std::move(one), direction, std::move(own), beneath(0, file)));
  }
  for (size_t level = 1; level < kLevels; ++level) {
    std::vector<const FileRef*> files = Overlapping(level, options.lower, options.upper);
    if (files.empty()) continue;
    out->push_back(std::make_unique<LevelIterator>(
        std::move(files), direction, with_share(levels_[level]->entries), beneath(level, nullptr)));
  }
}

Status LevelSet::CheckInvariants() const {
  if (level0_intervals() != Level0Intervals(level(0)))
    return Status::Corruption("level 0: its intervals are not those of its files");
  for (size_t level = 0; level < kLevels; ++level) {
    const std::vector<FileRef>& files = levels_[level]->files;
    PARTITA_TRY(CheckLevel(level, files));
    if (level > 0 && levels_[level]->firsts != FirstsOf(files))
      return Status::Corruption("level " + std::to_string(level) + ": its fences are not its files' keys");
    if (levels_[level]->entries != EntriesOf(files))
      return Status::Corruption("level " + std::to_string(level) +
                                ": its entries are not those of its files");
    for (const FileRef& file : files) {
      const std::string which =
          "level " + std::to_string(level) + ", file " + std::to_string(file.info->id.value);
      if (file.table == nullptr && file.damage == nullptr)
        return Status::Corruption(which + ": neither table nor damage");
      if (file.table != nullptr && file.table->info() != *file.info) {
        return Status::Corruption(which + ": the table differs from what the manifest says of it");
      }
      if (!file.upper.empty() && file.lower >= file.upper)
        return Status::Corruption(which + ": bounds are empty");
      if (file.info->smallest > file.info->largest) return Status::Corruption(which + ": keys are empty");
    }
  }
  return Status();
}

}  // namespace partita
