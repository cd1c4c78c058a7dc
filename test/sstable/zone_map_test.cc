#include "sstable/zone_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "sstable/index_record.h"
#include "test/sstable/table_fixture.h"

namespace partita {
namespace {

// Entities of the test: content "name type code;name type code;...".
void Extract(std::string_view content, ZoneSink& sink) {
  ByteReader reader(content);
  while (!reader.empty() && reader.ok()) {
    std::string_view name = reader.ReadBytes();
    uint8_t type = reader.ReadU8();
    sink.Add(name, type, reader.ReadLe64());
  }
}

struct Property {
  std::string name;
  uint8_t type;
  uint64_t code;
};

std::string Entity(const std::vector<Property>& properties) {
  std::string content;
  for (const Property& p : properties) {
    AppendBytes(&content, p.name);
    content.push_back(static_cast<char>(p.type));
    AppendLe64(&content, p.code);
  }
  return content;
}

const Zone* FindZone(const ZoneMapBuilder::Output& out, const ZoneMap& map, std::string_view name) {
  for (const Zone& zone : map.zones) {
    if (out.properties[zone.property] == name) return &zone;
  }
  return nullptr;
}

TEST(ZoneMapTest, ZonesHoldRangeTypesAndAbsenceOfEachBlock) {
  ZoneMapBuilder builder(Extract);
  builder.Add(Put("k1", 10, Entity({{"Size", 1, 5}, {"Name", 2, 900}})).view());
  builder.Add(Put("k2", 30, Entity({{"Size", 1, 2}, {"Name", 2, 100}})).view());
  builder.Add(Tombstone("k3", 20).view());
  builder.FinishBlock();
  builder.Add(Put("k4", 7, Entity({{"Name", 3, 1}})).view());
  builder.Add(Put("k5", 7, Entity({{"Name", 2, 8}, {"Late", 4, 8}})).view());
  builder.FinishBlock();
  ZoneMapBuilder::Output out = builder.Finish();

  ASSERT_EQ(out.properties, (std::vector<std::string>{"Late", "Name", "Size"}));
  ASSERT_EQ(out.blocks.size(), 2u);
  EXPECT_EQ(out.blocks[0].version_min, Version(10));
  EXPECT_EQ(out.blocks[0].version_max, Version(30));
  EXPECT_EQ(out.blocks[0].tombstones, 1u);
  EXPECT_EQ(*FindZone(out, out.blocks[0], "Size"),
            (Zone{.property = 2, .absent = false, .types = 2, .least = 2, .greatest = 5}));
  EXPECT_EQ(*FindZone(out, out.blocks[0], "Late"),
            (Zone{.property = 0, .absent = true, .types = 0, .least = 0, .greatest = 0}));
  EXPECT_EQ(*FindZone(out, out.blocks[1], "Size"),
            (Zone{.property = 2, .absent = true, .types = 0, .least = 0, .greatest = 0}));
  EXPECT_EQ(*FindZone(out, out.blocks[1], "Name"),
            (Zone{.property = 1, .absent = false, .types = 12, .least = 1, .greatest = 8}));
  EXPECT_EQ(*FindZone(out, out.blocks[1], "Late"),
            (Zone{.property = 0, .absent = true, .types = 16, .least = 8, .greatest = 8}));
  EXPECT_EQ(*FindZone(out, out.file, "Size"),
            (Zone{.property = 2, .absent = true, .types = 2, .least = 2, .greatest = 5}));
  EXPECT_EQ(out.file.version_min, Version(7));
  EXPECT_EQ(out.file.tombstones, 1u);
}

TEST(ZoneMapTest, TheMostFrequentSixteenPropertiesAreKept) {
  ZoneMapBuilder builder(Extract);
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 500; ++i) {
    std::vector<Property> properties;
    for (int p = 0; p < 30; ++p) {
      if (p < 16 || random() % 3 == 0) properties.push_back({"P" + std::to_string(p), 1, random()});
    }
    builder.Add(Put("k", 1, Entity(properties)).view());
    if (i % 5 == 4) builder.FinishBlock();
  }
  ZoneMapBuilder::Output out = builder.Finish();
  ASSERT_EQ(out.properties.size(), kZonePropertiesMax);
  for (int p = 0; p < 16; ++p) {
    EXPECT_NE(std::find(out.properties.begin(), out.properties.end(), "P" + std::to_string(p)),
              out.properties.end());
  }
}

TEST(ZoneMapTest, WhatAZoneClaimsIsTrueOfEveryPutOfItsBlock) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 20; ++round) {
    ZoneMapBuilder builder(Extract);
    std::vector<std::vector<std::map<std::string, Property>>> blocks;
    for (int b = 0; b < 90; ++b) {
      blocks.emplace_back();
      for (size_t e = 1 + random() % 8; e > 0; --e) {
        std::map<std::string, Property> entity;
        for (size_t p = random() % 10; p > 0; --p) {
          // Some names appear only after training, some only before.
          std::string name = "P" + std::to_string((random() % 25) + (b > 70 ? 20 : 0));
          entity[name] = {name, static_cast<uint8_t>(random() % 3), random() % 1000};
        }
        std::vector<Property> properties;
        for (auto& [name, property] : entity) properties.push_back(property);
        builder.Add(Put("k", 1 + random() % 100, Entity(properties)).view());
        blocks.back().push_back(entity);
      }
      builder.FinishBlock();
    }
    ZoneMapBuilder::Output out = builder.Finish();
    ASSERT_EQ(out.properties.size(), kZonePropertiesMax);
    for (size_t b = 0; b < blocks.size(); ++b) {
      for (const Zone& zone : out.blocks[b].zones) {
        const std::string& name = out.properties[zone.property];
        for (const auto& entity : blocks[b]) {
          auto found = entity.find(name);
          if (found == entity.end()) {
            ASSERT_TRUE(zone.absent);
            continue;
          }
          ASSERT_TRUE(zone.types & (1u << found->second.type));
          ASSERT_LE(zone.least, found->second.code);
          ASSERT_GE(zone.greatest, found->second.code);
        }
      }
    }
  }
}

TEST(ZoneMapTest, ATableKeepsItsZonesInIndexAndProperties) {
  std::vector<OwnedEntry> entries;
  for (uint64_t i = 0; i < 200; ++i) {
    entries.push_back(Put(Key("p", std::to_string(1000 + i)), i + 1,
                          Entity({{"N", 1, i}}) + Entity({{"Pad" + std::string(80, 'x'), 2, 0}})));
  }
  MemoryObjectStore store;
  BlockCache cache(1 << 20);
  ASSERT_TRUE(
      WriteTable(store, ObjectId(1), entries, {.codec = Codec::kStored, .block_size = 1024, .zones = Extract})
          .ok());
  auto table = OpenTable(store, cache, ObjectId(1));
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  const TableProperties& properties = (*table)->properties();
  ASSERT_EQ(properties.zone_properties.size(), 2u);
  EXPECT_EQ(properties.zone_properties[0], "N");
  EXPECT_EQ(properties.zones.zones[0],
            (Zone{.property = 0, .absent = false, .types = 2, .least = 0, .greatest = 199}));
  EXPECT_EQ(properties.zones.version_max, Version(200));
  TableVerifyReport report;
  EXPECT_TRUE(RunBlocking((*table)->Verify(&report)).ok());
}

TEST(ZoneMapTest, AViewShowsWhatIsStoredAndRefusesWhatIsNone) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    ZoneMap map{.version_min = Version(random()), .version_max = Version(random()), .tombstones = 7};
    const uint8_t step = static_cast<uint8_t>(1 + random() % 3);  // 1: as the builder numbers them.
    for (size_t i = random() % (kZonePropertiesMax + 1); i > 0; --i) {
      map.zones.push_back({.property = static_cast<uint8_t>(map.zones.size() * step),
                           .absent = random() % 2 == 0,
                           .types = static_cast<uint16_t>(random()),
                           .least = random(),
                           .greatest = random()});
    }
    std::string bytes;
    AppendZoneMap(&bytes, map);
    const ZoneMapView view(bytes);
    ASSERT_TRUE(view.valid());
    ZoneMap seen{view.version_min(), view.version_max(), view.tombstones(), {}};
    for (int property = 0; property < 256; ++property) {
      Zone zone;
      if (view.Find(static_cast<uint8_t>(property), &zone)) seen.zones.push_back(zone);
    }
    EXPECT_EQ(seen, map);
    EXPECT_FALSE(ZoneMapView(std::string_view(bytes).substr(1)).valid());
    EXPECT_FALSE(ZoneMapView(std::string_view(bytes).substr(0, random() % bytes.size())).valid());
    EXPECT_FALSE(ZoneMapView(bytes + "x").valid());
  }
}

TEST(FenceTest, AFenceSeparatesItsNeighboursAndIsShort) {
  EXPECT_EQ(FenceBetween("abcdef", "abxyz"), "abd");
  EXPECT_EQ(FenceBetween("abc", "abcd"), "abc");
  EXPECT_EQ(FenceBetween("abc", "abd"), "abc");
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < 50'000; ++i) {
    std::string a = RandomBytes(random, random() % 6, random() % 2 ? 3 : 256);
    std::string b = RandomBytes(random, random() % 6, random() % 2 ? 3 : 256);
    if (a == b) continue;
    if (b < a) std::swap(a, b);
    const std::string fence = FenceBetween(a, b);
    ASSERT_LE(a, fence);
    ASSERT_LT(fence, b);
    ASSERT_LE(fence.size(), a.size());
  }
}

}  // namespace
}  // namespace partita
