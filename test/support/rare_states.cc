#include "test/support/rare_states.h"

#include <charconv>

namespace partita {

namespace {

constexpr uint64_t kHeaderSize = 4096;
constexpr std::string_view kManifestPrefix = "meta/shard-";
constexpr std::string_view kCatalogPrefix = "meta/catalog";
constexpr std::string_view kNewMark = ".new-";

constexpr std::string_view kNames[] = {
    "crash between a log write and its flush",
    "crash between log rotation and manifest edit",
    "crash amid writing a table file",
    "crash between a table file's flush and the manifest edit",
    "crash amid a manifest swap",
    "crash amid a catalog swap",
    "crash during a change of layout",
    "crash while a range moves",
    "crash during recovery",
    "crash during recovery, twice running",
    "crash during a backup",
    "crash during a restore",
    "crash while a table is made or dropped",
    "failed log write or flush, then success in another file",
    "failed log write or flush, then another failure",
    "failed table write, then success",
    "failed manifest or catalog write, then success",
    "no space, then success",
    "log not answered by the deadline",
    "read of a table not answered by the deadline",
    "failed recovery, then a good one",
    "torn tail cut",
    "leftover table files removed",
    "write in doubt that had happened",
    "write in doubt that left nothing",
    "scan continued in a later life",
    "backup restored in a later life",
    "unfinished backup refused",
    "damage answered, all else right",
    "damaged store refused",
    "damaged shard left out",
    "damage repaired",
    "damage without a trace",
};
static_assert(std::size(kNames) == kRareStateCount);

// "meta/shard-3-0.new-7" -> "3-0".
std::string_view ShardOf(std::string_view path) {
  path.remove_prefix(kManifestPrefix.size());
  return path.substr(0, path.find('.'));
}

uint32_t LayoutOf(std::string_view shard) {
  uint32_t layout = 0;
  std::from_chars(shard.data(), shard.data() + shard.size(), layout);
  return layout;
}

}  // namespace

std::string_view RareStateName(RareState state) { return kNames[static_cast<size_t>(state)]; }

void RareStates::Add(const RareStates& other) {
  for (size_t i = 0; i < kRareStateCount; ++i) counts_[i] += other.counts_[i];
}

DiskWatch::Kind DiskWatch::KindOf(std::string_view path) {
  if (path.starts_with("log-") && path.ends_with(".log")) return Kind::kLog;
  if (path.starts_with("tables/")) return Kind::kTable;
  if (path.starts_with(kManifestPrefix)) return Kind::kManifest;
  if (path.starts_with(kCatalogPrefix)) return Kind::kCatalog;
  return Kind::kOther;
}

void DiskWatch::Saw(const SimOperationRecord& operation) {
  const Kind kind = KindOf(operation.path);
  if (kind != Kind::kOther) SawTrouble(operation, kind);
  if (operation.op == SimOp::kFlushDirectory && operation.path == "meta" && operation.code == Code::kOk) {
    std::erase_if(swapping_, [](const std::string& key) { return key.ends_with('!'); });
  }
  if (operation.code != Code::kOk) return;
  if (kind == Kind::kLog) SawLog(operation);
  if (kind == Kind::kTable) SawTable(operation);
  if (kind == Kind::kManifest || kind == Kind::kCatalog) SawMeta(operation, kind);
}

// A segment is zeroed, then gets a header that says so; the next header says that it is in use.
void DiskWatch::SawLog(const SimOperationRecord& operation) {
  log_written_ = operation.op == SimOp::kWrite || (log_written_ && operation.op != SimOp::kFlush);
  if (operation.op != SimOp::kWrite || operation.offset != 0) return;
  if (operation.size > kHeaderSize) {
    zeroed_.emplace(operation.path);
  } else if (auto ready = zeroed_.find(operation.path); ready != zeroed_.end()) {
    zeroed_.erase(ready);
  } else {
    const std::string_view directory = operation.path.substr(0, operation.path.find('/'));
    rotated_.emplace(directory.substr(std::string_view("log-").size()));
  }
}

void DiskWatch::SawTable(const SimOperationRecord& operation) {
  if (operation.op == SimOp::kWrite) writing_.emplace(operation.path);
  if (operation.op == SimOp::kFlush && writing_.erase(std::string(operation.path)) > 0) {
    unreferred_.emplace(operation.path);
  }
  if (operation.op == SimOp::kRemove) {
    writing_.erase(std::string(operation.path));
    unreferred_.erase(std::string(operation.path));
  }
}

// KEY.new-G is written, renamed over KEY ("KEY!" from here), and the directory flushed.
void DiskWatch::SawMeta(const SimOperationRecord& operation, Kind kind) {
  const bool is_new = operation.path.find(kNewMark) != std::string_view::npos;
  const std::string key(operation.path.substr(0, operation.path.find('.')));
  if (kind == Kind::kManifest && operation.op == SimOp::kOpen) {
    const uint32_t layout = LayoutOf(ShardOf(operation.path));
    if (layout_ == 0) layout_ = layout;
    resharding_ = resharding_ || layout > layout_;
  }
  if (is_new && operation.op == SimOp::kOpen) swapping_.insert(key);
  if (is_new && operation.op == SimOp::kRename) {
    swapping_.erase(key);
    swapping_.insert(key + "!");
    if (kind == Kind::kManifest) {
      rotated_.erase(std::string(ShardOf(operation.path)));
      unreferred_.clear();  // Other shards' too: counted too rarely rather than too often.
    } else {
      resharding_ = false;
      layout_ = 0;
    }
  }
}

void DiskWatch::SawTrouble(const SimOperationRecord& operation, Kind kind) {
  if (operation.op != SimOp::kWrite && operation.op != SimOp::kFlush) return;
  if (kind == Kind::kCatalog) kind = Kind::kManifest;
  Trouble& trouble = troubles_[kind];
  if (operation.code != Code::kOk) {
    if (trouble.failed && kind == Kind::kLog) states_->Note(RareState::kLogFailedTwice);
    trouble.failed = true;
    trouble.no_space = trouble.no_space || operation.code == Code::kNoSpace;
    trouble.path = operation.path;
    return;
  }
  const bool works = trouble.failed && operation.op == SimOp::kFlush && operation.path != trouble.path;
  if (!works) return;
  if (trouble.no_space) states_->Note(RareState::kNoSpaceThenWorked);
  states_->Note(kind == Kind::kLog     ? RareState::kLogFailedThenWorked
                : kind == Kind::kTable ? RareState::kTableFailedThenWorked
                                       : RareState::kMetaFailedThenWorked);
  trouble = Trouble();
}

bool DiskWatch::Within(RareState crash) const {
  const auto swaps = [this](std::string_view prefix) {
    const auto key = swapping_.lower_bound(prefix);
    return key != swapping_.end() && key->starts_with(prefix);
  };
  switch (crash) {
    case RareState::kCrashInLogWrite:
      return log_written_;
    case RareState::kCrashAfterRotation:
      return !rotated_.empty();
    case RareState::kCrashInTableFile:
      return !writing_.empty();
    case RareState::kCrashBeforeReference:
      return !unreferred_.empty();
    case RareState::kCrashInManifestSwap:
      return swaps(kManifestPrefix);
    case RareState::kCrashInCatalogSwap:
      return swaps(kCatalogPrefix);
    case RareState::kCrashInReshard:
      return resharding_;
    default:
      return false;
  }
}

void DiskWatch::Crashed() {
  for (size_t i = 0; i < kRareStateCount; ++i) {
    const RareState state = static_cast<RareState>(i);
    if (Within(state)) states_->Note(state);
  }
}

}  // namespace partita
