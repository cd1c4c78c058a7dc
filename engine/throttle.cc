#include "engine/throttle.h"

#include <algorithm>
#include <bit>

#include "engine/base/coding.h"
#include "engine/base/user_key.h"
#include "engine/catalog.h"

namespace partita {

namespace {

constexpr uint64_t kTokenBytes = 1024;
constexpr uint64_t kNanosPerMicro = 1000;

TableId TableOf(std::string_view partition) { return TableId(LoadBe32(partition.data())); }

std::string_view PartitionKeyOf(std::string_view partition) {
  return partition.substr(kTableIdSize, partition.size() - kTableIdSize - 1);
}

bool IsFor(const ThroughputRule& rule, const TableDescriptor& table) {
  return (rule.account.empty() || rule.account == table.account) &&
         (rule.table.empty() || FoldCase(rule.table) == FoldCase(table.name));
}

// How closely a rule without prefix describes a table.
int Closeness(const ThroughputRule& rule) {
  return (rule.table.empty() ? 0 : 2) + (rule.account.empty() ? 0 : 1);
}

}  // namespace

Throttle::Throttle(Clock& clock, EntityCost cost, std::function<Catalog()> catalog)
    : clock_(clock), cost_(cost), catalog_(std::move(catalog)) {
  Publish(std::make_unique<Policy>());
}
Throttle::~Throttle() = default;

// ---- What is in force.

namespace {

// Table ids are dense, so the low bits part them.
size_t FirstSlot(TableId table, size_t slots) { return table.value & (slots - 1); }

}  // namespace

void Throttle::Policy::Index() {
  slots.assign(std::bit_ceil(tables.size() * 2 + 1), 0);
  for (uint32_t i = 0; i < tables.size(); ++i) {
    size_t slot = FirstSlot(tables[i].table, slots.size());
    while (slots[slot] != 0) slot = (slot + 1) & (slots.size() - 1);
    slots[slot] = i + 1;
  }
}

const Throttle::TableLimits* Throttle::Policy::Find(TableId table) const {
  for (size_t slot = FirstSlot(table, slots.size()); slots[slot] != 0;
       slot = (slot + 1) & (slots.size() - 1)) {
    const TableLimits& limits = tables[slots[slot] - 1];
    if (limits.table == table) return &limits;
  }
  return nullptr;
}

Status Throttle::SetTargets(const ThroughputTargets& targets) {
  PARTITA_TRY(CheckThroughputTargets(targets));
  Catalog catalog = targets.IsOff() ? Catalog() : catalog_();
  std::lock_guard lock(mutex_);
  targets_ = targets;
  Publish(Compile(catalog));
  on_.store(!targets.IsOff(), std::memory_order_relaxed);
  return Status();
}

ThroughputTargets Throttle::targets() const {
  std::lock_guard lock(mutex_);
  return targets_;
}

void Throttle::Publish(std::unique_ptr<Policy> policy) {
  static std::atomic<uint64_t> last_number{0};
  policy_.Publish(std::move(policy));
  policy_number_.store(last_number.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Throttle::Learn(TableId table) {
  std::lock_guard lock(mutex_);
  const bool is_known = policy_.With([table](const Policy& policy) { return table < policy.known_below; });
  if (!is_known) Publish(Compile(catalog_()));
}

// Under mutex_.
Throttle::Total Throttle::TotalOf(const ThroughputRule& rule) {
  return {TokenTime(*rule.total_rate), &totals_[{rule.account, FoldCase(rule.table), rule.partition_prefix}]};
}

// Under mutex_.
std::unique_ptr<Throttle::Policy> Throttle::Compile(const Catalog& catalog) {
  auto policy = std::make_unique<Policy>();
  policy->known_below = TableId(catalog.next_table_id);
  std::vector<const ThroughputRule*> rules;  // The closest last.
  for (const ThroughputRule& rule : targets_.rules) rules.push_back(&rule);
  std::sort(rules.begin(), rules.end(),
            [](const auto* a, const auto* b) { return Closeness(*a) < Closeness(*b); });
  for (const TablePtr& known : catalog.tables) {
    const TableDescriptor& table = *known;
    TableLimits of_table{.table = table.id,
                         .limits = {.raw = table.raw,
                                    .partition_token = TokenTime(targets_.partition_rate),
                                    .account_token = TokenTime(targets_.account_rate),
                                    .account = &accounts_[table.account]}};
    Limits& limits = of_table.limits;
    std::map<std::string, PrefixRate> prefixes;
    for (const ThroughputRule* rule : rules) {
      if (!IsFor(*rule, table)) continue;
      if (rule->account_rate) limits.account_token = TokenTime(*rule->account_rate);
      if (rule->partition_prefix.empty()) {
        if (rule->partition_rate) limits.partition_token = TokenTime(*rule->partition_rate);
        if (rule->total_rate) limits.total = TotalOf(*rule);
        continue;
      }
      PrefixRate& rate = prefixes[table.raw ? rule->partition_prefix : OrderedText(rule->partition_prefix)];
      if (rule->partition_rate) rate.partition_token = TokenTime(*rule->partition_rate);
      if (rule->total_rate) rate.total = TotalOf(*rule);
    }
    for (auto& [prefix, rate] : prefixes) {
      rate.prefix = prefix;
      of_table.prefixes.push_back(std::move(rate));
    }
    std::sort(of_table.prefixes.begin(), of_table.prefixes.end(),
              [](const auto& a, const auto& b) { return a.prefix.size() > b.prefix.size(); });
    policy->tables.push_back(std::move(of_table));
  }
  policy->Index();
  return policy;
}

// Filled in where it lies: to copy what was just written field by field takes longer than all the rest.
bool Throttle::LookUp(TableId table, std::string_view partition, Limits* limits) const {
  return policy_.With([&](const Policy& policy) {
    const TableLimits* found = policy.Find(table);
    if (found == nullptr) return table < policy.known_below;
    *limits = found->limits;
    bool has_rate = false, has_total = false;  // Of a longer prefix.
    for (const PrefixRate& rate : found->prefixes) {
      if (!PartitionKeyOf(partition).starts_with(rate.prefix)) continue;
      if (rate.partition_token && !has_rate) limits->partition_token = *rate.partition_token;
      if (rate.total && !has_total) limits->total = *rate.total;
      has_rate = has_rate || rate.partition_token.has_value();
      has_total = has_total || rate.total.has_value();
      if (has_rate && has_total) break;
    }
    return true;
  });
}

bool Throttle::FindLimits(std::string_view partition, Limits* limits) {
  const TableId table = TableOf(partition);
  if (!LookUp(table, partition, limits)) {
    Learn(table);
    LookUp(table, partition, limits);
  }
  return limits->any();
}

// ---- Charges.

uint64_t Throttle::CostOf(bool raw, std::string_view user_key, std::string_view content) const {
  if (cost_ != nullptr && !raw) return cost_(user_key, content);
  return std::max<uint64_t>(1, (user_key.size() + content.size() + kTokenBytes - 1) / kTokenBytes);
}

uint64_t Throttle::CostOf(bool raw, const WriteRequest& request) const {
  uint64_t tokens = 0;
  for (const WriteOp& op : request.ops) {
    tokens += op.kind == WriteKind::kDelete ? 1 : CostOf(raw, op.user_key, op.content);
  }
  return tokens;
}

ThreadLease Throttle::FindLease(std::string_view partition) const {
  return ThreadLease::Find(partition, policy_number_.load(std::memory_order_acquire));
}

Status Throttle::ChargeOps(const WriteRequest& request) {
  const std::string_view partition = PartitionPrefix(request.ops[0].user_key);
  const ThreadLease lease = FindLease(partition);
  if (lease.is_its && lease.TryTake(CostOf(lease.at->raw, request))) [[likely]]
    return Status();
  Limits limits;
  if (!FindLimits(partition, &limits)) return Status();
  return Charge(limits, partition, CostOf(limits.raw, request), lease);
}

bool Throttle::TryChargeEntity(std::string_view user_key, std::string_view content) {
  const std::string_view partition = PartitionPrefix(user_key);
  const ThreadLease lease = FindLease(partition);
  if (lease.is_its && lease.TryTake(CostOf(lease.at->raw, user_key, content))) [[likely]]
    return true;
  Limits limits;
  if (!FindLimits(partition, &limits)) return true;
  const uint64_t tokens = CostOf(limits.raw, user_key, content);
  const BucketTime recent = Recent();
  return TryTakeAhead(limits, partition, tokens, lease, recent) ||
         TryTakeByNow(limits, partition, tokens, recent);
}

// From all or from none. Only who meets another one between the first look and the taking gives back; who
// asks meanwhile for what is given back is refused though it is there.
bool Throttle::TryTake(const Limits& limits, std::string_view partition, uint64_t tokens, BucketTime now) {
  const Total& total = limits.total;
  if (total.token == 0) [[likely]]
    return TryTakeOfTwo(limits, partition, tokens, now);
  const bool is_total_alone = limits.partition_token == 0 && limits.account_token == 0;
  if (is_total_alone) return total.bucket->TryTake(total.token, total.token, tokens * total.token, now);
  if (!total.bucket->Holds(total.token, total.token, now) || !TryTakeOfTwo(limits, partition, tokens, now))
    return false;
  if (total.bucket->TryTake(total.token, total.token, tokens * total.token, now)) return true;
  GiveBackToTwo(limits, partition, tokens);
  return false;
}

PartitionBuckets::Charge Throttle::ChargeOf(const Limits& limits, uint64_t tokens) {
  return {.tokens = tokens,
          .partition_token = limits.partition_token,
          .account = limits.account_token == 0 ? nullptr : limits.account,
          .account_token = limits.account_token};
}

bool Throttle::TryTakeOfTwo(const Limits& limits, std::string_view partition, uint64_t tokens, BucketTime now,
                            BucketTime leave) {
  PartitionBuckets::Charge charge = ChargeOf(limits, tokens);
  charge.leave = leave;
  if (limits.partition_token == 0) {
    const BucketTime token = limits.account_token;
    return charge.account->TryTake(token, charge.Least(token), tokens * token, now);
  }
  return partitions_.TryTake(partition, charge, now) == PartitionBuckets::Verdict::kTaken;
}

void Throttle::GiveBackToTwo(const Limits& limits, std::string_view partition, uint64_t tokens) {
  if (limits.partition_token != 0) {
    partitions_.GiveBack(partition, ChargeOf(limits, tokens));
  } else if (limits.account_token != 0) {
    limits.account->GiveBack(tokens * limits.account_token);
  }
}

// Only for who comes again: of millions of partitions that come once nothing is to be leased.
bool Throttle::TryTakeAhead(const Limits& limits, std::string_view partition, uint64_t tokens,
                            ThreadLease lease, BucketTime now) {
  if (lease.at == nullptr || limits.total.token != 0) return false;
  if (!lease.is_its) {
    lease.Begin(partition, limits.raw);
    return false;
  }
  const uint64_t ahead =
      std::min(kLeaseTokensMax, kLeaseTime / std::max(limits.partition_token, limits.account_token));
  if (ahead <= tokens || !TryTakeOfTwo(limits, partition, ahead, now, kLeaseLeaves)) return false;
  lease.at->tokens += static_cast<uint32_t>(ahead - tokens);
  return true;
}

Status Throttle::Charge(const Limits& limits, std::string_view partition, uint64_t tokens,
                        ThreadLease lease) {
  const BucketTime recent = Recent();
  if (TryTakeAhead(limits, partition, tokens, lease, recent)) return Status();
  return TryTakeByNow(limits, partition, tokens, recent) ? Status() : Refuse(limits, partition, tokens);
}

// The recent time is good enough to see that there is plenty.
bool Throttle::TryTakeByNow(const Limits& limits, std::string_view partition, uint64_t tokens,
                            BucketTime recent) {
  return TryTake(limits, partition, tokens, recent) || TryTake(limits, partition, tokens, Now());
}

uint64_t Throttle::AdvanceOf(const Limits& limits, uint64_t tokens) {
  const BucketTime slowest = std::max({limits.partition_token, limits.account_token, limits.total.token});
  return std::min(tokens, kBurst / slowest);
}

void Throttle::Owe(const Limits& limits, std::string_view partition, uint64_t tokens) {
  const BucketTime now = Now();
  if (const BucketTime token = limits.partition_token; token != 0) {
    partitions_.Take(partition, token, tokens * token, now);
  }
  if (const BucketTime token = limits.account_token; token != 0) {
    limits.account->Take(token, tokens * token, now);
  }
  if (const BucketTime token = limits.total.token; token != 0) {
    limits.total.bucket->Take(token, tokens * token, now);
  }
}

void Throttle::GiveBack(const Limits& limits, std::string_view partition, uint64_t tokens) {
  GiveBackToTwo(limits, partition, tokens);
  if (limits.total.token != 0) limits.total.bucket->GiveBack(tokens * limits.total.token);
}

Status Throttle::Check(const Limits& limits, std::string_view partition, uint64_t tokens) {
  const BucketTime now = Now();
  const bool gives =
      (limits.partition_token == 0 || partitions_.Holds(partition, limits.partition_token, now)) &&
      (limits.account_token == 0 || limits.account->Holds(limits.account_token, limits.account_token, now)) &&
      (limits.total.token == 0 || limits.total.bucket->Holds(limits.total.token, limits.total.token, now));
  return gives ? Status() : Refuse(limits, partition, tokens);
}

namespace {

// What was over, and how a refusal tells of it.
struct Refusal {
  ThrottledBy by = ThrottledBy::kPartition;
  const char* name = "the partition";
  BucketTime wait = 0;
  BucketTime token = 0;
};

}  // namespace

// The one that has the longest wait is what is told of.
Status Throttle::Refuse(const Limits& limits, std::string_view partition, uint64_t tokens) {
  const BucketTime now = Now();
  Refusal refusal;
  const auto consider = [&refusal](const Refusal& other) {
    if (refusal.token == 0 || other.wait > refusal.wait) refusal = other;
  };
  if (const BucketTime token = limits.partition_token; token != 0) {
    consider({ThrottledBy::kPartition, "the partition",
              partitions_.Promise(partition, token, tokens * token, now), token});
  }
  if (const BucketTime token = limits.account_token; token != 0) {
    consider(
        {ThrottledBy::kAccount, "the account", limits.account->Promise(token, tokens * token, now), token});
  }
  if (const BucketTime token = limits.total.token; token != 0) {
    consider({ThrottledBy::kTotal, "the table, or what begins as the partition does,",
              limits.total.bucket->Promise(token, tokens * token, now), token});
  }
  std::atomic<uint64_t>& count = refusal.by == ThrottledBy::kPartition ? refused_by_partition_
                                 : refusal.by == ThrottledBy::kAccount ? refused_by_account_
                                                                       : refused_by_total_;
  count.fetch_add(1, std::memory_order_relaxed);
  constexpr BucketTime kMicro = kBucketTimePerNano * kNanosPerMicro;
  const uint64_t wait_us = std::max<uint64_t>(1, (refusal.wait + kMicro - 1) / kMicro);
  const uint64_t rate = (kBucketSecond + refusal.token / 2) / refusal.token;
  Status refused =
      Status::Throttled(std::string(refusal.name) + " is over its target of " + std::to_string(rate) +
                            " entities a second; try again in " + std::to_string(wait_us) + " us",
                        wait_us);
  return std::move(refused).WithDetail(static_cast<uint16_t>(refusal.by));
}

Throttle::Statistics Throttle::statistics() {
  return {.refused_by_partition = refused_by_partition_.load(std::memory_order_relaxed),
          .refused_by_account = refused_by_account_.load(std::memory_order_relaxed),
          .refused_by_total = refused_by_total_.load(std::memory_order_relaxed),
          .partitions_active = on() ? partitions_.CountActive(Now()) : 0};
}

}  // namespace partita
