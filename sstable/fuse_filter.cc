#include "sstable/fuse_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/base/assert.h"
#include "engine/base/coding.h"

// Building (Graf and Lemire, "Binary Fuse Filters", 2022), for n keys over three slots each:
// 1. Put the mixed hashes in the order of the segment they start in, so that memory is walked in order.
// 2. Count, for each slot, the keys that use it, and keep the XOR of their hashes.
// 3. Peel: a slot used by one key belongs to it; take the key away from its other two slots; repeat.
// 4. If keys are left (a cycle), try another seed. Repeated keys are such a cycle whatever the
//    seed, so they are removed first when a try fails.
// 5. Go back through the peeled keys and give each its own slot the value that makes the XOR of the
//    three its fingerprint.

namespace partita {

namespace {

constexpr int kTriesMax = 100;
constexpr uint32_t kSegmentLengthMax = 1u << 18;

struct Geometry {
  uint32_t segment_length = 0;
  uint32_t segment_count = 0;
  uint64_t array_length() const { return (static_cast<uint64_t>(segment_count) + 2) * segment_length; }
};

Geometry GeometryFor(size_t keys) {
  Geometry g;
  double n = static_cast<double>(std::max<size_t>(keys, 2));
  g.segment_length = 1u << static_cast<int>(std::floor(std::log(n) / std::log(3.33) + 2.25));
  g.segment_length = std::min(g.segment_length, kSegmentLengthMax);
  double factor = std::max(1.125, 0.875 + 0.25 * std::log(1e6) / std::log(n));
  uint64_t slots = static_cast<uint64_t>(std::llround(n * factor));
  uint64_t segments = (slots + g.segment_length - 1) / g.segment_length;
  g.segment_count = static_cast<uint32_t>(segments <= 2 ? 1 : segments - 2);
  return g;
}

uint64_t MixHash(uint64_t hash, uint64_t seed) {
  uint64_t h = hash + seed;
  h ^= h >> 33;
  h *= 0xff51afd7ed558ccdULL;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53ULL;
  h ^= h >> 33;
  return h;
}

struct Slots {
  uint32_t at[3];
};

inline Slots SlotsOf(uint64_t hash, uint32_t segment_length, uint64_t segment_count_length) {
  const uint32_t mask = segment_length - 1;
  uint32_t first = static_cast<uint32_t>((static_cast<unsigned __int128>(hash) * segment_count_length) >> 64);
  uint32_t second = first + segment_length;
  uint32_t third = second + segment_length;
  second ^= static_cast<uint32_t>(hash >> 18) & mask;
  third ^= static_cast<uint32_t>(hash) & mask;
  return {{first, second, third}};
}

// Little-endian in memory, as the machines are that we build for.
template <typename Print>
Print Fingerprint(uint64_t hash) {
  return static_cast<Print>(hash ^ (hash >> 32));
}
template <typename Print>
Print PrintAt(const char* prints, uint32_t slot) {
  Print print;
  std::memcpy(&print, prints + slot * sizeof(Print), sizeof(Print));
  return print;
}
template <typename Print>
bool Matches(const char* prints, const Slots& s, uint64_t hash) {
  return Fingerprint<Print>(hash) == (PrintAt<Print>(prints, s.at[0]) ^ PrintAt<Print>(prints, s.at[1]) ^
                                      PrintAt<Print>(prints, s.at[2]));
}

class Builder {
 public:
  explicit Builder(size_t keys)
      : geometry_(GeometryFor(keys)),
        length_(static_cast<uint64_t>(geometry_.segment_count) * geometry_.segment_length),
        slots_(geometry_.array_length()),
        order_(keys),
        owner_(keys) {}

  const Geometry& geometry() const { return geometry_; }

  bool Try(const std::vector<uint64_t>& hashes, uint64_t seed) {
    SortBySegment(hashes, seed);
    Count();
    return Peel();
  }

  // REQUIRES: the last Try succeeded.
  template <typename Print>
  void Assign(std::string* out) const {
    const size_t start = out->size();
    out->resize(start + slots_.size() * sizeof(Print));
    char* prints = out->data() + start;
    for (size_t i = order_.size(); i-- > 0;) {
      const Slots s = SlotsOf(order_[i], geometry_.segment_length, length_);
      const unsigned own = owner_[i];
      const Print print =
          static_cast<Print>(Fingerprint<Print>(order_[i]) ^ PrintAt<Print>(prints, s.at[(own + 1) % 3]) ^
                             PrintAt<Print>(prints, s.at[(own + 2) % 3]));
      std::memcpy(prints + s.at[own] * sizeof(Print), &print, sizeof(Print));
    }
  }

 private:
  struct Slot {
    uint64_t hashes = 0;  // XOR of the keys' hashes.
    uint32_t count = 0;
    uint32_t places = 0;  // XOR of the place (0..2) that this slot has in each key.
  };

  void SortBySegment(const std::vector<uint64_t>& hashes, uint64_t seed) {
    unsigned bits = static_cast<unsigned>(std::max<int>(1, std::bit_width(geometry_.segment_count) - 1));
    std::vector<uint32_t> begin((size_t{1} << bits) + 1);
    for (uint64_t hash : hashes) ++begin[(MixHash(hash, seed) >> (64 - bits)) + 1];
    for (size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
    for (uint64_t hash : hashes) {
      uint64_t mixed = MixHash(hash, seed);
      order_[begin[mixed >> (64 - bits)]++] = mixed;
    }
  }

  void Count() {
    std::fill(slots_.begin(), slots_.end(), Slot());
    for (uint64_t hash : order_) {
      const Slots s = SlotsOf(hash, geometry_.segment_length, length_);
      for (uint32_t place = 0; place < 3; ++place) {
        Slot& slot = slots_[s.at[place]];
        slot.hashes ^= hash;
        ++slot.count;
        slot.places ^= place;
      }
    }
  }

  bool Peel() {
    std::vector<uint32_t> alone;
    for (uint32_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].count == 1) alone.push_back(i);
    }
    size_t peeled = 0;
    while (!alone.empty()) {
      const uint32_t index = alone.back();
      alone.pop_back();
      if (slots_[index].count != 1) continue;
      const uint64_t hash = slots_[index].hashes;
      const uint32_t own = slots_[index].places;
      order_[peeled] = hash;
      owner_[peeled++] = static_cast<uint8_t>(own);
      const Slots s = SlotsOf(hash, geometry_.segment_length, length_);
      for (uint32_t place = 0; place < 3; ++place) {
        Slot& slot = slots_[s.at[place]];
        slot.hashes ^= hash;
        slot.places ^= place;
        if (--slot.count == 1) alone.push_back(s.at[place]);
      }
    }
    return peeled == order_.size();
  }

  Geometry geometry_;
  uint64_t length_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> order_;  // Mixed hashes by segment, then in the order peeled.
  std::vector<uint8_t> owner_;   // Which of its three slots each peeled key owns.
};

void AppendHeader(std::string* out, uint64_t seed, const Geometry& geometry, size_t keys, FilterWidth width) {
  AppendLe64(out, seed);
  AppendLe32(out, geometry.segment_length);
  AppendLe32(out, geometry.segment_count);
  AppendLe32(out, static_cast<uint32_t>(keys));
  AppendLe32(out, static_cast<uint32_t>(width));
}

}  // namespace

std::string BuildFuseFilter(std::vector<uint64_t>* hashes, FilterWidth width) {
  std::string out;
  if (hashes->empty()) {
    AppendHeader(&out, 0, Geometry(), 0, width);
    return out;
  }
  bool unique = false;
  for (int round = 0; round < kTriesMax;) {
    Builder builder(hashes->size());
    for (; round < kTriesMax; ++round) {
      const uint64_t seed = MixHash(static_cast<uint64_t>(round), 0x9E3779B97F4A7C15ULL);
      if (builder.Try(*hashes, seed)) {
        AppendHeader(&out, seed, builder.geometry(), hashes->size(), width);
        width == FilterWidth::k16Bits ? builder.Assign<uint16_t>(&out) : builder.Assign<uint8_t>(&out);
        return out;
      }
      if (!unique) break;
    }
    if (!unique) {
      unique = true;
      std::sort(hashes->begin(), hashes->end());
      hashes->erase(std::unique(hashes->begin(), hashes->end()), hashes->end());
    }
  }
  return out;
}

Status FuseFilter::Load(std::string content, uint64_t keys) {
  ByteReader reader(content);
  const uint64_t seed = reader.ReadLe64();
  Geometry geometry;
  geometry.segment_length = reader.ReadLe32();
  geometry.segment_count = reader.ReadLe32();
  const uint32_t key_count = reader.ReadLe32();
  const uint32_t width = reader.ReadLe32();
  if (!reader.ok()) return Status::Corruption("filter shorter than its header");
  if (width > 1) return Status::Corruption("filter of an unknown width");
  const bool empty = geometry.segment_length == 0;
  if (!empty && (!std::has_single_bit(geometry.segment_length) || geometry.segment_count == 0 ||
                 geometry.segment_length > kSegmentLengthMax)) {
    return Status::Corruption("filter with impossible segments");
  }
  // The greatest slot is below (count + 2) * length, because `third` stays within its segment.
  if (reader.remaining() != (empty ? 0 : geometry.array_length() << width)) {
    return Status::Corruption("filter of another size than its header says");
  }
  // Fewer, where some have the same hash.
  if (key_count > keys || (key_count == 0) != (keys == 0) || (key_count == 0) != empty) {
    return Status::Corruption("filter of " + std::to_string(key_count) + " keys, where there are " +
                              std::to_string(keys));
  }
  content_ = std::move(content);
  width_ = static_cast<FilterWidth>(width);
  seed_ = seed;
  segment_length_ = geometry.segment_length;
  segment_count_length_ = geometry.segment_count * geometry.segment_length;
  loaded_ = true;
  return Status();
}

bool FuseFilter::MayContain(uint64_t hash) const {
  if (!loaded_) return true;
  if (segment_length_ == 0) return false;
  const uint64_t mixed = MixHash(hash, seed_);
  const Slots s = SlotsOf(mixed, segment_length_, segment_count_length_);
  const char* prints = content_.data() + kFuseFilterHeaderSize;
  return width_ == FilterWidth::k16Bits ? Matches<uint16_t>(prints, s, mixed)
                                        : Matches<uint8_t>(prints, s, mixed);
}

}  // namespace partita
