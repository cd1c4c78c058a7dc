#include "sstable/data_block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/base/assert.h"
#include "engine/base/key_head.h"
#include "engine/base/stored_value.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr uint8_t kSameKeyBit = 0x80;

struct Layout {
  uint64_t count, prefix_size, suffixes_size, values_size, width;

  uint64_t heads() const { return kDataBlockHeaderSize; }
  uint64_t slots() const { return heads() + 8 * count; }
  uint64_t prefix() const { return slots() + kSlotSize * count; }
  uint64_t suffixes() const { return prefix() + prefix_size; }
  uint64_t versions() const { return suffixes() + suffixes_size; }
  uint64_t value_ends() const { return versions() + width * count; }
  uint64_t kinds() const { return value_ends() + 4 * count; }
  uint64_t values() const { return kinds() + count; }
  uint64_t total() const { return values() + values_size; }
};

Layout LayoutOf(const char* content) {
  return {.count = LoadLe32(content),
          .prefix_size = LoadLe32(content + 4),
          .suffixes_size = LoadLe32(content + 8),
          .values_size = LoadLe32(content + 12),
          .width = static_cast<uint8_t>(content[24])};
}

// Of two tails with equal heads.
int CompareBeyondHeads(std::string_view suffix_a, size_t rest_a, std::string_view suffix_b, size_t rest_b) {
  // One within its head is a prefix of the other, whose head it equals zero-padded.
  if (rest_a <= 8 || rest_b <= 8) return rest_a < rest_b ? -1 : rest_a > rest_b;
  return suffix_a.compare(suffix_b);
}

bool HasZero(std::string_view bytes) { return bytes.find('\0') != bytes.npos; }

Status Bad(const char* what) { return Status::Corruption(std::string("data block: ") + what); }

}  // namespace

// --- Building ---

unsigned DataBlockBuilder::VersionWidth(uint64_t span) {
  return span == 0 ? 0 : (static_cast<unsigned>(std::bit_width(span)) + 7) / 8;
}

void DataBlockBuilder::Add(const Entry& entry) {
  PARTITA_ASSERT(entry.user_key.size() <= kUserKeySizeMax);
  uint8_t kind = static_cast<uint8_t>(entry.kind);
  uint32_t begin;
  if (!empty() && entry.user_key == last_key()) {
    PARTITA_ASSERT(entry.version < entries_.back().version);
    kind |= kSameKeyBit;
    begin = entries_.back().key_begin;
  } else {
    PARTITA_ASSERT(empty() || entry.user_key > last_key());
    prefix_size_ =
        empty() ? entry.user_key.size() : std::min(prefix_size_, CommonPrefix(first_key(), entry.user_key));
    begin = static_cast<uint32_t>(keys_.size());
    keys_.append(entry.user_key);
    ++distinct_keys_;
  }
  version_min_ = empty() ? entry.version.value : std::min(version_min_, entry.version.value);
  version_max_ = empty() ? entry.version.value : std::max(version_max_, entry.version.value);
  values_.append(entry.value);
  entries_.push_back({begin, static_cast<uint32_t>(entry.user_key.size()),
                      static_cast<uint32_t>(values_.size()), kind, entry.version});
}

size_t DataBlockBuilder::content_size() const {
  size_t cut = distinct_keys_ * (prefix_size_ + 8);
  return kDataBlockHeaderSize +
         (8 + kSlotSize + 4 + 1 + VersionWidth(version_max_ - version_min_)) * entries_.size() +
         prefix_size_ + (keys_.size() > cut ? keys_.size() - cut : 0) + values_.size();
}

size_t DataBlockBuilder::content_size_with(size_t key_size, size_t value_size) const {
  return content_size() + 8 + kSlotSize + 4 + 1 + 8 + key_size + value_size;
}

void DataBlockBuilder::Finish(std::string* out) {
  PARTITA_ASSERT(!empty());
  const size_t n = entries_.size();
  const unsigned width = VersionWidth(version_max_ - version_min_);
  std::string heads, slots, suffixes, versions, ends, kinds;
  heads.reserve(8 * n);
  uint32_t begin = 0;
  for (const Item& item : entries_) {
    std::string_view tail =
        std::string_view(keys_).substr(item.key_begin + prefix_size_, item.key_size - prefix_size_);
    char head[8];
    StoreBe64(head, HeadOf(tail));
    heads.append(head, 8);
    if ((item.kind & kSameKeyBit) == 0) {
      begin = static_cast<uint32_t>(suffixes.size());
      if (tail.size() > 8) suffixes.append(tail.substr(8));
    }
    AppendLe32(&slots, begin);
    AppendLe16(&slots, static_cast<uint16_t>(tail.size()));
    char delta[8];
    StoreLe64(delta, item.version.value - version_min_);
    versions.append(delta, width);
    AppendLe32(&ends, item.value_end);
    kinds.push_back(static_cast<char>(item.kind));
  }
  AppendLe32(out, static_cast<uint32_t>(n));
  AppendLe32(out, static_cast<uint32_t>(prefix_size_));
  AppendLe32(out, static_cast<uint32_t>(suffixes.size()));
  AppendLe32(out, static_cast<uint32_t>(values_.size()));
  AppendLe64(out, version_min_);
  out->push_back(static_cast<char>(width));
  out->append(7, '\0');
  out->append(heads).append(slots).append(keys_, 0, prefix_size_).append(suffixes);
  out->append(versions).append(ends).append(kinds).append(values_);
  entries_.clear();
  keys_.clear();
  values_.clear();
  distinct_keys_ = 0;
  prefix_size_ = 0;
  version_min_ = version_max_ = 0;
}

// --- Reading ---

uint64_t DataBlock::ValuesBegin(std::string_view content) { return LayoutOf(content.data()).values(); }

DataBlock::DataBlock(std::string_view content) {
  const char* base = content.data();
  const Layout layout = LayoutOf(base);
  count_ = static_cast<uint32_t>(layout.count);
  prefix_size_ = static_cast<uint32_t>(layout.prefix_size);
  heads_ = base + layout.heads();
  slots_ = base + layout.slots();
  prefix_ = base + layout.prefix();
  suffixes_ = base + layout.suffixes();
  columns_ = EntryColumns({.versions = base + layout.versions(),
                           .value_ends = base + layout.value_ends(),
                           .kinds = base + layout.kinds(),
                           .values = base + layout.values(),
                           .end = base + content.size(),
                           .version_min = LoadLe64(base + 16),
                           .version_width = static_cast<unsigned>(layout.width)});
  PARTITA_DEBUG_ASSERT(layout.total() == content.size());
}

Status DataBlock::Validate(std::string_view content) {
  if (content.size() < kDataBlockHeaderSize) return Bad("shorter than its header");
  const Layout layout = LayoutOf(content.data());
  if (layout.count == 0) return Bad("no entries");
  if (layout.width > 8) return Bad("versions wider than 8 bytes");
  for (size_t i = 25; i < kDataBlockHeaderSize; ++i) {
    if (content[i] != 0) return Bad("reserved bytes are not zero");
  }
  // Each field has at most 32 bits, so the sum cannot wrap.
  if (layout.total() != content.size()) return Bad("its sizes do not add up to its size");

  const DataBlock block(content);
  uint32_t value_end = 0;
  for (uint32_t i = 0; i < block.count_; ++i) {
    size_t begin = LoadLe32(block.slots_ + kSlotSize * i);
    size_t rest = LoadLe16(block.slots_ + kSlotSize * i + 4);
    if (layout.prefix_size + rest > kUserKeySizeMax) return Bad("a key that is too long");
    if (rest > 8 && begin + (rest - 8) > layout.suffixes_size) return Bad("a key reaches past the suffixes");
    if (rest < 8 && (block.Head(i) << (8 * rest)) != 0) return Bad("a head is not zero-padded");
    uint32_t end = block.columns_.value_end(i);
    if (end < value_end || end > layout.values_size) return Bad("a value reaches past the values");
    value_end = end;
    EntryKind kind = block.kind(i);
    if (kind != EntryKind::kPut && kind != EntryKind::kTombstone) return Bad("an unknown entry kind");
    if (i == 0) {
      if (block.same_key_as_before(0)) return Bad("the first entry repeats a key");
      continue;
    }
    int order = block.CompareEntries(i - 1, i);
    if (block.same_key_as_before(i)) {
      if (order != 0) return Bad("an entry repeats a key that differs");
      if (block.version(i - 1) <= block.version(i)) return Bad("versions out of order");
    } else if (order >= 0) {
      return Bad("keys out of order");
    }
  }
  if (value_end != layout.values_size) return Bad("values beyond the last entry");
  return Status();
}

Status DataBlock::ValidateEntities() const {
  const size_t of_table = std::min<size_t>(prefix_size_, kTableIdSize);
  const bool one_partition = HasZero({prefix_ + of_table, prefix_size_ - of_table});  // Or less of one.
  for (uint32_t i = 0; i < count_; ++i) {
    if (!one_partition && !IsUserKey(i)) return Bad("a key without a PartitionKey");
    if (value(i).size() < kStoredValueHeaderSize) return Bad("a value without its checksum");
  }
  return Status();
}

// REQUIRES: no zero byte in the prefix behind the table.
bool DataBlock::IsUserKey(uint32_t i) const {
  const size_t rest = LoadLe16(slots_ + kSlotSize * i + 4);
  const std::string_view head(heads_ + 8 * i, std::min<size_t>(rest, 8));
  const size_t of_table = kTableIdSize - std::min<size_t>(prefix_size_, kTableIdSize);
  return head.size() > of_table && (HasZero(head.substr(of_table)) || HasZero(Suffix(i)));
}

std::string_view DataBlock::Suffix(uint32_t i) const {
  size_t rest = LoadLe16(slots_ + kSlotSize * i + 4);
  return {suffixes_ + LoadLe32(slots_ + kSlotSize * i), rest > 8 ? rest - 8 : 0};
}

int DataBlock::CompareEntries(uint32_t a, uint32_t b) const {
  uint64_t head_a = Head(a), head_b = Head(b);
  if (head_a != head_b) return head_a < head_b ? -1 : 1;
  return CompareBeyondHeads(Suffix(a), LoadLe16(slots_ + kSlotSize * a + 4), Suffix(b),
                            LoadLe16(slots_ + kSlotSize * b + 4));
}

int DataBlock::CompareTail(uint32_t i, uint64_t head, std::string_view tail) const {
  uint64_t own = Head(i);
  if (own != head) return own < head ? -1 : 1;
  std::string_view suffix = tail.size() > 8 ? tail.substr(8) : std::string_view();
  return CompareBeyondHeads(Suffix(i), LoadLe16(slots_ + kSlotSize * i + 4), suffix, tail.size());
}

void DataBlock::KeyTo(uint32_t i, std::string* out) const {
  size_t rest = LoadLe16(slots_ + kSlotSize * i + 4);
  out->assign(prefix_, prefix_size_);
  out->append(heads_ + 8 * i, std::min<size_t>(rest, 8));
  if (rest > 8) out->append(suffixes_ + LoadLe32(slots_ + kSlotSize * i), rest - 8);
}

void DataBlock::AloneTo(uint32_t i, std::string* out) const {
  const std::string_view bytes = value(i);
  const Layout layout{
      .count = 1, .prefix_size = key_size(i), .suffixes_size = 0, .values_size = bytes.size(), .width = 0};
  out->resize(layout.total());
  char* const base = out->data();
  std::memset(base, 0, layout.prefix());  // Its key is the prefix: head and slot are empty.
  StoreLe32(base, 1);
  StoreLe32(base + 4, static_cast<uint32_t>(layout.prefix_size));
  StoreLe32(base + 12, static_cast<uint32_t>(bytes.size()));
  StoreLe64(base + 16, version(i).value);
  const size_t rest = layout.prefix_size - prefix_size_;
  char* key = std::copy_n(prefix_, prefix_size_, base + layout.prefix());
  key = std::copy_n(heads_ + 8 * static_cast<size_t>(i), std::min<size_t>(rest, 8), key);
  if (rest > 8) std::copy_n(Suffix(i).data(), rest - 8, key);
  StoreLe32(base + layout.value_ends(), static_cast<uint32_t>(bytes.size()));
  base[layout.kinds()] = static_cast<char>(kind(i));
  std::copy_n(bytes.data(), bytes.size(), base + layout.values());
}

int DataBlock::CompareToPrefix(std::string_view user_key) const {
  size_t shared = std::min<size_t>(user_key.size(), prefix_size_);
  int order = std::memcmp(user_key.data(), prefix_, shared);
  if (order != 0) return order;
  return user_key.size() < prefix_size_ ? -1 : 0;  // A key that ends within the prefix sorts before it.
}

int DataBlock::CompareKey(uint32_t i, std::string_view user_key) const {
  if (int order = CompareToPrefix(user_key); order != 0) return order < 0 ? 1 : -1;
  std::string_view tail = user_key.substr(prefix_size_);
  return CompareTail(i, HeadOf(tail), tail);
}

uint32_t DataBlock::LowerBound(std::string_view user_key) const {
  if (int order = CompareToPrefix(user_key); order != 0) return order < 0 ? 0 : count_;
  std::string_view tail = user_key.substr(prefix_size_);
  const uint64_t head = HeadOf(tail);

  // Branch-free: the compiler makes a conditional move of the step.
  uint32_t base = 0;
  for (uint32_t left = count_; left > 1;) {
    uint32_t half = left / 2;
    base += Head(base + half - 1) < head ? half : 0;
    left -= half;
  }
  base += Head(base) < head ? 1 : 0;

  // Ties on the head: all entries in [base, end of the run]; nearly always at most one.
  uint32_t low = base, high = base;
  for (uint32_t step = 1; high < count_ && Head(high) == head; step *= 2) {
    if (CompareTail(high, head, tail) >= 0) break;
    low = high + 1;
    high = std::min(count_, high + step);
  }
  // The answer is in [low, high]: every entry below `low` is below the key, and `high` is either
  // the end, past the run, or at or above the key.
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (CompareTail(middle, head, tail) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Lookup DataBlock::FindFrom(uint32_t first, std::string_view user_key, Version at_most, uint32_t* at) const {
  uint32_t i = first;
  if (i == count_ || CompareKey(i, user_key) != 0) return {};
  while (version(i) > at_most) {
    if (++i == count_ || !same_key_as_before(i)) return {};
  }
  if (at != nullptr) *at = i;
  Lookup lookup;
  lookup.version = version(i);
  lookup.state = LookupState::kDeleted;
  if (kind(i) == EntryKind::kTombstone) return lookup;
  lookup.state = LookupState::kFound;
  lookup.value = value(i);
  return lookup;
}

}  // namespace partita
