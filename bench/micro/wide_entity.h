#pragma once
#include <sys/resource.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

#include "api/entity.h"
#include "engine/base/entity_record.h"

namespace partita::bench {

// The entity of the query benchmarks: 12 properties of 8 types, 1 KiB as a record. One in a hundred has Level
// 7; Created rises with `index` by a second. RowKeys rise with `index`.
inline std::string RandomWord(std::mt19937_64& random, size_t size_min, size_t size_max) {
  std::string word(size_min + random() % (size_max - size_min + 1), ' ');
  for (char& c : word) c = static_cast<char>('a' + random() % 26);
  return word;
}

inline Entity MakeWideEntity(std::mt19937_64& random, std::string_view partition, uint64_t index) {
  constexpr size_t kRecordSize = 1024;
  std::string row = std::to_string(index);
  row.insert(0, 12 - row.size(), '0');
  Entity entity(std::string(partition), row);
  entity.Set("Active", random() % 2 == 0);
  entity.Set("Amount", static_cast<double>(random() % 1'000'000) / 100);
  entity.Set("Attempts", static_cast<int32_t>(random() % 10));
  entity.Set("Category", RandomWord(random, 4, 12));
  entity.Set("City", RandomWord(random, 6, 20));
  entity.Set("Created", DateTime{636'000'000'000'000'000 + index * 10'000'000});
  Guid guid;
  for (auto& byte : guid.bytes) byte = static_cast<uint8_t>(random());
  entity.Set("Id", guid);
  entity.Set("Level", static_cast<int32_t>(random() % 100));
  entity.Set("Price", static_cast<double>(random() % 100'000) / 7);
  entity.Set("Quantity", static_cast<int64_t>(random() % 1'000'000'000));
  entity.Set("Signature", Binary{RandomWord(random, 32, 32)});
  entity.Set("Text", "");
  const size_t without = EncodeEntityRecord(entity.properties()).size();
  entity.Set("Text", RandomWord(random, kRecordSize - without, kRecordSize - without));
  return entity;
}

// User and kernel time of the whole process so far.
inline double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace partita::bench
