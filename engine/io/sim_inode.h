#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/aligned_buffer.h"
#include "engine/io/sim_crash_dice.h"
#include "engine/io/sim_page_pool.h"
#include "engine/io/sim_random.h"

namespace partita {

inline constexpr size_t kSimSectorSize = 512;  // What a power cut leaves whole.
inline constexpr size_t kSimSectorsPerPage = kPageSize / kSimSectorSize;
inline constexpr uint64_t kSimFileSizeMax = uint64_t{1} << 36;

// One file's bytes: what processes see, and for each page what it held before each change that no
// flush has covered yet.
//
// Invariants: bytes at or beyond size() are zero. A page's versions are ordered by sequence, and
// `before` of a version is the page just before that change; so walking back from the newest
// version, and undoing those that did not survive, gives what the device holds.
class SimInode {
 public:
  SimInode(uint64_t id, SimPagePool& pool) : id_(id), pool_(pool) {}
  SimInode(const SimInode& other, SimPagePool& pool);  // A copy in another pool.
  SimInode(const SimInode&) = delete;
  SimInode& operator=(const SimInode&) = delete;
  ~SimInode();

  uint64_t id() const { return id_; }
  uint64_t size() const { return size_; }

  // The count read: fewer than asked only at the end of the file.
  size_t Read(uint64_t offset, std::span<uint8_t> buffer) const;

  // Pages of [offset, offset + size) that are holes.
  uint64_t PagesToAllocate(uint64_t offset, uint64_t size) const;

  // REQUIRES: offset + bytes.size() <= kSimFileSizeMax; `sequence` above every earlier one.
  void Write(uint64_t offset, std::span<const uint8_t> bytes, uint64_t sequence);
  void Truncate(uint64_t size, uint64_t sequence);
  // Takes the space of the first `size` bytes and makes the file at least so long, without writing to it.
  // That space is lost with the size: a truncation that a crash undoes brings back the size alone.
  void SetAside(uint64_t size, uint64_t sequence);

  // Makes all changes up to `covered` durable.
  void Flush(uint64_t covered);
  // As a flush that failed: some of those changes reach the device, the others never will.
  void FailFlush(uint64_t covered, SimRandom& random);
  void MakeAllDurable();

  // Evicts clean pages; shows what the device holds where a failed flush lost something.
  void DropCache();

  // The power went: what survives becomes the durable content.
  void CrashPower(const SimCrashDice& dice);

  // REQUIRES: offset < size(), bit < 8.
  void FlipBit(uint64_t offset, uint32_t bit);

  uint64_t UnflushedSectors() const;

  // Space counts while a name leads here or a process holds the file open.
  void AddName();
  void RemoveName();
  void ForgetNames();
  void AddUser();
  void RemoveUser();

  // Memory that shares the page cache of [0, bytes.size()): kept equal to the file until removed.
  void AddMapping(std::span<uint8_t> bytes);
  void RemoveMapping(std::span<uint8_t> bytes);

 private:
  static constexpr size_t kVersionsMax = 6;
  static constexpr size_t kSizeChangesMax = 8;

  struct Version {
    uint64_t sequence = 0;
    uint8_t* before = nullptr;  // Null: a page of zeros.
    uint8_t sectors = 0;        // Which sectors the change touched.
    bool lost = false;          // A failed flush dropped it: it will never be durable.
    bool by_size = false;       // A truncation's doing: survives with the size change, not as data.
  };
  struct DirtyPage {
    uint32_t page = 0;
    uint32_t count = 0;
    Version versions[kVersionsMax];
  };
  struct Page {
    uint8_t* bytes = nullptr;  // Null: zeros.
    uint32_t dirty = 0;        // 1 + index in dirty_, or 0.
    bool allocated = false;
  };
  struct SizeChange {
    uint64_t sequence;
    uint64_t before;
  };

  void WriteToPage(uint64_t page, size_t begin, std::span<const uint8_t> bytes, uint64_t sequence);
  void ClearPageFrom(uint64_t page, size_t begin, uint64_t sequence);
  Version& NewVersion(Page& page, uint64_t page_number, uint8_t sectors, uint64_t sequence);
  void MergeOldVersions(DirtyPage& dirty);
  void RemoveDirty(uint32_t index);
  void ForgetVersions(DirtyPage& dirty);
  uint8_t* Bytes(Page& page);
  void Undo(Page& page, const Version& version, uint8_t sectors);
  void FlushVersions(DirtyPage& dirty, uint64_t covered);
  void FailVersions(DirtyPage& dirty, uint64_t covered, uint8_t sectors_lost);
  void DropEmptyVersions(DirtyPage& dirty);
  void CrashPage(DirtyPage& dirty, const SimCrashDice& dice, uint64_t size_durable);
  void ChangeSize(uint64_t size, uint64_t sequence);
  void CutTo(uint64_t size);
  void Allocate(Page& page, bool allocated);
  bool counted() const { return names_ > 0 || users_ > 0; }
  void UpdateMappings(uint64_t offset, uint64_t size);

  const uint64_t id_;
  SimPagePool& pool_;
  uint64_t size_ = 0;
  int64_t allocated_ = 0;  // Pages that are no holes.
  uint32_t names_ = 0;
  uint32_t users_ = 0;
  std::vector<Page> pages_;
  std::vector<DirtyPage> dirty_;
  std::vector<SizeChange> size_changes_;
  std::vector<std::span<uint8_t>> mappings_;
};

}  // namespace partita
