#include "api/aggregator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "api/filter_codes.h"
#include "engine/base/assert.h"
#include "engine/base/coding.h"

namespace partita {

namespace {

constexpr size_t kNoSlot = SIZE_MAX;

// Kinds in the order of query_options.h.
int KindOf(PropertyType type) {
  switch (type) {
    case PropertyType::kBoolean:
      return 0;
    case PropertyType::kInt32:
    case PropertyType::kInt64:
    case PropertyType::kDouble:
      return 1;
    case PropertyType::kDateTime:
      return 2;
    case PropertyType::kGuid:
      return 3;
    case PropertyType::kString:
      return 4;
    case PropertyType::kBinary:
      break;
  }
  return 5;
}

template <typename T>
int Compare(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// Exactly, where a conversion of the integer would round.
int CompareIntegerToDouble(int64_t integer, double number) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (number >= kTwoTo63) return -1;
  if (number < -kTwoTo63) return 1;
  const auto whole = static_cast<int64_t>(number);
  if (integer != whole) return Compare(integer, whole);
  return Compare(0.0, number - static_cast<double>(whole));
}

uint64_t CodeOf(std::string_view raw) { return LoadLe64(raw.data()); }

int CompareNumbers(PropertyType a_type, uint64_t a, PropertyType b_type, uint64_t b) {
  const bool a_is_double = a_type == PropertyType::kDouble;
  const bool b_is_double = b_type == PropertyType::kDouble;
  if (a_is_double == b_is_double) return Compare(a, b);
  return a_is_double ? -CompareIntegerToDouble(Int64FromOrderedCode(b), DoubleFromOrderedCode(a))
                     : CompareIntegerToDouble(Int64FromOrderedCode(a), DoubleFromOrderedCode(b));
}

int CompareRaw(PropertyType a_type, std::string_view a, PropertyType b_type, std::string_view b) {
  const int kinds = Compare(KindOf(a_type), KindOf(b_type));
  if (kinds != 0) return kinds;
  if (!CodeIsExact(a_type)) return a.compare(b);
  if (KindOf(a_type) != 1) return Compare(CodeOf(a), CodeOf(b));
  return CompareNumbers(a_type, CodeOf(a), b_type, CodeOf(b));
}

bool IsNan(const PropertyView& value) {
  return value.type() == PropertyType::kDouble && IsNanCode(value.code());
}

}  // namespace

// ---- CompensatedSum.

void CompensatedSum::Add(double value) {
  const double sum = sum_ + value;
  lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
  sum_ = sum;
}

void CompensatedSum::Add(const CompensatedSum& other) {
  Add(other.sum_);
  lost_ += other.lost_;
}

// Beyond the finite numbers what was lost is no number.
double CompensatedSum::value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

// ---- Extreme.

bool Extreme::Add(const PropertyView& value) {
  if (IsNan(value)) return false;
  if (type_) {
    int order = CompareRaw(value.type(), value.raw(), *type_, raw_);
    if (which_ == Which::kGreatest) order = -order;
    // Of equal numbers the narrower type, so that the order of the rows does not matter.
    if (order > 0 || (order == 0 && value.type() >= *type_)) return true;
  }
  type_ = value.type();
  raw_.assign(value.raw());
  return true;
}

void Extreme::Add(const Extreme& other) {
  if (other.type_) Add(PropertyView({}, *other.type_, other.raw_));
}

std::optional<PropertyValue> Extreme::value() const {
  if (!type_) return std::nullopt;
  return PropertyView({}, *type_, raw_).ToValue();
}

// ---- Aggregator.

Aggregator::Aggregator(std::vector<AggregateOf> wanted) : wanted_(std::move(wanted)) {
  for (const AggregateOf& one : wanted_) {
    if (one.kind == AggregateKind::kCount && one.property.empty()) {
      slot_of_.push_back(kNoSlot);
      continue;
    }
    const auto same = [&one](const Slot& slot) { return slot.probe.name() == one.property; };
    auto slot = std::find_if(slots_.begin(), slots_.end(), same);
    if (slot == slots_.end()) {
      slots_.push_back({.probe = PropertyProbe(one.property, nullptr)});
      slot = std::prev(slots_.end());
      if (one.property == "PartitionKey") slot->subject = Subject::kPartitionKey;
      if (one.property == "RowKey") slot->subject = Subject::kRowKey;
      if (one.property == "Timestamp") slot->subject = Subject::kTimestamp;
      needs_keys_ =
          needs_keys_ || slot->subject == Subject::kPartitionKey || slot->subject == Subject::kRowKey;
    }
    slot->sums = slot->sums || one.kind == AggregateKind::kSum;
    slot->finds_least = slot->finds_least || one.kind == AggregateKind::kMin;
    slot->finds_greatest = slot->finds_greatest || one.kind == AggregateKind::kMax;
    slot_of_.push_back(static_cast<size_t>(slot - slots_.begin()));
  }
}

void Aggregator::Add(std::string_view partition_key, std::string_view row_key, Version version,
                     std::string_view content) {
  ++count_;
  for (Slot& slot : slots_) {
    switch (slot.subject) {
      case Subject::kProperty:
        if (const auto value = slot.probe.Find(content)) Take(&slot, *value);
        break;
      case Subject::kPartitionKey:
        Take(&slot, PropertyView({}, PropertyType::kString, partition_key));
        break;
      case Subject::kRowKey:
        Take(&slot, PropertyView({}, PropertyType::kString, row_key));
        break;
      case Subject::kTimestamp: {
        char ticks[sizeof(uint64_t)];
        StoreLe64(ticks, version.value);
        Take(&slot, PropertyView({}, PropertyType::kDateTime, {ticks, sizeof ticks}));
      }
    }
  }
}

void Aggregator::AddKeyless(std::span<const KeylessRow> rows, uint64_t wanted) {
  PARTITA_DEBUG_ASSERT(!needs_keys_);
  if (slots_.empty()) {
    count_ += static_cast<uint64_t>(std::popcount(wanted));
    return;
  }
  for (const Slot& slot : slots_) {
    if (slot.subject != Subject::kProperty) continue;
    for (uint64_t left = wanted; left != 0; left &= left - 1) {
      slot.probe.Prefetch(rows[static_cast<size_t>(std::countr_zero(left))].content);
    }
  }
  for (uint64_t left = wanted; left != 0; left &= left - 1) {
    const KeylessRow& row = rows[static_cast<size_t>(std::countr_zero(left))];
    Add({}, {}, row.version, row.content);
  }
}

bool Aggregator::met_unreadable() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& slot) { return slot.probe.met_unreadable(); });
}

void Aggregator::Take(Slot* slot, const PropertyView& value) {
  ++slot->present;
  if (slot->sums) {
    switch (value.type()) {
      case PropertyType::kInt32:
      case PropertyType::kInt64:
        slot->integer_sum += Int64FromOrderedCode(value.code());
        ++slot->integers;
        break;
      case PropertyType::kDouble:
        slot->double_sum.Add(DoubleFromOrderedCode(value.code()));
        ++slot->doubles;
        break;
      default:
        break;
    }
  }
  if (!slot->finds_least && !slot->finds_greatest) return;
  bool ordered = true;
  if (slot->finds_least) ordered = slot->least.Add(value);
  if (slot->finds_greatest) ordered = slot->greatest.Add(value);
  if (!ordered) ++slot->not_ordered;
}

void Aggregator::Merge(const Aggregator& other) {
  PARTITA_ASSERT(other.slots_.size() == slots_.size());
  count_ += other.count_;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& mine = slots_[i];
    const Slot& its = other.slots_[i];
    mine.present += its.present;
    mine.not_ordered += its.not_ordered;
    mine.integers += its.integers;
    mine.doubles += its.doubles;
    mine.integer_sum += its.integer_sum;
    mine.double_sum.Add(its.double_sum);
    mine.least.Add(its.least);
    mine.greatest.Add(its.greatest);
  }
}

void Aggregator::Sum(const Slot& slot, AggregateValue* out) {
  out->taken = slot.integers + slot.doubles;
  out->passed_over = slot.present - out->taken;
  if (out->taken == 0) return;
  if (slot.doubles > 0) {
    CompensatedSum sum = slot.double_sum;
    if (slot.integers > 0) sum.Add(static_cast<double>(slot.integer_sum));
    out->value = sum.value();
    return;
  }
  using Int64 = std::numeric_limits<int64_t>;
  out->exact = slot.integer_sum >= Int64::min() && slot.integer_sum <= Int64::max();
  if (out->exact) {
    out->value = static_cast<int64_t>(slot.integer_sum);
  } else {
    out->value = static_cast<double>(slot.integer_sum);
  }
}

AggregateAnswer Aggregator::Answer() const {
  AggregateAnswer answer;
  answer.count = count_;
  for (size_t i = 0; i < wanted_.size(); ++i) {
    AggregateValue value{.of = wanted_[i]};
    const Slot* slot = slot_of_[i] == kNoSlot ? nullptr : &slots_[slot_of_[i]];
    switch (wanted_[i].kind) {
      case AggregateKind::kCount:
        value.taken = slot == nullptr ? count_ : slot->present;
        value.value = static_cast<int64_t>(value.taken);
        break;
      case AggregateKind::kSum:
        Sum(*slot, &value);
        break;
      case AggregateKind::kMin:
      case AggregateKind::kMax:
        value.value = wanted_[i].kind == AggregateKind::kMin ? slot->least.value() : slot->greatest.value();
        value.passed_over = slot->not_ordered;
        value.taken = slot->present - slot->not_ordered;
    }
    answer.values.push_back(std::move(value));
  }
  return answer;
}

}  // namespace partita
