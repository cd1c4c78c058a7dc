#include "bench/lab/key_span.h"

#include <algorithm>
#include <utility>

#include "engine/base/text.h"

namespace partita::lab {
namespace {

constexpr uint64_t kFanOutMax = 256;
// Partitions of a time range that are read one by one; else as a range.
constexpr uint64_t kTimesApartMax = 64;
// 100 ns in a day, hour, minute and second: units 2 to 5 of a time.
constexpr uint64_t kUnitTicks[] = {0, 0, 864'000'000'000, 36'000'000'000, 600'000'000, 10'000'000};

using Part = KeyTemplate::Part;

PropertyValue Below(const PropertyValue& value) {
  if (const DateTime* time = value.if_date_time())
    return DateTime{time->ticks - std::min<uint64_t>(time->ticks, 1)};
  if (const int64_t* number = value.if_int64()) return *number - (*number > INT64_MIN ? 1 : 0);
  if (const int32_t* number = value.if_int32()) return *number - (*number > INT32_MIN ? 1 : 0);
  return value;
}

int64_t WholeOf(const PropertyValue& value) {
  if (const int32_t* number = value.if_int32()) return *number;
  return *value.if_int64();
}

std::string PartText(const Part& part, const KnownFields& known, size_t field, const PropertyValue& value) {
  Record record = known.probe;
  record.values[field] = value;
  std::string text;
  KeyTemplate::AppendPart(part, record, &text);
  return text;
}

// Follows the template from part to part with every way to go on.
class Expansion {
 public:
  Expansion(const KeyTemplate& key, SpansOfTime times, uint64_t ways_max)
      : key_(key), times_(times), ways_max_(ways_max) {}

  std::vector<KeySpan> Run(const KnownFields& known) {
    Follow(0, "", known, 1);
    return std::move(spans_);
  }

 private:
  void End(size_t part, std::string lower, std::string upper, bool ranged, const KnownFields& known) {
    spans_.push_back({.lower = std::move(lower),
                      .upper = std::move(upper),
                      .parts_known = part,
                      .ends_in_range = ranged,
                      .known = known});
  }

  // `ways`: into how many the steps before this one have fanned out together.
  void Follow(size_t at, const std::string& text, const KnownFields& known, uint64_t ways) {
    if (at == key_.parts().size()) {
      spans_.push_back({.lower = text, .exact = true, .parts_known = at, .known = known});
      return;
    }
    const Part& part = key_.parts()[at];
    for (const size_t field : part.fields) {
      const uint64_t choices = known.states[field].choices.size();
      if (choices == 0) continue;
      if (ways * choices > ways_max_) return End(at, text, BehindPrefix(text), false, known);
      return FollowChoices(at, text, known, ways * choices, field);
    }
    const bool all_known =
        !part.salted && std::all_of(part.fields.begin(), part.fields.end(),
                                    [&](size_t field) { return known.states[field].known; });
    if (all_known) {
      std::string longer = text;
      KeyTemplate::AppendPart(part, known.probe, &longer);
      return Follow(at + 1, longer, known, ways);
    }
    if (part.values > 0 && part.values <= kFanOutMax && ways * part.values <= ways_max_) {
      for (uint64_t k = 0; k < part.values; ++k) {
        std::string longer = text;
        KeyTemplate::AppendValue(part, k, &longer);
        Follow(at + 1, longer, known, ways * part.values);
      }
      return;
    }
    const bool ranged = part.fields.size() == 1 && known.states[part.fields[0]].ranged;
    if (!ranged || !OrdersWithin(part, known)) return End(at, text, BehindPrefix(text), false, known);
    if (times_ == SpansOfTime::kEnumerated && FollowTimes(at, text, known, ways)) return;
    const size_t field = part.fields[0];
    const PropertyValue& upper = known.states[field].upper;
    if (part.numbers) return EndInDigits(at, text, known);
    std::string first = text + PartText(part, known, field, known.states[field].lower);
    if (upper.if_string() != nullptr) {
      // What is less may be the beginning of `upper`, and what follows it in the key then be more.
      const bool is_last = at + 1 == key_.parts().size();
      return End(at, std::move(first), is_last ? text + *upper.if_string() : BehindPrefix(text), is_last,
                 known);
    }
    std::string last = text + PartText(part, known, field, Below(upper));
    if (part.direction < 0) std::swap(first, last);
    End(at, std::move(first), BehindPrefix(std::move(last)), true, known);
  }

  // The bounds are cut to the numbers that the field has. Where none of these lies between, no key is asked
  // for, which is a request all the same.
  void EndInDigits(size_t at, const std::string& text, const KnownFields& known) {
    const Part& part = key_.parts()[at];
    const size_t field = part.fields[0];
    const auto [min, max] = *part.numbers;
    const int64_t first = std::max(WholeOf(known.states[field].lower), min);
    const int64_t last = std::min(WholeOf(Below(known.states[field].upper)), max);
    std::string lower = text + PartText(part, known, field, std::min(first, max));
    std::string upper = first > last ? lower : BehindPrefix(text + PartText(part, known, field, last));
    End(at, std::move(lower), std::move(upper), true, known);
  }

  void FollowChoices(size_t at, const std::string& text, const KnownFields& known, uint64_t ways,
                     size_t field) {
    for (const PropertyValue& value : known.states[field].choices) {
      KnownFields chosen = known;
      chosen.states[field].choices.clear();
      chosen.states[field].known = true;
      chosen.probe.values[field] = value;
      Follow(at, text, chosen, ways);
    }
  }

  // One way for each text of a time within the range; false when there are too many.
  bool FollowTimes(size_t at, const std::string& text, const KnownFields& known, uint64_t ways) {
    const Part& part = key_.parts()[at];
    if (!part.is_time || part.format.empty() || part.time_unit_last > 5) return false;
    // Months and years are stepped through by days.
    const uint64_t step = kUnitTicks[std::max(part.time_unit_last, 2)];
    const size_t field = part.fields[0];
    const uint64_t lower = known.states[field].lower.if_date_time()->ticks;
    const uint64_t upper = known.states[field].upper.if_date_time()->ticks;
    if (upper <= lower || (upper - lower) / step > kTimesApartMax) return false;
    const uint64_t ways_now = ways * ((upper - lower) / step + 2);  // A time begun at either end.
    if (ways_now > ways_max_) return false;
    for (uint64_t from = lower; from < upper;) {
      const std::string own = PartText(part, known, field, DateTime{from});
      uint64_t end = from - from % step + step;
      while (end < upper && PartText(part, known, field, DateTime{end}) == own) end += step;
      KnownFields pinned = known;
      pinned.states[field].lower = DateTime{from};
      pinned.states[field].upper = DateTime{std::min(end, upper)};
      pinned.states[field].pinned_unit = part.time_unit_last;
      Follow(at + 1, text + own, pinned, ways_now);
      from = end;
    }
    return true;
  }

  const KeyTemplate& key_;
  const SpansOfTime times_;
  const uint64_t ways_max_;
  std::vector<KeySpan> spans_;
};

}  // namespace

std::vector<KeySpan> SpansOf(const KeyTemplate& key, const KnownFields& known, SpansOfTime times,
                             uint64_t ways_max) {
  return Expansion(key, times, ways_max).Run(known);
}

bool OrdersWithin(const KeyTemplate::Part& part, const KnownFields& known) {
  if (part.direction == 0 || part.fields.size() != 1) return false;
  return !part.is_time || part.format.empty() ||
         part.time_unit_first <= known.states[part.fields[0]].pinned_unit + 1;
}

bool TellsRange(const KeyTemplate& key, size_t part, const KeySpan& span) {
  const Part& of = key.parts()[part];
  const bool is_told = part < span.parts_known || (part == span.parts_known && span.ends_in_range);
  if (!is_told || !of.is_time || of.format.empty()) return false;
  const KnownFields::State& state = span.known.states[of.fields[0]];
  const auto begins_unit = [&](const PropertyValue& time) {
    const auto text = [&](const PropertyValue& at) { return PartText(of, span.known, of.fields[0], at); };
    return text(time) != text(Below(time));
  };
  return state.ranged && begins_unit(state.lower) && begins_unit(state.upper);
}

std::string BehindPrefix(std::string text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
    const char32_t character = DecodeUtf8(text, last)->character;
    text.resize(last);
    // The character behind surrogates, and the last ones, have none that follows in every order of texts:
    // then a wider prefix will do.
    if (character == 0xD7FF || character >= 0xFFFF) continue;
    AppendUtf8Character(&text, character + 1);
    return text;
  }
  return text;
}

}  // namespace partita::lab
