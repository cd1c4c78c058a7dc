#include "test/power/block_log.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>

#include "engine/base/assert.h"

namespace partita {

namespace {

// What survives of the cache, drawn once for a cut: often nothing or nearly everything, since those are the
// states in which order between the few that differ matters most.
struct Survival {
  uint32_t write_percent;  // A write survives at all.
  uint32_t tear_percent;   // A surviving write is torn.

  static Survival Draw(std::mt19937_64& random) {
    constexpr uint32_t kPercents[] = {0, 10, 50, 50, 90, 98, 100};
    return {kPercents[random() % std::size(kPercents)], random() % 2 == 0 ? 0u : 30u};
  }
};

}  // namespace

void BlockLog::AddWrite(uint64_t offset, std::span<const uint8_t> data) {
  entries_.push_back({offset, data.size(), data_.size()});
  data_.insert(data_.end(), data.begin(), data.end());
}

void BlockLog::AddFlush() {
  entries_.push_back({});
  ++flushes_;
}

void BlockLog::Clear() { *this = BlockLog(); }

size_t BlockLog::DurableUntil(size_t cut) const {
  PARTITA_ASSERT(cut <= entries_.size());
  while (cut > 0 && entries_[cut - 1].offset != kFlush) --cut;
  return cut;
}

void BlockLog::Apply(size_t from, size_t until, std::span<uint8_t> disk) const {
  for (size_t i = from; i < until; ++i) {
    if (entries_[i].offset == kFlush) continue;
    const std::span<const uint8_t> data = DataOf(entries_[i]);
    PARTITA_ASSERT(entries_[i].offset + data.size() <= disk.size());
    std::memcpy(disk.data() + entries_[i].offset, data.data(), data.size());
  }
}

void BlockLog::ApplySome(size_t from, size_t until, uint64_t seed, size_t sector,
                         std::span<uint8_t> disk) const {
  std::mt19937_64 random(seed);
  const Survival survival = Survival::Draw(random);
  std::vector<size_t> order;
  for (size_t i = from; i < until; ++i) {
    PARTITA_ASSERT(entries_[i].offset != kFlush);
    if (random() % 100 < survival.write_percent) order.push_back(i);
  }
  // Not std::shuffle, whose draws are the library's choice.
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (const size_t i : order) {
    const std::span<const uint8_t> data = DataOf(entries_[i]);
    const bool torn = random() % 100 < survival.tear_percent;
    for (size_t at = 0; at < data.size(); at += sector) {
      const bool lost = torn && random() % 2 == 0;
      if (lost && entries_[i].offset + at >= kSuperBlockEnd) continue;
      const size_t size = std::min(sector, data.size() - at);
      std::memcpy(disk.data() + entries_[i].offset + at, data.data() + at, size);
    }
  }
}

Status BlockLog::Save(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const uint64_t counts[] = {entries_.size(), data_.size(), flushes_};
  out.write(reinterpret_cast<const char*>(counts), sizeof counts);
  out.write(reinterpret_cast<const char*>(entries_.data()),
            static_cast<std::streamsize>(entries_.size() * sizeof(Entry)));
  out.write(reinterpret_cast<const char*>(data_.data()), static_cast<std::streamsize>(data_.size()));
  out.close();
  return out ? Status() : Status::IoError("cannot write " + path);
}

Result<BlockLog> BlockLog::Load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  BlockLog log;
  uint64_t counts[3] = {};
  in.read(reinterpret_cast<char*>(counts), sizeof counts);
  if (!in) return Status::IoError("cannot read " + path);
  log.entries_.resize(counts[0]);
  log.data_.resize(counts[1]);
  log.flushes_ = counts[2];
  in.read(reinterpret_cast<char*>(log.entries_.data()),
          static_cast<std::streamsize>(counts[0] * sizeof(Entry)));
  in.read(reinterpret_cast<char*>(log.data_.data()), static_cast<std::streamsize>(counts[1]));
  if (!in) return Status::IoError("cannot read " + path);
  return log;
}

}  // namespace partita
