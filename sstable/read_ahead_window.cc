#include "sstable/read_ahead_window.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

namespace {

constexpr size_t kSizeFirst = 16 * 1024;
constexpr size_t kSizeMax = 256 * 1024;
constexpr size_t kSizeLarge = 1024 * 1024;

// With a pool: pieces are read ahead once they would be so large, and grow to so much.
constexpr size_t kAheadSizeMin = 128 * 1024;
constexpr size_t kAheadSizeMax = 512 * 1024;

// Pages between two wanted parts that cost less to read along than another operation does.
constexpr uint64_t kGapMax = 4 * kPageSize;
// Reads of one piece: parts that lie far apart.
constexpr size_t kRunsMax = 16;

const ReadAheadRun* Find(const ReadAheadPiece* piece, const PartHandle& part) {
  return piece == nullptr ? nullptr : piece->RunOf(part);
}

uint64_t SizeOf(const std::vector<ReadAheadRun>& runs) {
  uint64_t size = 0;
  for (const ReadAheadRun& run : runs) size += run.size();
  return size;
}

// Adds the pages of the part; false when the piece would be larger than `size_max`.
bool Include(std::vector<ReadAheadRun>* runs, const PartHandle& part, size_t size_max) {
  const uint64_t begin = AlignDown(part.offset, kPageSize);
  const uint64_t end = AlignUp(part.end(), kPageSize);
  if (runs->empty()) {
    if (end - begin > size_max) return false;
    runs->push_back({begin, end, 0});
    return true;
  }
  const uint64_t size = SizeOf(*runs);
  ReadAheadRun& last = runs->back();
  const uint64_t joined_begin = std::min(last.begin, begin);
  const uint64_t joined_end = std::max(last.end, end);
  const uint64_t joined = joined_end - joined_begin;
  if (joined <= last.size() + (end - begin) + kGapMax) {
    if (size - last.size() + joined > size_max) return false;
    last.begin = joined_begin;
    last.end = joined_end;
    return true;
  }
  if (runs->size() == kRunsMax || size + (end - begin) > size_max) return false;
  runs->push_back({begin, end, 0});
  return true;
}

}  // namespace

bool ReadAheadWindow::Holds(const PartHandle& part) const { return Find(current_.get(), part) != nullptr; }

bool ReadAheadWindow::Awaits(const PartHandle& part) const {
  return std::any_of(ahead_.begin(), ahead_.end(),
                     [&](const auto& piece) { return Find(piece.get(), part) != nullptr; });
}

std::string_view ReadAheadWindow::Bytes(const PartHandle& part) const {
  const ReadAheadRun* run = Find(current_.get(), part);
  PARTITA_ASSERT(run != nullptr);
  return current_->Bytes(*run, part.offset, part.stored_size);
}

// The size of a piece that begins at `wanted`, which nothing on its way holds.
void ReadAheadWindow::Grow(const PartHandle& wanted) {
  // A jump to what borders on the last piece, in either direction, is none.
  const auto borders = [&](const ReadAheadRun& run) {
    return wanted.offset <= run.end + kPageSize && wanted.end() + kPageSize >= run.begin;
  };
  const bool in_order = current_ != nullptr &&
                        (!jumped_ || std::any_of(current_->runs().begin(), current_->runs().end(), borders));
  if (options_.large) {
    size_ = kSizeLarge;
  } else if (in_order && total_ < options_.bytes_expected) {
    size_ = std::min(size_ * 2, kSizeMax);
  } else {
    const bool in_stride = current_ == nullptr && options_.bytes_expected > kSizeMax;
    size_ = in_stride ? std::clamp<uint64_t>(options_.read_in_stride / 2, kSizeFirst, kSizeMax) : kSizeFirst;
  }
  if (!in_order) total_ = 0;
}

void ReadAheadWindow::Fill(Runs* runs, ReadAheadRoute& route) {
  while (true) {
    if (!left_over_) left_over_ = route.NextPart();
    if (!left_over_ || !Include(runs, *left_over_, size_)) break;
    left_over_.reset();
  }
  size_t at = 0;
  for (ReadAheadRun& run : *runs) {
    run.at = at;
    at += run.size();
  }
  total_ += at;
  bytes_planned_ += at;
}

ReadAheadWindow::Runs ReadAheadWindow::PlanFrom(const PartHandle& wanted, ReadAheadRoute& route) {
  route.Restart();
  left_over_.reset();
  Runs runs;
  Include(&runs, wanted, SIZE_MAX);
  Fill(&runs, route);
  return runs;
}

bool ReadAheadWindow::ReadsOn() const {
  return options_.pool != nullptr && !options_.large && size_ >= kAheadSizeMin &&
         total_ < options_.bytes_expected;
}

void ReadAheadWindow::Begin(const std::shared_ptr<ObjectReader>& object, PartHandle first,
                            ReadAheadRoute& route) {
  PARTITA_ASSERT(options_.pool != nullptr && current_ == nullptr);
  if (!ahead_.empty() || options_.read_in_stride >= options_.bytes_expected) return;
  total_ = 0;
  const uint64_t left = options_.bytes_expected - options_.read_in_stride;
  size_ = std::clamp<uint64_t>(std::min(options_.read_in_stride / 2, left), kSizeFirst, kAheadSizeMax);
  if (AlignUp(first.end(), kPageSize) - AlignDown(first.offset, kPageSize) > size_) return;
  AlignedBuffer buffer = options_.pool->TakeBuffer(size_);
  if (buffer.data() == nullptr) return;
  ahead_.push_back(options_.pool->Start(object, PlanFrom(first, route), std::move(buffer)));
  if (left > size_) StartAhead(object, route);
}

void ReadAheadWindow::StartAhead(const std::shared_ptr<ObjectReader>& object, ReadAheadRoute& route) {
  while (ahead_.size() < kAheadMax && ReadsOn()) {
    // A second one only once pieces have their full size.
    if (!ahead_.empty() && size_ < kAheadSizeMax) return;
    const size_t size_before = size_;
    size_ = std::clamp<uint64_t>(read_in_stride() / 2, size_, kAheadSizeMax);
    // The memory first: what is planned is read, or the route would have lost it.
    AlignedBuffer buffer = options_.pool->TakeBuffer(size_);
    Runs runs;
    if (buffer.data() != nullptr) Fill(&runs, route);
    if (runs.empty()) {
      size_ = size_before;
      options_.pool->GiveBack(std::move(buffer));
      return;
    }
    ahead_.push_back(options_.pool->Start(object, std::move(runs), std::move(buffer)));
  }
}

Task<Status> ReadAheadWindow::Fetch(std::shared_ptr<ObjectReader> object, PartHandle wanted,
                                    ReadAheadRoute& route) {
  // What was passed over (its blocks were in the cache, or the cursor jumped) is of no use any more.
  while (!ahead_.empty() && Find(ahead_.front().get(), wanted) == nullptr) ahead_.pop_front();
  if (!ahead_.empty()) {
    current_ = std::move(ahead_.front());
    ahead_.pop_front();
  } else {
    Grow(wanted);
    AlignedBuffer buffer;
    if (options_.pool != nullptr && size_ > kSizeFirst) {
      buffer = options_.pool->TakeBuffer(size_);
      if (buffer.data() == nullptr) size_ = kSizeFirst;  // Scans have all the memory they may: small pieces.
    }
    current_ = ReadAheadPool::Prepare(options_.pool, object, PlanFrom(wanted, route), std::move(buffer));
    if (current_ == nullptr) co_return Status::ResourceExhausted("no memory to read ahead");
  }
  jumped_ = false;
  std::shared_ptr<ReadAheadPiece> piece = current_;
  Status read = co_await piece->Arrive();
  if (!read.ok()) {
    current_.reset();
    ahead_.clear();
    co_return read;
  }
  StartAhead(object, route);
  co_return Status();
}

}  // namespace partita
