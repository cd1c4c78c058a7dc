#include "test/support/store_model.h"

#include <algorithm>
#include <charconv>

#include "engine/base/assert.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

constexpr size_t kMergeBaseMax = 600;

// The write that made this content: the digits after the last ';', or at the start.
uint64_t WriterOf(std::string_view content) {
  size_t from = content.rfind(';');
  std::string_view tail = from == std::string_view::npos ? content : content.substr(from + 1);
  uint64_t number = 0;
  std::from_chars(tail.data(), tail.data() + tail.size(), number);
  return number;
}

std::string Short(std::string_view content) {
  if (content.size() <= 40) return "'" + std::string(content) + "'";
  return "'" + std::string(content.substr(0, 16)) + ".." + std::string(content.substr(content.size() - 20)) +
         "' (" + std::to_string(content.size()) + " bytes)";
}

std::string_view KindName(WriteKind kind) {
  switch (kind) {
    case WriteKind::kPut:
      return "put";
    case WriteKind::kMerge:
      return "merge";
    case WriteKind::kDelete:
      return "delete";
  }
  return "?";
}

}  // namespace

std::string_view CrashKindName(CrashKind kind) {
  switch (kind) {
    case CrashKind::kNone:
      return "no crash";
    case CrashKind::kProcess:
      return "process crash";
    case CrashKind::kPower:
      return "power crash";
  }
  return "?";
}

Result<std::string> MergeForModel(std::string_view, std::string_view base, std::string_view patch) {
  std::string merged(base);
  if (base.size() > kMergeBaseMax) merged = "~" + std::to_string(std::hash<std::string_view>()(base));
  if (!merged.empty()) merged += ';';
  merged += patch;
  return merged;
}

const StoreModel::Op* StoreModel::Write::FindOp(const std::string& key) const {
  for (const Op& op : ops) {
    if (op.key == key) return &op;
  }
  return nullptr;
}

void StoreModel::Violation(std::string text) {
  if (violations_.size() < 20) violations_.push_back(std::move(text));
}

// ---- Keys.

void StoreModel::SetShard(const std::string& key, uint32_t shard) {
  uint32_t& now = keys_.at(key).shard;
  if (now >= kAdriftMin) shown_max_[shard] = std::max(shown_max_[shard], shown_max_[now]);
  now = shard;
}

void StoreModel::SetAdrift(const std::string& lower, const std::string& upper) {
  ++adrift_;
  for (auto key = keys_.lower_bound(lower); key != keys_.end() && (upper.empty() || key->first < upper);
       ++key) {
    shown_max_[adrift_] = std::max(shown_max_[adrift_], shown_max_[key->second.shard]);
    key->second.shard = adrift_;
  }
}

void StoreModel::AddKey(const std::string& key, std::string entity, uint32_t group, uint32_t shard) {
  Key& added = keys_[key];
  added.entity = std::move(entity);
  added.group = group;
  added.shard = shard;
}

void StoreModel::RemoveKeys(TableId table) {
  std::string lower = TableLowerBound(table);
  keys_.erase(keys_.lower_bound(lower), keys_.lower_bound(TableUpperBound(table)));
}

std::vector<std::string> StoreModel::Keys() const {
  std::vector<std::string> names;
  for (const auto& [name, key] : keys_) names.push_back(name);
  return names;
}

Version StoreModel::LastVersion(const std::string& name) const {
  auto found = exposed_.find(keys_.at(name).entity);
  return found == exposed_.end() ? Version() : Version(found->second.rbegin()->first);
}

Version StoreModel::OlderVersion(const std::string& name) const {
  auto found = exposed_.find(keys_.at(name).entity);
  return found == exposed_.end() ? Version(1) : Version(found->second.begin()->first);
}

// ---- Writes.

void StoreModel::Begin(uint64_t number, DurabilityLevel level, std::vector<Op> ops) {
  Write write;
  write.number = number;
  write.level = level;
  write.begun = Now();
  write.floor = shown_max_[keys_.at(ops[0].key).shard];
  for (const Op& op : ops) keys_.at(op.key).writes.push_back(number);
  write.ops = std::move(ops);
  writes_[number] = std::move(write);
}

void StoreModel::Acknowledge(uint64_t number, Version version) {
  Write& write = writes_.at(number);
  write.ended = write.settled = std::min(write.settled, Now());
  write.ended = now_;
  write.answer = Answer::kAcknowledged;
  if (write.version.value != 0 && write.version != version) {
    Violation("write " + std::to_string(number) + " answered version " + VersionText(version) +
              " but was read with " + VersionText(write.version));
  }
  if (version <= write.floor) {
    Violation("write " + std::to_string(number) + " got version " + VersionText(version) + ", not above " +
              VersionText(write.floor) + ", which its shard had shown before (F18)");
  }
  write.version = version;
  auto key = keys_.find(write.ops[0].key);
  if (key == keys_.end()) return;  // The table was dropped meanwhile.
  Version& shown = shown_max_[key->second.shard];
  shown = std::max(shown, version);
}

void StoreModel::Refuse(uint64_t number, Code why, uint32_t failed_op) {
  Write& write = writes_.at(number);
  write.ended = Now();
  write.answer = Answer::kRefused;
  const Op& op = write.ops[failed_op];
  auto key = keys_.find(op.key);
  if (key == keys_.end()) return;
  if (why == Code::kAlreadyExists) {
    key->second.seen.push_back({Sight::kPresent, Version(), write.begun, now_});
    if (op.precondition != Precondition::kAbsent) Violation("AlreadyExists without that condition");
  } else if (why == Code::kNotFound) {
    key->second.seen.push_back({Sight::kAbsent, Version(), write.begun, now_});
    if (op.precondition != Precondition::kPresent && op.precondition != Precondition::kVersionEquals) {
      Violation("write " + std::to_string(number) + ": NotFound without such a condition");
    }
  } else if (why == Code::kPreconditionFailed) {
    key->second.seen.push_back({Sight::kOtherVersion, op.expected, write.begun, now_});
    if (op.precondition != Precondition::kVersionEquals)
      Violation("PreconditionFailed without that condition");
  }
}

void StoreModel::InDoubt(uint64_t number) {
  Write& write = writes_.at(number);
  if (write.answer == Answer::kPending) write.answer = Answer::kInDoubt;
}

// ---- Reads.

void StoreModel::Expose(const std::string& name, const Key& key, Version version,
                        const std::string& content) {
  auto [found, fresh] = exposed_[key.entity].try_emplace(version.value, content);
  if (!fresh && found->second != content) {
    Violation("two states of " + DescribeKey(name) + " share version " + VersionText(version) + ": " +
              Short(content) + " and " + Short(found->second) + " (F17)");
  }
}

bool StoreModel::Attribute(const std::string& name, const Key& key, const Row& row, const char* where,
                           bool settles) {
  Expose(name, key, row.version, row.content);
  if (key.base && key.base->version == row.version) {
    if (key.base->content == row.content) return true;
    Violation(std::string(where) + ": " + DescribeKey(name) + " changed content under its version");
    return false;
  }
  auto found = writes_.find(WriterOf(row.content));
  // Of an earlier life, and brought to light again as what hid it is lost.
  const bool back = Forgiven(name) || MayBeBack(key);
  if (found == writes_.end() && back && WriterOf(row.content) <= last_number_) return true;
  const Op* op = found == writes_.end() ? nullptr : found->second.FindOp(name);
  if (op == nullptr || op->kind == WriteKind::kDelete) {
    Violation(std::string(where) + ": " + DescribeKey(name) + " shows " + Short(row.content) +
              " at version " + VersionText(row.version) + ", which nobody wrote there in this life");
    return false;
  }
  Write& write = found->second;
  if (!write.may_have_happened()) {
    Violation(std::string(where) + ": " + DescribeKey(name) + " shows the refused write " +
              std::to_string(write.number));
    return false;
  }
  if (write.version.value == 0) write.version = row.version;
  if (write.version != row.version) {
    Violation(std::string(where) + ": " + DescribeKey(name) + " shows write " + std::to_string(write.number) +
              " with version " + VersionText(row.version) + " instead of " + VersionText(write.version) +
              " (F11)");
    return false;
  }
  if (settles) write.settled = std::min(write.settled, now_);
  return true;
}

void StoreModel::SeenRow(const std::string& name, Version version, const std::string& content,
                         uint64_t begun) {
  Now();
  auto found = keys_.find(name);
  if (found == keys_.end()) return;
  Key& key = found->second;
  if (!Attribute(name, key, Row{version, content}, "read", /*settles=*/true)) return;
  Version& shown = shown_max_[key.shard];
  shown = std::max(shown, version);
  key.seen.push_back({Sight::kRow, version, begun, now_});
}

void StoreModel::SeenAbsent(const std::string& name, uint64_t begun) {
  Now();
  auto key = keys_.find(name);
  if (key != keys_.end()) key->second.seen.push_back({Sight::kAbsent, Version(), begun, now_});
}

void StoreModel::SeenInDoubt(const std::string& name, uint64_t begun) {
  auto key = keys_.find(name);
  if (key == keys_.end()) return;
  for (uint64_t number : key->second.writes) {
    const Write& write = writes_.at(number);
    if (write.may_have_happened() && write.settled >= begun) return;
  }
  Violation("read: " + DescribeKey(name) + " answered in doubt, but no write of it is (F15)");
}

void StoreModel::SeenPage(const std::string& lower, const std::string& upper, const Rows& rows,
                          uint64_t begun) {
  std::map<uint32_t, Page> pages;
  for (auto key = keys_.lower_bound(lower); key != keys_.end() && (upper.empty() || key->first < upper);
       ++key) {
    Page& page =
        pages.try_emplace(key->second.group, Page{key->second.group, lower, upper, {}, begun}).first->second;
    auto row = rows.find(key->first);
    if (row == rows.end()) {
      SeenAbsent(key->first, begun);
    } else {
      page.rows[key->first] = row->second.version;
    }
  }
  for (const auto& [name, row] : rows) SeenRow(name, row.version, row.content, begun);
  for (auto& [group, page] : pages) pages_.push_back(std::move(page));
}

void StoreModel::Barrier(uint64_t begun) {
  for (auto& [number, write] : writes_) {
    if (write.settled < begun) write.level = DurabilityLevel::kPower;
  }
}

void StoreModel::ClosedCleanly() { closed_cleanly_ = true; }

void StoreModel::SeenDuringRecovery(const std::string& key, const std::optional<Row>& row) {
  pinned_[key] = row;
}

void StoreModel::Resharded() {
  Version all;
  for (const auto& [shard, shown] : shown_max_) all = std::max(all, shown);
  for (uint32_t shard = 0; shard < 16; ++shard) shown_max_[shard] = all;
}

std::string StoreModel::DescribeKey(const std::string& name) const {
  auto key = keys_.find(name);
  if (key == keys_.end()) return "a key of a dropped table";
  std::string text = key->second.entity + " (shard " + std::to_string(key->second.shard) + "; base ";
  text += key->second.base ? VersionText(key->second.base->version) : "absent";
  for (uint64_t number : key->second.writes) {
    const Write& write = writes_.at(number);
    const Op* op = write.FindOp(name);
    text += ", #" + std::to_string(number) + " " + std::string(KindName(op->kind));
    text += write.level == DurabilityLevel::kPower     ? " power"
            : write.level == DurabilityLevel::kProcess ? " process"
                                                       : " memory";
    text += write.answer == Answer::kAcknowledged ? " acknowledged"
            : write.answer == Answer::kRefused    ? " refused"
            : write.answer == Answer::kInDoubt    ? " in doubt"
                                                  : " pending";
    if (write.version.value != 0) text += " " + VersionText(write.version);
  }
  return text + ")";
}

}  // namespace partita
