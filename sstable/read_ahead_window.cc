#include "sstable/read_ahead_window.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

namespace {

constexpr size_t kSizeFirst = 16 * 1024;
// The first one, where it is known how much is wanted. Reading so much takes twice as long as reading 16 KiB.
constexpr size_t kSizeFirstMax = 128 * 1024;
// A scan begins and ends within a page and a block, and its entries are not all of one size.
constexpr uint64_t kSlack = 8 * 1024;
constexpr size_t kSizeMax = 256 * 1024;
// What will be read whole: at once, where who reads waits for it; with a pool, while he works on as much.
constexpr size_t kSizeLarge = 1024 * 1024;
constexpr size_t kSizeLargeAhead = 256 * 1024;

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

uint64_t TotalSize(const std::vector<ReadAheadRun>& runs) {
  uint64_t size = 0;
  for (const ReadAheadRun& run : runs) size += run.size();
  return size;
}

uint64_t WithSlack(uint64_t bytes) { return bytes < UINT64_MAX - kSlack ? bytes + kSlack : UINT64_MAX; }

// Adds the pages of the part; false when the piece would be larger than `size_max`.
bool Include(std::vector<ReadAheadRun>* runs, const PartHandle& part, size_t size_max) {
  const uint64_t begin = AlignDown(part.offset, kPageSize);
  const uint64_t end = AlignUp(part.end(), kPageSize);
  if (runs->empty()) {
    if (end - begin > size_max) return false;
    runs->push_back({begin, end, 0});
    return true;
  }
  const uint64_t size = TotalSize(*runs);
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

// A jump to what borders on the last piece, in either direction, is none.
bool ReadAheadWindow::GoesOn(const PartHandle& wanted) const {
  if (current_ == nullptr) return false;
  const auto borders = [&](const ReadAheadRun& run) {
    return wanted.offset <= run.end + kPageSize && wanted.end() + kPageSize >= run.begin;
  };
  return !jumped_ || std::any_of(current_->runs().begin(), current_->runs().end(), borders);
}

// The piece that a scan begins with.
ReadAheadWindow::Runs ReadAheadWindow::PlanFirst(const PartHandle& wanted, ReadAheadRoute& route) {
  const bool in_stride = current_ == nullptr && options_.read_in_stride > 0;
  total_ = 0;
  expected_ = options_.bytes_expected;
  if (!options_.large && failed_) {  // Whoever reads around a bad place shall not wait for much more of it.
    size_ = kSizeFirst;
    return PlanFrom(wanted, route, /*without_cached=*/false);
  }
  if (options_.large || (in_stride && expected_ > kSizeMax)) {
    size_ = options_.large ? LargeSize()
                           : std::clamp<uint64_t>(options_.read_in_stride / 2, kSizeFirst, kSizeMax);
    return PlanFrom(wanted, route, /*without_cached=*/false);
  }
  const auto known = [](uint64_t bytes) {
    return std::clamp<uint64_t>(WithSlack(bytes), kSizeFirst, kSizeFirstMax);
  };
  size_ = known(bytes_left());
  Runs runs = PlanFrom(wanted, route, /*without_cached=*/true);
  if (!left_over_ && route.IsAtEnd()) {
    size_ = std::max<uint64_t>(TotalSize(runs), kSizeFirst);
    return runs;
  }
  const size_t likely = options_.bytes_likely == UINT64_MAX ? kSizeFirst : known(options_.bytes_likely);
  if (likely >= size_) return runs;
  size_ = likely;
  return PlanFrom(wanted, route, /*without_cached=*/true);
}

// The piece behind the last one.
ReadAheadWindow::Runs ReadAheadWindow::PlanMore(const PartHandle& wanted, ReadAheadRoute& route) {
  if (options_.large) {
    size_ = LargeSize();
  } else if (bytes_left() == 0) {
    expected_ = UINT64_MAX;
    size_ = kSizeFirst;
  } else {
    const uint64_t left = bytes_left();
    size_ = std::min(size_ * 2, kSizeMax);
    if (left < size_) size_ = std::max<uint64_t>(WithSlack(left), kSizeFirst);
  }
  return PlanFrom(wanted, route, /*without_cached=*/is_sparse_);
}

ReadAheadWindow::Runs ReadAheadWindow::PlanFrom(const PartHandle& wanted, ReadAheadRoute& route,
                                                bool without_cached) {
  route.Restart();
  left_over_.reset();
  is_sparse_ = false;
  Runs runs;
  Include(&runs, wanted, SIZE_MAX);
  Fill(&runs, route, without_cached);
  return runs;
}

// Adds what comes next on the route while it finds room, without what the cache has: that takes none, but the
// scan has come as far.
void ReadAheadWindow::Fill(Runs* runs, ReadAheadRoute& route, bool without_cached) {
  uint64_t left_out = 0;
  while (true) {
    if (!left_over_) left_over_ = route.NextPart();
    if (!left_over_) return;
    if (without_cached && route.CacheHas(*left_over_)) {
      is_sparse_ = true;
      left_out += left_over_->stored_size;
      if (TotalSize(*runs) + left_out > size_) return;
    } else if (!Include(runs, *left_over_, size_ - left_out)) {
      return;
    }
    left_over_.reset();
  }
}

// Says where the runs are in their buffer, and counts them: they will be read.
void ReadAheadWindow::Count(Runs* runs) {
  size_t at = 0;
  for (ReadAheadRun& run : *runs) {
    run.at = at;
    at += run.size();
  }
  total_ += at;
  bytes_planned_ += at;
}

size_t ReadAheadWindow::LargeSize() const { return options_.pool == nullptr ? kSizeLarge : kSizeLargeAhead; }

bool ReadAheadWindow::ReadsOn() const {
  return options_.pool != nullptr && size_ >= kAheadSizeMin && bytes_left() > 0;
}

void ReadAheadWindow::Begin(const std::shared_ptr<ObjectReader>& object, PartHandle first,
                            ReadAheadRoute& route) {
  PARTITA_ASSERT(options_.pool != nullptr && current_ == nullptr);
  if (!ahead_.empty()) return;
  total_ = 0;
  const uint64_t left = bytes_left();
  if (left == 0) return;
  const uint64_t size = std::min(options_.read_in_stride / 2, left);
  size_ = options_.large ? LargeSize() : std::clamp<uint64_t>(size, kSizeFirst, kAheadSizeMax);
  if (AlignUp(first.end(), kPageSize) - AlignDown(first.offset, kPageSize) > size_) return;
  AlignedBuffer buffer = options_.pool->TakeBuffer(size_);
  if (buffer.data() == nullptr) return;
  Runs runs = PlanFrom(first, route, /*without_cached=*/false);
  Count(&runs);
  ahead_.push_back(options_.pool->Start(object, std::move(runs), std::move(buffer)));
  if (left > size_) StartAhead(object, route);
}

void ReadAheadWindow::StartAhead(const std::shared_ptr<ObjectReader>& object, ReadAheadRoute& route) {
  while (ahead_.size() < kAheadMax && ReadsOn()) {
    // A second one only once pieces have their full size.
    if (!ahead_.empty() && size_ < kAheadSizeMax) return;
    const size_t size_before = size_;
    if (!options_.large) {
      size_ = std::clamp<uint64_t>(read_in_stride() / 2, size_, kAheadSizeMax);
      size_ = std::min<uint64_t>(size_, std::max<uint64_t>(WithSlack(bytes_left()), kSizeFirst));
    }
    // The memory first: what is planned is read, or the route would have lost it.
    AlignedBuffer buffer = options_.pool->TakeBuffer(size_);
    Runs runs;
    if (buffer.data() != nullptr) Fill(&runs, route);
    if (runs.empty()) {
      size_ = size_before;
      options_.pool->GiveBack(std::move(buffer));
      return;
    }
    Count(&runs);
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
    Runs runs = GoesOn(wanted) ? PlanMore(wanted, route) : PlanFirst(wanted, route);
    AlignedBuffer buffer;
    if (options_.pool != nullptr && size_ > kSizeFirst) {
      buffer = options_.pool->TakeBuffer(TotalSize(runs));
      if (buffer.data() == nullptr) {  // Cursors have all the memory they may: small pieces.
        size_ = options_.large ? kSizeFirstMax : kSizeFirst;
        runs = PlanFrom(wanted, route, /*without_cached=*/false);
      }
    }
    Count(&runs);
    current_ = ReadAheadPool::Prepare(options_.pool, object, std::move(runs), std::move(buffer));
    if (current_ == nullptr) co_return Status::ResourceExhausted("no memory to read ahead");
  }
  jumped_ = false;
  Status read = co_await ReadAheadPiece::ArriveInTime(options_.waits, current_);
  failed_ = !read.ok();
  if (failed_) {
    current_.reset();
    ahead_.clear();
    co_return read;
  }
  // Of a scan that the cache has much of only what is missing is read, and so late that it is known.
  if (!is_sparse_) StartAhead(object, route);
  co_return Status();
}

}  // namespace partita
