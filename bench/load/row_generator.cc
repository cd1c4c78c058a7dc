#include "bench/load/row_generator.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"

namespace partita::bench {
namespace {

// SplitMix64's finalizer: every input bit reaches every output bit.
uint64_t MixedBits(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

template <size_t kSize>
void Number(std::array<char, kSize>* text, std::string_view prefix, uint64_t number) {
  std::memcpy(text->data(), prefix.data(), prefix.size());
  for (size_t at = kSize; at > prefix.size(); --at, number /= 10) {
    (*text)[at - 1] = static_cast<char>('0' + number % 10);
  }
}

// Stamped at the front of each value: fingerprint of the key, then the number of the pool value.
constexpr size_t kStampSize = 8 + 4;

std::string RandomWord(std::mt19937_64& random, size_t size_min, size_t size_max) {
  std::string word;
  const size_t size = size_min + random() % (size_max - size_min + 1);
  for (size_t i = 0; i < size; ++i) word += static_cast<char>('a' + random() % 26);
  return word;
}

// One value after the other, entity by entity, from one vocabulary.
class EntityText {
 public:
  explicit EntityText(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 512; ++i) words_.push_back(RandomWord(random_, 3, 10));
  }

  std::string Make(size_t size) {
    // What does not compress keeps its share in small entities too.
    payload_size_ = std::clamp<size_t>(size / 10, 8, 100);
    std::string text;
    while (text.size() < size) AppendProperty(&text);
    text.resize(size);
    return text;
  }

 private:
  void AppendProperty(std::string* text) {
    switch (random_() % 6) {
      case 0:
        AppendFormatted(text, "CreatedAt\tE2025-%02d-%02dT%02d:%02d:%02d.%07dZ", 1 + Below(12), 1 + Below(28),
                        Below(24), Below(60), Below(60), Below(10'000'000));
        break;
      case 1:
        AppendFormatted(text, "CustomerId\tG%08x-%04x-%04x-%04x-%04x%08x", Below(INT32_MAX), Below(65536),
                        Below(65536), Below(65536), Below(65536), Below(INT32_MAX));
        break;
      case 2:
        AppendFormatted(text, "Amount\tD%.6f", static_cast<double>(Below(100'000'000)) / 997.0);
        break;
      case 3:
        AppendFormatted(text, "Quantity\tI%d", Below(1000));
        break;
      case 4:
        text->append("Description\tS");
        for (int i = 0; i < 12; ++i) text->append(words_[Below(512)]).append(" ");
        break;
      default:
        text->append("Payload\tB");
        for (size_t i = 0; i < payload_size_; ++i) text->push_back(kBase64[Below(64)]);
        break;
    }
    text->push_back('\0');
  }

  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }

  template <typename... Arguments>
  void AppendFormatted(std::string* text, const char* format, Arguments... arguments) {
    std::array<char, 128> buffer;
    const int size = std::snprintf(buffer.data(), buffer.size(), format, arguments...);
    text->append(buffer.data(), static_cast<size_t>(size));
  }

  static constexpr const char* kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::mt19937_64 random_;
  std::vector<std::string> words_;
  size_t payload_size_ = 100;
};

}  // namespace

RowKeys KeysOf(uint64_t index, bool missing) {
  RowKeys keys;
  Number(&keys.partition_text, "partition-", index / kRowsPerPartition);
  Number(&keys.row_text, "row-", (index % kRowsPerPartition) * 10 + (missing ? 5 : 0));
  return keys;
}

RowKeys KeysOfMissingPartition(uint64_t index) {
  RowKeys keys = KeysOf(index);
  keys.partition_text.back() = 'x';  // Behind the digits, so before the next ten partitions.
  return keys;
}

ValueGenerator::ValueGenerator(size_t value_size, uint64_t seed)
    : value_size_(value_size), pool_(kPoolSize * value_size) {
  PARTITA_ASSERT(value_size >= 64 && value_size <= 65536);
  EntityText text(seed);
  hashes_.reserve(kPoolSize);
  for (size_t i = 0; i < kPoolSize; ++i) {
    const std::string value = text.Make(value_size);
    std::memcpy(PoolValue(i), value.data(), value_size);
    hashes_.push_back(Hash64(std::string_view(value).substr(kStampSize)));
  }
}

void ValueGenerator::Fill(uint64_t index, uint64_t generation, std::string* value) const {
  const uint64_t fingerprint = MixedBits(index + 1);
  const auto number = static_cast<uint32_t>(MixedBits(fingerprint + generation) % kPoolSize);
  value->assign(PoolValue(number), value_size_);
  StoreLe64(value->data(), fingerprint);
  StoreLe32(value->data() + 8, number);
}

bool ValueGenerator::Check(uint64_t index, std::string_view value) const {
  if (value.size() != value_size_ || LoadLe64(value.data()) != MixedBits(index + 1)) return false;
  const uint32_t number = LoadLe32(value.data() + 8);
  return number < kPoolSize && Hash64(value.substr(kStampSize)) == hashes_[number];
}

Permutation::Permutation(uint64_t size, uint64_t seed) : size_(size) {
  PARTITA_ASSERT(size > 0);
  half_bits_ = (static_cast<uint32_t>(std::bit_width(size - 1)) + 2) / 2;
  for (size_t i = 0; i < round_keys_.size(); ++i) round_keys_[i] = MixedBits(seed * 4 + i + 1);
}

uint64_t Permutation::Shuffle(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (uint64_t key : round_keys_) {
    const uint64_t next = left ^ (MixedBits(right ^ key) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

uint64_t Permutation::At(uint64_t position) const {
  PARTITA_ASSERT(position < size_);
  uint64_t value = Shuffle(position);
  while (value >= size_) value = Shuffle(value);
  return value;
}

}  // namespace partita::bench
