#include "test/power/disk_content.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/base/assert.h"

namespace partita {

namespace {

constexpr size_t kPage = 4096;

std::span<uint8_t> Map(int memory, uint64_t size, int sharing) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing | MAP_NORESERVE, memory, 0);
  PARTITA_ASSERT(mapped != MAP_FAILED);
  return {static_cast<uint8_t*>(mapped), size};
}

}  // namespace

DiskContent::DiskContent(uint64_t size, size_t sector, std::atomic<uint64_t>* entries)
    : size_(size), sector_(sector), entries_(entries) {
  memory_ = memfd_create("partita-disk", MFD_CLOEXEC);
  PARTITA_ASSERT(memory_ >= 0);
  PARTITA_ASSERT(ftruncate(memory_, static_cast<off_t>(size)) == 0);
  base_ = Map(memory_, size, MAP_SHARED);
  image_ = Map(memory_, size, MAP_PRIVATE);
}

DiskContent::~DiskContent() {
  munmap(base_.data(), base_.size());
  munmap(image_.data(), image_.size());
  close(memory_);
}

std::optional<std::span<const uint8_t>> DiskContent::Read(uint64_t offset, size_t size) {
  if (Draw(faults_.reads_per_mille)) return std::nullopt;
  return Shown(offset, size);
}

std::span<const uint8_t> DiskContent::Shown(uint64_t offset, size_t size) const {
  if (offset >= size_) return {};
  return (shows_image_ ? image_ : base_).subspan(offset, std::min<uint64_t>(size, size_ - offset));
}

bool DiskContent::Write(uint64_t offset, std::span<const uint8_t> data) {
  if (offset > size_ || data.size() > size_ - offset) return false;
  BlockLog& log = shows_image_ ? image_log_ : recording_;
  uint8_t* disk = (shows_image_ ? image_ : base_).data();
  const bool whole = !Draw(faults_.writes_per_mille);
  for (size_t at = 0; at < data.size();) {
    const size_t size = whole ? data.size() : std::min(sector_, data.size() - at);
    if (whole || (offset >= kSuperBlockEnd && random_() % 2 == 0)) {
      log.AddWrite(offset + at, data.subspan(at, size));
      std::memcpy(disk + offset + at, data.data() + at, size);
    }
    at += size;
  }
  if (!shows_image_) entries_->store(recording_.size(), std::memory_order_release);
  return whole;
}

bool DiskContent::Flush() {
  if (Draw(faults_.flushes_per_mille)) return false;
  (shows_image_ ? image_log_ : recording_).AddFlush();
  if (!shows_image_) entries_->store(recording_.size(), std::memory_order_release);
  return true;
}

// Cut off and grown again the memory is zeros, for the mappings too.
void DiskContent::Clear() {
  PARTITA_ASSERT(ftruncate(memory_, 0) == 0);
  PARTITA_ASSERT(ftruncate(memory_, static_cast<off_t>(size_)) == 0);
  applied_ = 0;
}

void DiskContent::Restart() {
  Clear();
  shows_image_ = false;
  recording_.Clear();
  SetFaults({});
  entries_->store(0, std::memory_order_release);
}

void DiskContent::SetFaults(const DiskFaults& faults) {
  faults_ = faults;
  random_.seed(faults.seed);
}

Status DiskContent::ShowCut(uint64_t cut, uint64_t seed) {
  if (cut > recording_.size()) return Status::InvalidArgument("the recording has no such entry");
  SetFaults({.seed = seed});
  const size_t durable = recording_.DurableUntil(cut);
  // The base holds all that was recorded, or more than this image may have.
  if (!shows_image_ || durable < applied_) Clear();
  shows_image_ = true;
  recording_.Apply(applied_, durable, base_);
  applied_ = durable;
  shown_ = {.cut = cut, .seed = seed, .before_second = {}};
  BuildImage();
  return Status();
}

Status DiskContent::ShowCutAgain(uint64_t seed) {
  if (!shows_image_) return Status::InvalidArgument("there was no first image");
  shown_.before_second = std::move(image_log_);
  shown_.second_seed = seed;
  BuildImage();
  return Status();
}

void DiskContent::BuildImage() {
  PARTITA_ASSERT(madvise(image_.data(), image_.size(), MADV_DONTNEED) == 0);
  image_log_.Clear();
  recording_.ApplySome(applied_, shown_.cut, shown_.seed, sector_, image_);
  const BlockLog& done = shown_.before_second;
  if (done.size() == 0) return;
  // What the first loss of power left is durable; of what was done since, some is.
  const size_t cut = std::mt19937_64(shown_.second_seed)() % (done.size() + 1);
  const size_t durable = done.DurableUntil(cut);
  done.Apply(0, durable, image_);
  done.ApplySome(durable, cut, shown_.second_seed, sector_, image_);
}

Status DiskContent::SaveImage(const std::string& path) {
  if (!shows_image_) return Status::InvalidArgument("there is no image");
  BuildImage();
  BlockLog log;
  const std::vector<uint8_t> zeros(kPage, 0);
  for (uint64_t at = 0; at < size_; at += kPage) {
    const std::span<const uint8_t> page = Shown(at, kPage);
    if (!std::equal(page.begin(), page.end(), zeros.begin())) log.AddWrite(at, page);
  }
  log.AddFlush();
  return log.Save(path);
}

Status DiskContent::Load(const std::string& path) {
  Result<BlockLog> loaded = BlockLog::Load(path);
  if (!loaded.ok()) return loaded.status();
  Restart();
  recording_ = std::move(loaded).value();
  entries_->store(recording_.size(), std::memory_order_release);
  return Status();
}

}  // namespace partita
