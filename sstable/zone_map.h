#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/coding.h"
#include "engine/base/entry.h"
#include "engine/base/ids.h"

namespace partita {

// Zone maps: for each data block (and for the whole file) the least and greatest value of some
// properties, so that a predicate can rule a block out without reading it. Always kept: the
// smallest and greatest version. Named properties: at most kZonePropertiesMax a file, the most
// frequent ones, found by an extractor that the owner of the entity codec supplies; this folder
// does not know the codec.
//
// What a zone claims, it claims of every put of the block (tombstones have no properties):
// `absent` = some put lacks the property; `types` = the type codes that occur; [least, greatest] =
// the range of the ordered codes, meaningful only when one type occurs.
inline constexpr size_t kZonePropertiesMax = 16;
// Names watched while the most frequent ones are not known yet; those that first appear later are
// not kept.
inline constexpr size_t kZoneCandidatesMax = 32;
// After so many blocks the most frequent candidates are kept and the others dropped.
inline constexpr size_t kZoneTrainingBlocks = 64;

// Takes the properties of one entity from the extractor.
class ZoneSink {
 public:
  virtual ~ZoneSink() = default;
  // `type` < 16; `code` orders values of one type like the values themselves (8-byte form; for
  // strings the first 8 bytes, which is a sound bound on both sides).
  virtual void Add(std::string_view property, uint8_t type, uint64_t code) = 0;
};

// Calls sink.Add once for each property in `content` (a stored value without its header).
using ZoneExtractor = std::function<void(std::string_view content, ZoneSink& sink)>;

struct Zone {
  uint8_t property = 0;  // Index in the file's list of property names.
  bool absent = false;   // Some put lacks it.
  uint16_t types = 0;    // Bit t: a value of type t occurs. 0: no put has the property.
  uint64_t least = 0;
  uint64_t greatest = 0;

  friend bool operator==(const Zone&, const Zone&) = default;
};

struct ZoneMap {
  Version version_min;
  Version version_max;
  uint32_t tombstones = 0;
  std::vector<Zone> zones;  // Sorted by property.

  friend bool operator==(const ZoneMap&, const ZoneMap&) = default;
};

// As stored in an index record and in the properties:
//
//   offset  size  field
//        0     8  version_min
//        8     8  version_max
//       16     4  tombstones
//       20     1  zone count n, <= kZonePropertiesMax
//       21  20*n  zones: property 1, absent 1, types 2, least 8, greatest 8
inline constexpr size_t kZoneMapHeaderSize = 8 + 8 + 4 + 1;
inline constexpr size_t kZoneSize = 1 + 1 + 2 + 8 + 8;
void AppendZoneMap(std::string* out, const ZoneMap& map);
ZoneMap ReadZoneMap(ByteReader* reader);

// A stored zone map where it lies: reads what is asked for and allocates nothing.
class ZoneMapView {
 public:
  explicit ZoneMapView(std::string_view bytes) : bytes_(bytes) {}

  // Of the zone map that `bytes` begin with, if they begin with one; 0 when they are too short for any.
  static size_t StoredSize(std::string_view bytes) {
    if (bytes.size() < kZoneMapHeaderSize) return 0;
    return kZoneMapHeaderSize + kZoneSize * ZoneMapView(bytes).size();
  }

  // False: these bytes are no zone map, and nothing else may be asked.
  bool valid() const { return bytes_.size() >= kZoneMapHeaderSize && bytes_.size() == StoredSize(bytes_); }
  Version version_min() const { return Version(LoadLe64(bytes_.data())); }
  Version version_max() const { return Version(LoadLe64(bytes_.data() + 8)); }
  uint32_t tombstones() const { return LoadLe32(bytes_.data() + 16); }
  size_t size() const { return static_cast<uint8_t>(bytes_[20]); }

  // Writes the zone of property number `property` to *zone; false when there is none.
  bool Find(uint8_t property, Zone* zone) const;

 private:
  std::string_view bytes_;
};

// Gathers the zone maps of a file while it is written, block by block.
//
// Use: Add for each entry, FinishBlock at the end of each block, Finish once. Memory: one zone per
// block and watched property.
class ZoneMapBuilder : private ZoneSink {
 public:
  explicit ZoneMapBuilder(ZoneExtractor extractor) : extractor_(std::move(extractor)) {}

  void Add(const Entry& entry);
  void FinishBlock();

  struct Output {
    std::vector<std::string> properties;  // Sorted by name.
    std::vector<ZoneMap> blocks;
    ZoneMap file;
  };
  // REQUIRES: the last block was finished.
  Output Finish();

 private:
  struct Candidate {
    std::string name;
    uint64_t entries = 0;     // Puts of the file that have it.
    uint64_t last_entry = 0;  // The put that last added to it; a repeated Add counts once.
    bool kept = true;
    uint32_t block_entries = 0;  // Puts of the current block that have it.
    Zone zone;                   // Of the current block.
  };
  struct BlockZone {
    uint32_t candidate;
    Zone zone;
  };
  struct BlockZones {
    ZoneMap map;  // Zones still empty.
    uint64_t puts = 0;
    std::vector<BlockZone> present;
  };

  void Add(std::string_view property, uint8_t type, uint64_t code) override;
  Candidate* FindCandidate(std::string_view property);
  std::vector<uint32_t> MostFrequent() const;

  ZoneExtractor extractor_;
  std::vector<Candidate> candidates_;
  size_t next_guess_ = 0;  // Entities of one shape add properties in the same order.
  bool trained_ = false;
  uint64_t put_number_ = 0;
  uint64_t block_entry_count_ = 0;
  BlockZones block_;
  std::vector<BlockZones> blocks_;
};

}  // namespace partita
