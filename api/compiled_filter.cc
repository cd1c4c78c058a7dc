#include "api/compiled_filter.h"

#include <algorithm>
#include <cstring>

#include "api/filter_codes.h"
#include "engine/base/assert.h"

namespace partita {
namespace {

constexpr size_t kSharedProbesMax = 32;

}  // namespace

struct CompiledFilter::Row {
  UserKeyParts key;
  Version version;
  std::string_view content;
  std::string_view table_name;
};

// ---- Compiling.

namespace {
// A subtree to be compiled, and where to go on after it. `true_after_right` / `false_after_right`: at the
// start of the subtree compiled just before, which is the right operand of the same `and` / `or`.
struct Work {
  size_t root;
  uint32_t when_true, when_false;
  bool true_after_right = false, false_after_right = false;
};
}  // namespace

// From the last test to the first: a subtree must know where what follows it begins. `entry_` is always
// where the subtree compiled last begins; tests lie in the list in reverse.
CompiledFilter::CompiledFilter(const Filter& filter, Target target, const PropertyNames* names)
    : target_(target), names_(names) {
  const std::vector<FilterNode>& nodes = filter.nodes();
  std::vector<Work> works;
  if (!filter.empty()) works.push_back({nodes.size() - 1, kAccept, kReject});
  while (!works.empty()) {
    Work work = works.back();
    works.pop_back();
    if (work.true_after_right) work.when_true = entry_;
    if (work.false_after_right) work.when_false = entry_;
    const FilterNode& node = nodes[work.root];
    const size_t right = work.root - 1;
    switch (node.kind) {
      case FilterNodeKind::kConstant:
        entry_ = node.truth ? work.when_true : work.when_false;
        break;
      case FilterNodeKind::kNot:
        works.push_back({right, work.when_false, work.when_true});
        break;
      case FilterNodeKind::kAnd:
      case FilterNodeKind::kOr: {
        const bool is_and = node.kind == FilterNodeKind::kAnd;
        works.push_back({right - nodes[right].size, work.when_true, work.when_false, is_and, !is_and});
        works.push_back({right, work.when_true, work.when_false});
        break;
      }
      default:
        entry_ = AddTest(node, work.when_true, work.when_false);
    }
  }
}

uint32_t CompiledFilter::AddTest(const FilterNode& node, uint32_t when_true, uint32_t when_false) {
  Test test{.subject = SubjectOf(node.name), .when_true = when_true, .when_false = when_false};
  if (test.subject == Subject::kMissing) return when_false;
  if (when_true == when_false) return when_true;  // Beside a constant: the test decides nothing.
  if (test.subject == Subject::kProperty) test.probe = ProbeOf(node.name);
  if (node.kind == FilterNodeKind::kProperty) {
    if (test.subject != Subject::kProperty) return when_false;  // No key or Timestamp is a Boolean.
    test.bare = true;
  } else {
    test.accepted = ComparisonOutcome::Accepted(node.op);
    test.only_equality = node.op == ComparisonOp::kEqual || node.op == ComparisonOp::kNotEqual;
    SetConstant(&test, node.value);
  }
  if (test.subject == Subject::kPartitionKey || test.subject == Subject::kRowKey) asks_for_keys_ = true;
  tests_.push_back(std::move(test));
  return static_cast<uint32_t>(tests_.size() - 1);
}

void CompiledFilter::SetConstant(Test* test, const PropertyValue& value) {
  const WidenedConstant widened = Widened(value);
  test->comparable = widened.comparable;
  test->double_code = widened.double_code;
  if (CodeIsExact(value.type())) test->code = OrderedCode(value);
  switch (value.type()) {
    case PropertyType::kString:
      test->bytes = OrderedText(*value.if_string());
      break;
    case PropertyType::kGuid:
      test->bytes.assign(reinterpret_cast<const char*>(value.if_guid()->bytes.data()), kGuidValueSize);
      break;
    case PropertyType::kBinary:
      test->bytes = value.if_binary()->bytes;
      break;
    default:
      break;
  }
}

CompiledFilter::Subject CompiledFilter::SubjectOf(const std::string& name) const {
  if (target_ == Target::kTables) return name == "TableName" ? Subject::kTableName : Subject::kMissing;
  if (name == "PartitionKey") return Subject::kPartitionKey;
  if (name == "RowKey") return Subject::kRowKey;
  if (name == "Timestamp") return Subject::kTimestamp;
  return Subject::kProperty;
}

// Tests of one property share a probe; beyond a few names the search would cost more than it saves.
uint32_t CompiledFilter::ProbeOf(const std::string& name) {
  const auto same = [&name](const PropertyProbe& probe) { return probe.name() == name; };
  const auto end = probes_.begin() + static_cast<ptrdiff_t>(std::min(probes_.size(), kSharedProbesMax));
  const auto found = std::find_if(probes_.begin(), end, same);
  if (found != end) return static_cast<uint32_t>(found - probes_.begin());
  probes_.emplace_back(name, names_);
  return static_cast<uint32_t>(probes_.size() - 1);
}

// ---- Running.

bool CompiledFilter::Matches(const UserKeyParts& key, Version version, std::string_view content) {
  PARTITA_DEBUG_ASSERT(target_ == Target::kEntities);
  return Run({.key = key, .version = version, .content = content});
}

uint64_t CompiledFilter::MatchesOf(std::span<const KeylessRow> rows) {
  PARTITA_ASSERT(rows.size() <= 64);
  PARTITA_ASSERT(!asks_for_keys_);
  if (entry_ < kReject && tests_[entry_].subject == Subject::kProperty) {
    const PropertyProbe& probe = probes_[tests_[entry_].probe];
    for (const KeylessRow& row : rows) probe.Prefetch(row.content);
  }
  uint64_t matching = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool matches = Run({.version = rows[i].version, .content = rows[i].content});
    matching |= uint64_t{matches} << i;
  }
  return matching;
}

bool CompiledFilter::MatchesTable(std::string_view name) {
  PARTITA_ASSERT(target_ == Target::kTables);
  return Run({.table_name = name});  // ASCII, so its ordered text too.
}

bool CompiledFilter::Run(const Row& row) {
  uint32_t at = entry_;
  while (at < kReject) {
    const Test& test = tests_[at];
    at = IsTrue(test, row) ? test.when_true : test.when_false;
  }
  return at == kAccept || met_unreadable_;
}

bool CompiledFilter::IsTrue(const Test& test, const Row& row) {
  Outcome outcome = kUnordered;
  switch (test.subject) {
    case Subject::kProperty:
      return IsTrueOfProperty(test, row.content);
    case Subject::kPartitionKey:
      outcome = CompareText(test, PropertyType::kString, row.key.partition_key);
      break;
    case Subject::kRowKey:
      outcome = CompareText(test, PropertyType::kString, row.key.row_key);
      break;
    case Subject::kTimestamp:
      outcome = CompareCode(test, PropertyType::kDateTime, row.version.value);
      break;
    case Subject::kTableName:
      outcome = CompareText(test, PropertyType::kString, row.table_name);
      break;
    case Subject::kMissing:
      return false;
  }
  return (test.accepted & outcome) != 0;
}

bool CompiledFilter::IsTrueOfProperty(const Test& test, std::string_view content) {
  PropertyProbe& probe = probes_[test.probe];
  const std::optional<PropertyView> property = probe.Find(content);
  if (!property) {
    met_unreadable_ = met_unreadable_ || probe.met_unreadable();
    return false;  // Whatever the operator.
  }
  const PropertyType type = property->type();
  if (test.bare) return type == PropertyType::kBoolean && property->code() != 0;
  const Outcome outcome = CodeIsExact(type) ? CompareCode(test, type, property->code())
                                            : CompareText(test, type, property->ordered_bytes());
  return (test.accepted & outcome) != 0;
}

// A mismatch of types counts as less (spec 11.3).
CompiledFilter::Outcome CompiledFilter::CompareCode(const Test& test, PropertyType type, uint64_t code) {
  if ((test.comparable & BitOf(type)) == 0) return kLess;
  uint64_t constant = test.code;
  if (type == PropertyType::kDouble) {
    constant = test.double_code;
    if (IsNanCode(code) || IsNanCode(constant)) return kUnordered;
    if (code == kNegativeZeroCode) code = kZeroCode;
  }
  return code < constant ? kLess : code > constant ? kGreater : kEqual;
}

CompiledFilter::Outcome CompiledFilter::CompareText(const Test& test, PropertyType type,
                                                    std::string_view text) {
  if ((test.comparable & BitOf(type)) == 0) return kLess;
  if (test.only_equality && text.size() != test.bytes.size()) return kLess;
  const int order = text.compare(test.bytes);
  return order < 0 ? kLess : order > 0 ? kGreater : kEqual;
}

}  // namespace partita
