#include "engine/io/sim_inode.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

namespace {

constexpr uint8_t kAllSectors = 0xff;
static_assert(kSimSectorsPerPage == 8, "a page's sectors are the bits of a byte");

// The sectors that the bytes [begin, end) of a page touch. REQUIRES: begin < end.
uint8_t SectorsOf(size_t begin, size_t end) {
  const size_t first = begin / kSimSectorSize;
  const size_t last = (end - 1) / kSimSectorSize;
  return static_cast<uint8_t>((kAllSectors << first) & (kAllSectors >> (7 - last)));
}

bool AllZero(std::span<const uint8_t> bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace

SimInode::SimInode(const SimInode& other, SimPagePool& pool)
    : id_(other.id_),
      pool_(pool),
      size_(other.size_),
      allocated_(other.allocated_),
      names_(other.names_),
      pages_(other.pages_),
      dirty_(other.dirty_),
      size_changes_(other.size_changes_) {
  const auto copy = [&pool](uint8_t* bytes) -> uint8_t* {
    if (bytes == nullptr) return nullptr;
    uint8_t* page = pool.Take();
    std::memcpy(page, bytes, kPageSize);
    return page;
  };
  for (Page& page : pages_) {
    page.bytes = copy(page.bytes);
  }
  if (counted()) pool.CountAllocated(allocated_);
  for (DirtyPage& dirty : dirty_) {
    for (uint32_t i = 0; i < dirty.count; ++i) dirty.versions[i].before = copy(dirty.versions[i].before);
  }
}

SimInode::~SimInode() {
  for (DirtyPage& dirty : dirty_) ForgetVersions(dirty);
  for (Page& page : pages_) {
    if (page.bytes != nullptr) pool_.Give(page.bytes);
    Allocate(page, false);
  }
}

size_t SimInode::Read(uint64_t offset, std::span<uint8_t> buffer) const {
  if (offset >= size_) return 0;
  const size_t count = std::min<uint64_t>(buffer.size(), size_ - offset);
  for (size_t done = 0; done < count;) {
    const uint64_t page = (offset + done) / kPageSize;
    const size_t begin = (offset + done) % kPageSize;
    const size_t chunk = std::min(kPageSize - begin, count - done);
    const uint8_t* bytes = page < pages_.size() ? pages_[page].bytes : nullptr;
    if (bytes != nullptr) {
      std::memcpy(buffer.data() + done, bytes + begin, chunk);
    } else {
      std::memset(buffer.data() + done, 0, chunk);
    }
    done += chunk;
  }
  return count;
}

uint64_t SimInode::PagesToAllocate(uint64_t offset, uint64_t size) const {
  if (size == 0) return 0;
  uint64_t count = 0;
  for (uint64_t page = offset / kPageSize; page <= (offset + size - 1) / kPageSize; ++page) {
    if (page >= pages_.size() || !pages_[page].allocated) ++count;
  }
  return count;
}

void SimInode::Write(uint64_t offset, std::span<const uint8_t> bytes, uint64_t sequence) {
  if (bytes.empty()) return;
  const uint64_t end = offset + bytes.size();
  PARTITA_ASSERT(end <= kSimFileSizeMax);
  const uint64_t pages = (end + kPageSize - 1) / kPageSize;
  if (pages_.size() < pages) pages_.resize(pages);
  for (size_t done = 0; done < bytes.size();) {
    const size_t begin = (offset + done) % kPageSize;
    const size_t chunk = std::min(kPageSize - begin, bytes.size() - done);
    WriteToPage((offset + done) / kPageSize, begin, bytes.subspan(done, chunk), sequence);
    done += chunk;
  }
  if (end > size_) ChangeSize(end, sequence);
  UpdateMappings(offset, bytes.size());
}

void SimInode::WriteToPage(uint64_t page_number, size_t begin, std::span<const uint8_t> bytes,
                           uint64_t sequence) {
  Page& page = pages_[page_number];
  Allocate(page, true);
  // Zeros onto zeros change nothing that a crash could show.
  if (page.bytes == nullptr && page.dirty == 0 && AllZero(bytes)) return;
  Version& version = NewVersion(page, page_number, SectorsOf(begin, begin + bytes.size()), sequence);
  if (bytes.size() == kPageSize) {
    version.before = page.bytes;
    page.bytes = pool_.Take();
  } else if (page.bytes != nullptr) {
    version.before = pool_.Take();
    std::memcpy(version.before, page.bytes, kPageSize);
  }
  std::memcpy(Bytes(page) + begin, bytes.data(), bytes.size());
}

// Zeroes the page's bytes from `begin` on, as a truncation does; gives up its space when all go.
void SimInode::ClearPageFrom(uint64_t page_number, size_t begin, uint64_t sequence) {
  Page& page = pages_[page_number];
  if (begin == 0) Allocate(page, false);
  if (page.bytes == nullptr) return;
  Version& version = NewVersion(page, page_number, SectorsOf(begin, kPageSize), sequence);
  version.by_size = true;
  if (begin == 0) {
    version.before = std::exchange(page.bytes, nullptr);
    return;
  }
  version.before = pool_.Take();
  std::memcpy(version.before, page.bytes, kPageSize);
  std::memset(page.bytes + begin, 0, kPageSize - begin);
}

SimInode::Version& SimInode::NewVersion(Page& page, uint64_t page_number, uint8_t sectors,
                                        uint64_t sequence) {
  if (page.dirty == 0) {
    dirty_.emplace_back();
    dirty_.back().page = static_cast<uint32_t>(page_number);
    page.dirty = static_cast<uint32_t>(dirty_.size());
  }
  DirtyPage& dirty = dirty_[page.dirty - 1];
  if (dirty.count == kVersionsMax) MergeOldVersions(dirty);
  Version& version = dirty.versions[dirty.count++];
  version = Version{.sequence = sequence, .sectors = sectors};
  return version;
}

// Makes room by forgetting one state that the page had in between. The older sequence stays, so
// that a flush never covers less than it should.
void SimInode::MergeOldVersions(DirtyPage& dirty) {
  uint32_t victim = 1;
  for (uint32_t i = 1; i < dirty.count; ++i) {
    if (dirty.versions[i].lost == dirty.versions[i - 1].lost) {
      victim = i;
      // Not always the oldest: a page written often shall keep old states as well as new ones.
      if (SimRandom::Mix(dirty.versions[i].sequence) % 3 == 0) break;
    }
  }
  Version& older = dirty.versions[victim - 1];
  Version& newer = dirty.versions[victim];
  older.sectors |= newer.sectors;
  older.lost = older.lost && newer.lost;
  older.by_size = older.by_size && newer.by_size;
  if (newer.before != nullptr) pool_.Give(newer.before);
  std::copy(dirty.versions + victim + 1, dirty.versions + dirty.count, dirty.versions + victim);
  --dirty.count;
}

void SimInode::ForgetVersions(DirtyPage& dirty) {
  for (uint32_t i = 0; i < dirty.count; ++i) {
    if (dirty.versions[i].before != nullptr) pool_.Give(dirty.versions[i].before);
  }
  dirty.count = 0;
}

void SimInode::RemoveDirty(uint32_t index) {
  PARTITA_ASSERT(dirty_[index].count == 0);
  pages_[dirty_[index].page].dirty = 0;
  if (index + 1 != dirty_.size()) {
    dirty_[index] = dirty_.back();
    pages_[dirty_[index].page].dirty = index + 1;
  }
  dirty_.pop_back();
}

uint8_t* SimInode::Bytes(Page& page) {
  if (page.bytes == nullptr) page.bytes = pool_.TakeZero();
  return page.bytes;
}

void SimInode::Undo(Page& page, const Version& version, uint8_t sectors) {
  if (sectors == 0) return;
  uint8_t* bytes = Bytes(page);
  for (size_t sector = 0; sector < kSimSectorsPerPage; ++sector) {
    if ((sectors >> sector & 1) == 0) continue;
    uint8_t* to = bytes + sector * kSimSectorSize;
    if (version.before != nullptr) {
      std::memcpy(to, version.before + sector * kSimSectorSize, kSimSectorSize);
    } else {
      std::memset(to, 0, kSimSectorSize);
    }
  }
}

void SimInode::Truncate(uint64_t size, uint64_t sequence) {
  PARTITA_ASSERT(size <= kSimFileSizeMax);
  if (size == size_) return;
  const uint64_t old_size = size_;
  for (uint64_t page = size / kPageSize; page < pages_.size(); ++page) {
    ClearPageFrom(page, page == size / kPageSize ? size % kPageSize : 0, sequence);
  }
  ChangeSize(size, sequence);
  if (size < old_size) UpdateMappings(size, old_size - size);
}

void SimInode::SetAside(uint64_t size, uint64_t sequence) {
  PARTITA_ASSERT(size <= kSimFileSizeMax);
  const uint64_t pages = (size + kPageSize - 1) / kPageSize;
  if (pages_.size() < pages) pages_.resize(pages);
  for (uint64_t page = 0; page < pages; ++page) Allocate(pages_[page], true);
  if (size > size_) ChangeSize(size, sequence);
}

void SimInode::ChangeSize(uint64_t size, uint64_t sequence) {
  if (size_changes_.size() == kSizeChangesMax) {
    // Forgets one size that the file had in between.
    const size_t victim = 1 + SimRandom::Mix(sequence) % (kSizeChangesMax - 1);
    size_changes_.erase(size_changes_.begin() + static_cast<ptrdiff_t>(victim));
  }
  size_changes_.push_back(SizeChange{sequence, size_});
  size_ = size;
}

void SimInode::FlushVersions(DirtyPage& dirty, uint64_t covered) {
  uint8_t durable = 0;
  for (uint32_t i = 0; i < dirty.count; ++i) {
    Version& version = dirty.versions[i];
    if (version.lost || version.sequence > covered) continue;
    durable |= version.sectors;
    version.sectors = 0;
  }
  // What an earlier failed flush lost is good again once newer bytes of its place are durable.
  for (uint32_t i = 0; i < dirty.count; ++i) {
    if (dirty.versions[i].lost) dirty.versions[i].sectors &= static_cast<uint8_t>(~durable);
  }
  DropEmptyVersions(dirty);
}

void SimInode::FailVersions(DirtyPage& dirty, uint64_t covered, uint8_t sectors_lost) {
  uint8_t durable = 0;
  for (uint32_t i = 0; i < dirty.count; ++i) {
    Version& version = dirty.versions[i];
    if (version.lost || version.by_size || version.sequence > covered) continue;
    durable |= static_cast<uint8_t>(version.sectors & ~sectors_lost);
    version.sectors &= sectors_lost;
    version.lost = true;
  }
  for (uint32_t i = 0; i < dirty.count; ++i) {
    if (dirty.versions[i].lost) dirty.versions[i].sectors &= static_cast<uint8_t>(~durable);
  }
  DropEmptyVersions(dirty);
}

void SimInode::DropEmptyVersions(DirtyPage& dirty) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < dirty.count; ++i) {
    const Version version = dirty.versions[i];
    if (version.sectors != 0) {
      dirty.versions[kept++] = version;
    } else if (version.before != nullptr) {
      pool_.Give(version.before);
    }
  }
  dirty.count = kept;
}

void SimInode::Flush(uint64_t covered) {
  for (uint32_t i = static_cast<uint32_t>(dirty_.size()); i-- > 0;) {
    FlushVersions(dirty_[i], covered);
    if (dirty_[i].count == 0) RemoveDirty(i);
  }
  std::erase_if(size_changes_, [covered](const SizeChange& change) { return change.sequence <= covered; });
}

// Sizes stay volatile, and truncations with them: the journal carries them, not the writeback of
// data, and tries again.
void SimInode::FailFlush(uint64_t covered, SimRandom& random) {
  const bool all_lost = random.Chance(0.3);
  for (uint32_t i = static_cast<uint32_t>(dirty_.size()); i-- > 0;) {
    FailVersions(dirty_[i], covered, all_lost ? kAllSectors : static_cast<uint8_t>(random.Next()));
    if (dirty_[i].count == 0) RemoveDirty(i);
  }
}

void SimInode::MakeAllDurable() {
  for (DirtyPage& dirty : dirty_) {
    ForgetVersions(dirty);
    pages_[dirty.page].dirty = 0;
  }
  dirty_.clear();
  size_changes_.clear();
}

void SimInode::DropCache() {
  for (uint32_t i = static_cast<uint32_t>(dirty_.size()); i-- > 0;) {
    DirtyPage& dirty = dirty_[i];
    bool clean = true;
    for (uint32_t v = 0; v < dirty.count; ++v) clean = clean && dirty.versions[v].lost;
    if (!clean) continue;
    Page& page = pages_[dirty.page];
    for (uint32_t v = dirty.count; v-- > 0;) Undo(page, dirty.versions[v], dirty.versions[v].sectors);
    const uint64_t start = uint64_t{dirty.page} * kPageSize;
    const size_t live = size_ > start ? std::min<uint64_t>(size_ - start, kPageSize) : 0;
    std::memset(page.bytes + live, 0, kPageSize - live);
    ForgetVersions(dirty);
    UpdateMappings(start, kPageSize);
    RemoveDirty(i);
  }
}

void SimInode::CrashPower(const SimCrashDice& dice) {
  const uint64_t size_durable = size_changes_.empty() ? size_ : size_changes_.front().before;
  for (size_t i = size_changes_.size(); i-- > 0;) {
    if (dice.SizeSurvives(size_changes_[i].sequence)) break;
    size_ = size_changes_[i].before;
  }
  size_changes_.clear();
  for (DirtyPage& dirty : dirty_) {
    CrashPage(dirty, dice, size_durable);
    pages_[dirty.page].dirty = 0;
  }
  dirty_.clear();
  CutTo(size_);
}

void SimInode::CrashPage(DirtyPage& dirty, const SimCrashDice& dice, uint64_t size_durable) {
  Page& page = pages_[dirty.page];
  uint8_t decided = 0;
  uint8_t touched = 0;
  const uint64_t first_sector = uint64_t{dirty.page} * kSimSectorsPerPage;
  for (uint32_t v = dirty.count; v-- > 0;) {
    const Version& version = dirty.versions[v];
    touched |= version.sectors;
    uint8_t undone = 0;
    for (uint32_t sector = 0; sector < kSimSectorsPerPage; ++sector) {
      const uint8_t bit = static_cast<uint8_t>(1u << sector);
      if ((version.sectors & bit) == 0 || (decided & bit) != 0) continue;
      const bool survives =
          version.by_size ? dice.SizeSurvives(version.sequence)
                          : !version.lost && dice.SectorSurvives(version.sequence, first_sector + sector);
      if (survives) {
        decided |= bit;
      } else {
        undone |= bit;
      }
    }
    Undo(page, version, undone);
  }
  ForgetVersions(dirty);
  Allocate(page, true);
  if (!dice.FillsWithStaleBytes(id_)) return;
  for (uint32_t sector = 0; sector < kSimSectorsPerPage; ++sector) {
    const bool dropped = ((touched & ~decided) >> sector & 1) != 0;
    const uint64_t offset = (first_sector + sector) * kSimSectorSize;
    if (!dropped || offset < AlignUp(size_durable, kSimSectorSize)) continue;
    const uint64_t word = dice.Word(id_, first_sector + sector);
    const uint8_t* stale = pool_.AnyPage(word);
    if (stale == nullptr) continue;
    std::memmove(Bytes(page) + sector * kSimSectorSize,
                 stale + (word >> 40) % kSimSectorsPerPage * kSimSectorSize, kSimSectorSize);
  }
}

// Restores the invariant that nothing lies beyond the size, without a trace of it.
void SimInode::CutTo(uint64_t size) {
  const uint64_t pages = (size + kPageSize - 1) / kPageSize;
  for (uint64_t number = pages; number < pages_.size(); ++number) {
    Page& page = pages_[number];
    if (page.bytes != nullptr) pool_.Give(page.bytes);
    Allocate(page, false);
  }
  if (pages_.size() > pages) pages_.resize(pages);
  if (size % kPageSize != 0 && pages_.size() == pages && pages_.back().bytes != nullptr) {
    std::memset(pages_.back().bytes + size % kPageSize, 0, kPageSize - size % kPageSize);
  }
}

void SimInode::FlipBit(uint64_t offset, uint32_t bit) {
  PARTITA_ASSERT(offset < size_ && bit < 8);
  if (pages_.size() <= offset / kPageSize) pages_.resize(offset / kPageSize + 1);
  Page& page = pages_[offset / kPageSize];
  const auto flip = [&](uint8_t* bytes) { bytes[offset % kPageSize] ^= static_cast<uint8_t>(1u << bit); };
  flip(Bytes(page));
  Allocate(page, true);
  if (page.dirty != 0) {
    DirtyPage& dirty = dirty_[page.dirty - 1];
    for (uint32_t i = 0; i < dirty.count; ++i) {
      if (dirty.versions[i].before == nullptr) dirty.versions[i].before = pool_.TakeZero();
      flip(dirty.versions[i].before);
    }
  }
  UpdateMappings(offset, 1);
}

uint64_t SimInode::UnflushedSectors() const {
  uint64_t count = 0;
  for (const DirtyPage& dirty : dirty_) {
    uint8_t sectors = 0;
    for (uint32_t i = 0; i < dirty.count; ++i) {
      if (!dirty.versions[i].lost) sectors |= dirty.versions[i].sectors;
    }
    count += static_cast<uint64_t>(std::popcount(sectors));
  }
  return count;
}

void SimInode::Allocate(Page& page, bool allocated) {
  if (page.allocated == allocated) return;
  page.allocated = allocated;
  const int64_t change = allocated ? 1 : -1;
  allocated_ += change;
  if (counted()) pool_.CountAllocated(change);
}

void SimInode::AddName() {
  if (!counted()) pool_.CountAllocated(allocated_);
  ++names_;
}

void SimInode::RemoveName() {
  PARTITA_ASSERT(names_ > 0);
  --names_;
  if (!counted()) pool_.CountAllocated(-allocated_);
}

void SimInode::ForgetNames() {
  const bool before = counted();
  names_ = 0;
  if (counted() != before) pool_.CountAllocated(-allocated_);
}

void SimInode::AddUser() {
  if (!counted()) pool_.CountAllocated(allocated_);
  ++users_;
}

void SimInode::RemoveUser() {
  --users_;
  if (!counted()) pool_.CountAllocated(-allocated_);
}

void SimInode::AddMapping(std::span<uint8_t> bytes) {
  mappings_.push_back(bytes);
  AddUser();
}

void SimInode::UpdateMappings(uint64_t offset, uint64_t size) {
  for (const std::span<uint8_t> mapping : mappings_) {
    if (offset >= mapping.size()) continue;
    const size_t count = std::min<uint64_t>(size, mapping.size() - offset);
    const std::span<uint8_t> part = mapping.subspan(offset, count);
    const size_t read = Read(offset, part);
    std::memset(part.data() + read, 0, count - read);
  }
}

void SimInode::RemoveMapping(std::span<uint8_t> bytes) {
  std::erase_if(mappings_, [bytes](std::span<uint8_t> mapping) { return mapping.data() == bytes.data(); });
  RemoveUser();
}

}  // namespace partita
