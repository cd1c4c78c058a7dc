#include "engine/base/throughput_targets.h"

#include <algorithm>
#include <charconv>

#include "engine/base/text.h"

namespace partita {

namespace {

constexpr size_t kNameSizeMax = 1024;

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool NamesSame(const ThroughputRule& a, const ThroughputRule& b) {
  return a.account == b.account && a.partition_prefix == b.partition_prefix &&
         std::equal(a.table.begin(), a.table.end(), b.table.begin(), b.table.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

Status CheckRate(std::string_view what, uint64_t rate) {
  if (rate <= kThroughputTargetMax) return Status();
  return Status::InvalidArgument("the target of " + std::string(what) + " is " + std::to_string(rate) +
                                 " entities a second; it is 0 (no limit) to " +
                                 std::to_string(kThroughputTargetMax));
}

Status CheckRule(const ThroughputRule& rule) {
  if (!rule.partition_rate && !rule.account_rate && !rule.total_rate) {
    return Status::InvalidArgument(
        "it sets neither the target of a partition nor that of an account or total");
  }
  if (rule.total_rate && rule.table.empty() && rule.partition_prefix.empty()) {
    return Status::InvalidArgument(
        "a total is one of a table or of partitions that begin alike: such a rule names a table or a "
        "partition "
        "prefix; for a whole account there is the target of an account");
  }
  if (rule.account_rate && !(rule.table.empty() && rule.partition_prefix.empty())) {
    return Status::InvalidArgument(
        "the target of an account is one for all its tables: such a rule names neither a table nor a "
        "partition prefix");
  }
  if (std::max({rule.account.size(), rule.table.size(), rule.partition_prefix.size()}) > kNameSizeMax) {
    return Status::InvalidArgument("a name or prefix is longer than " + std::to_string(kNameSizeMax) +
                                   " bytes, so it is none");
  }
  if (!IsValidUtf8(rule.partition_prefix)) {
    return Status::InvalidArgument("the partition prefix is not UTF-8");
  }
  PARTITA_TRY(CheckRate("a partition", rule.partition_rate.value_or(0)));
  PARTITA_TRY(CheckRate("a total", rule.total_rate.value_or(0)));
  return CheckRate("an account", rule.account_rate.value_or(0));
}

Status NotATarget(std::string_view text) {
  return Status::InvalidArgument(
      "throughput '" + std::string(text) +
      "' is none of off, storage, partition=N,account=N (entities a second, 1 to " +
      std::to_string(kThroughputTargetMax) + "; either may be left out)");
}

}  // namespace

bool ThroughputTargets::IsOff() const {
  const auto limits = [](const ThroughputRule& rule) {
    return rule.partition_rate.value_or(0) != 0 || rule.account_rate.value_or(0) != 0 ||
           rule.total_rate.value_or(0) != 0;
  };
  return partition_rate == 0 && account_rate == 0 && std::none_of(rules.begin(), rules.end(), limits);
}

Status CheckThroughputTargets(const ThroughputTargets& targets) {
  PARTITA_TRY(CheckRate("a partition", targets.partition_rate));
  PARTITA_TRY(CheckRate("an account", targets.account_rate));
  if (targets.rules.size() > kThroughputRulesMax) {
    return Status::InvalidArgument("there are " + std::to_string(targets.rules.size()) +
                                   " throughput rules; at most " + std::to_string(kThroughputRulesMax) +
                                   " are allowed");
  }
  for (size_t i = 0; i < targets.rules.size(); ++i) {
    const std::string which = "throughput rule " + std::to_string(i + 1);
    Status checked = CheckRule(targets.rules[i]);
    if (!checked.ok()) return checked.WithContext(which);
    for (size_t before = 0; before < i; ++before) {
      if (!NamesSame(targets.rules[before], targets.rules[i])) continue;
      return Status::InvalidArgument(which + " is for the same as rule " + std::to_string(before + 1));
    }
  }
  return Status();
}

Result<ThroughputTargets> ParseThroughputTargets(std::string_view text) {
  if (text == "off") return ThroughputTargets::Off();
  if (text == "storage") return ThroughputTargets::Storage();
  ThroughputTargets targets;
  std::string_view rest = text;
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) return NotATarget(text);
    const std::string_view name = part.substr(0, equals);
    const std::string_view figure = part.substr(equals + 1);
    uint64_t* rate = name == "partition" ? &targets.partition_rate
                     : name == "account" ? &targets.account_rate
                                         : nullptr;
    if (rate == nullptr || *rate != 0) return NotATarget(text);
    const auto [end, error] = std::from_chars(figure.data(), figure.data() + figure.size(), *rate);
    const bool is_number = error == std::errc() && end == figure.data() + figure.size();
    if (!is_number || *rate == 0 || *rate > kThroughputTargetMax) return NotATarget(text);
    if (part.size() == rest.size()) return targets;
    rest.remove_prefix(part.size() + 1);
  }
}

std::string ThroughputText(const ThroughputTargets& targets) {
  const ThroughputTargets bare{.partition_rate = targets.partition_rate,
                               .account_rate = targets.account_rate};
  if (bare == ThroughputTargets::Off()) return "off";
  if (bare == ThroughputTargets::Storage()) return "storage";
  std::string text;
  if (bare.partition_rate != 0) text = "partition=" + std::to_string(bare.partition_rate);
  if (bare.account_rate == 0) return text;
  return text + (text.empty() ? "" : ",") + "account=" + std::to_string(bare.account_rate);
}

}  // namespace partita
