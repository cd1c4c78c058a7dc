#include "sstable/read_ahead_pool.h"

#include <algorithm>
#include <utility>

#include "engine/base/assert.h"

namespace partita {

namespace {

size_t SizeOf(const std::vector<ReadAheadRun>& runs) { return runs.back().at + runs.back().size(); }

}  // namespace

ReadAheadPiece::ReadAheadPiece(ReadAheadPool* pool, std::shared_ptr<ObjectReader> object,
                               std::vector<ReadAheadRun> runs, AlignedBuffer buffer)
    : pool_(pool), object_(std::move(object)), runs_(std::move(runs)), buffer_(std::move(buffer)) {}

ReadAheadPiece::~ReadAheadPiece() {
  if (pool_ != nullptr) pool_->GiveBack(std::move(buffer_));
}

Task<Status> ReadAheadPiece::Perform() {
  std::vector<ObjectRead> reads;
  reads.reserve(runs_.size());
  for (const ReadAheadRun& run : runs_) {
    reads.push_back({run.begin, buffer_.span().subspan(run.at, run.size())});
  }
  co_return co_await object_->Read(reads, ReadCaching::kNormal);
}

Task<Status> ReadAheadPiece::ArriveInTime(TimedWaits* waits, std::shared_ptr<ReadAheadPiece> piece) {
  if (waits == nullptr) co_return co_await piece->Arrive();
  // The runs of one that goes backward fall.
  const ReadAheadRun &first = piece->runs_.front(), &last = piece->runs_.back();
  const TimedWaits::Place place{piece->object_->id(), std::min(first.begin, last.begin),
                                std::max(first.end, last.end)};
  const uint64_t uncounted = piece->pool_ == nullptr ? piece->buffer_.size() : 0;
  co_return co_await waits->Arrive(std::move(piece), place, uncounted);
}

ReadAheadPool::~ReadAheadPool() {
  buffers_.clear();
  PARTITA_ASSERT(reads_.running() == 0);
}

std::shared_ptr<ReadAheadPiece> ReadAheadPool::Start(std::shared_ptr<ObjectReader> object,
                                                     std::vector<ReadAheadRun> runs, AlignedBuffer buffer) {
  PARTITA_ASSERT(SizeOf(runs) <= buffer.size());
  std::shared_ptr<ReadAheadPiece> piece(
      new ReadAheadPiece(this, std::move(object), std::move(runs), std::move(buffer)));
  started_.fetch_add(1, std::memory_order_relaxed);
  Overlapped::Start(reads_, helpers_, piece);
  return piece;
}

std::shared_ptr<ReadAheadPiece> ReadAheadPool::Prepare(ReadAheadPool* pool,
                                                       std::shared_ptr<ObjectReader> object,
                                                       std::vector<ReadAheadRun> runs, AlignedBuffer buffer) {
  const size_t size = SizeOf(runs);
  const bool counted = buffer.data() != nullptr && size <= buffer.size();
  if (!counted) {
    if (buffer.data() != nullptr) pool->GiveBack(std::move(buffer));
    buffer = AlignedBuffer(size);
    if (buffer.data() == nullptr) return nullptr;
  }
  return std::shared_ptr<ReadAheadPiece>(
      new ReadAheadPiece(counted ? pool : nullptr, std::move(object), std::move(runs), std::move(buffer)));
}

AlignedBuffer ReadAheadPool::TakeBuffer(size_t size) {
  size = AlignUp(size, kPageSize);
  {
    std::lock_guard lock(mutex_);
    const auto fits = [size](const AlignedBuffer& kept) {
      return kept.size() >= size && kept.size() <= 2 * size;
    };
    const auto found = std::find_if(buffers_.begin(), buffers_.end(), fits);
    if (found != buffers_.end()) {
      AlignedBuffer buffer = std::move(*found);
      buffers_.erase(found);
      return buffer;
    }
    // What does not fit makes room for what is wanted.
    while (!buffers_.empty() && held_.load(std::memory_order_relaxed) + size > bytes_max_) {
      held_.fetch_sub(buffers_.front().size(), std::memory_order_relaxed);
      buffers_.erase(buffers_.begin());
    }
  }
  if (held_.fetch_add(size, std::memory_order_relaxed) + size <= bytes_max_) {
    AlignedBuffer buffer(size);
    if (buffer.data() != nullptr) return buffer;
  }
  held_.fetch_sub(size, std::memory_order_relaxed);
  return AlignedBuffer();
}

void ReadAheadPool::GiveBack(AlignedBuffer buffer) {
  if (buffer.data() == nullptr) return;
  std::lock_guard lock(mutex_);
  if (buffers_.size() < kBuffersKeptMax) {
    buffers_.push_back(std::move(buffer));
  } else {
    held_.fetch_sub(buffer.size(), std::memory_order_relaxed);
  }
}

}  // namespace partita
