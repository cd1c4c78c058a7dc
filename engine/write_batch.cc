#include "engine/write_batch.h"

#include <algorithm>
#include <span>

#include "engine/base/assert.h"
#include "engine/base/site.h"
#include "engine/base/stored_value.h"
#include "engine/batch_record.h"
#include "engine/inspect_text.h"
#include "engine/read_view.h"

namespace partita {

namespace {

// Merge results up to this size are made again on the strand; larger ones resolve again.
constexpr size_t kRemergeBytesMax = 4096;

bool NeedsOld(const WriteOp& op) {
  return op.precondition != Precondition::kNone || op.kind == WriteKind::kMerge;
}

}  // namespace

WriteBatch::WriteBatch(const WriteRequest& r) : request(r), bytes(kBatchRecordHeaderSize) {
  for (const WriteOp& op : r.ops) {
    any_old = any_old || NeedsOld(op);
    bytes += op.user_key.size() + op.content.size() + kBatchOperationOverheadMax;
  }
  if (any_old && r.ops.size() > 1) more_.resize(r.ops.size() - 1);
}

// ---- The old state of entities.

std::vector<SoughtTogether> WriteBatch::FindInMemory(const ReadView& view, const LevelSet& levels) {
  const std::span<const WriteOp> ops = request.ops;
  // A transaction that opens a partition looks for none of its rows in the files.
  const bool in_files = ops.size() == 1 || levels.MayHoldPartition(ops[0].user_key, HashKey(ops[0].user_key));
  const bool in_memtables = MayBeInMemtables(view);
  std::vector<SoughtTogether> sought;
  if (in_files && ops.size() > 1) sought.reserve(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!NeedsOld(ops[i])) continue;
    const std::string_view user_key = ops[i].user_key;
    const Lookup newest = in_memtables ? view.GetFromMemtables(user_key, kVersionMax) : Lookup();
    if (newest.state != LookupState::kAbsent || !in_files) {
      Note(i, newest);
      continue;
    }
    SoughtTogether key;
    key.key = {user_key, HashKey(user_key)};
    key.index = i;
    if (ops.size() == 1) {
      BlockPin pin;
      const TableLookup looked = levels.TryGet(user_key, key.key.hash, kVersionMax, &pin);
      if (!looked.needs_io && Note(i, looked.lookup)) break;
    }
    sought.push_back(std::move(key));
  }
  if (ops.size() > 1 && !sought.empty()) {
    const auto rises = [](const SoughtTogether& a, const SoughtTogether& b) {
      return a.key.user_key < b.key.user_key;
    };
    if (!std::is_sorted(sought.begin(), sought.end(), rises)) std::sort(sought.begin(), sought.end(), rises);
    TakeFound(levels, &sought);
  }
  for (const SoughtTogether& key : sought) old(key.index).had_to_be_read = true;
  return sought;
}

// Looks the keys up in the files as far as memory has these, takes down what is found, and leaves the others.
void WriteBatch::TakeFound(const LevelSet& levels, std::vector<SoughtTogether>* sought) {
  levels.TryGetTogether(*sought, kVersionMax);
  for (SoughtTogether& key : *sought) {
    if (key.needs_io || Note(key.index, key.found)) continue;
    key.needs_io = true;
    key.pin.Release();  // Or the cache could not let go of it.
  }
  std::erase_if(*sought, [](const SoughtTogether& key) { return !key.needs_io; });
}

Task<Status> WriteBatch::FindByReading(const LevelSet& levels, std::vector<SoughtTogether> missing,
                                       ReadFaults* faults) {
  // A transaction's rows lie side by side; looked up one by one, each of their blocks would be waited for.
  if (missing.size() > 1) {
    PARTITA_CO_TRY(co_await levels.ReadTogether(missing));
    TakeFound(levels, &missing);
  }
  for (const SoughtTogether& key : missing) {
    const auto& [user_key, hash] = key.key;
    BlockPin pin;
    PARTITA_CO_ASSIGN(Lookup found, co_await levels.Get(user_key, hash, kVersionMax, &pin));
    if (Note(key.index, found)) continue;
    pin.Release();
    PARTITA_CO_ASSIGN(found, co_await levels.Get(user_key, hash, kVersionMax, &pin, BlocksFrom::kDevice));
    (Note(key.index, found) ? faults->transient : faults->damaged_parts).fetch_add(1);
  }
  co_return Status();
}

// Takes down the state of operation `i`'s entity, and what a merge makes of it. False: that fails, as the
// value found is not what was written.
bool WriteBatch::Note(size_t i, const Lookup& found) {
  const WriteOp& op = request.ops[i];
  Old& known = old(i);
  known.state = found.state;
  known.version = found.version;
  if (op.kind != WriteKind::kMerge) return true;
  PARTITA_ASSERT(request.merge != nullptr);
  const bool present = found.state == LookupState::kFound;
  // The result gets a checksum of its own, by which what flipped in the old value would be valid (F51).
  if (present && SiteIsOn("write.merge.value_check") &&
      !StoredValueIntact({op.user_key, found.version, EntryKind::kPut, found.value})) {
    known.merge_status =
        Status::Corruption(UserKeyText(op.user_key) + ": the stored value fails its checksum (F51)");
    return false;
  }
  Result<std::string> merged =
      request.merge(op.user_key, present ? StoredValueContent(found.value) : std::string_view(), op.content);
  known.merge_status = merged.ok() ? Status() : merged.status();
  if (merged.ok()) known.merged = std::move(merged).value();
  return true;
}

// False when no memtable has a key within the batch's, as when it opens a partition or goes on at the end of
// one: a look at a leaf instead of a way down for each of its keys.
bool WriteBatch::MayBeInMemtables(const ReadView& view) const {
  const std::span<const WriteOp> ops = request.ops;
  if (ops.size() == 1 || !any_old) return true;
  const auto [first, last] = std::minmax_element(
      ops.begin(), ops.end(), [](const WriteOp& a, const WriteOp& b) { return a.user_key < b.user_key; });
  return view.MemtablesHoldAnyOf(first->user_key, last->user_key);
}

bool WriteBatch::Renew(const ReadView& view) {
  verdict = Verdict::kAccepted;
  if (!MayBeInMemtables(view)) return false;
  bool changed = false;
  for (size_t i = 0; i < request.ops.size(); ++i) {
    const WriteOp& op = request.ops[i];
    if (!NeedsOld(op)) continue;
    const Lookup newer = view.GetFromMemtables(op.user_key, kVersionMax);
    if (newer.state == LookupState::kAbsent || newer.version <= old(i).version) continue;
    if (op.kind == WriteKind::kMerge) {
      if (newer.value.size() + op.content.size() > kRemergeBytesMax) {
        verdict = Verdict::kResolveAgain;
        return false;
      }
      changed = true;
    }
    Note(i, newer);
  }
  return changed;
}

bool WriteBatch::CheckOps() {
  for (size_t i = 0; i < request.ops.size(); ++i) {
    const WriteOp& op = request.ops[i];
    if (!NeedsOld(op)) continue;
    const Old& known = old(i);
    const bool present = known.state == LookupState::kFound;
    if (op.precondition == Precondition::kAbsent && present) {
      Refuse(i, Status::AlreadyExists("the entity already exists"));
      return false;
    }
    // Existence before tag: a missing row is not found even with a stale tag (table-service 9.3).
    const bool wants_present =
        op.precondition == Precondition::kPresent || op.precondition == Precondition::kVersionEquals;
    if (wants_present && !present) {
      Refuse(i, Status::NotFound("the entity does not exist"));
      return false;
    }
    if (op.precondition == Precondition::kVersionEquals && known.version != op.expected_version) {
      Refuse(i, Status::PreconditionFailed("the entity was changed since the ETag given was read"));
      return false;
    }
    if (op.kind == WriteKind::kMerge && !known.merge_status.ok()) {
      Refuse(i, known.merge_status);
      return false;
    }
  }
  return true;
}

// ---- The log record.

Status WriteBatch::Encode(const std::shared_ptr<Memtable>& into, const BatchRoom& room) {
  size_t size = kBatchRecordHeaderSize;
  for (size_t i = 0; i < request.ops.size(); ++i) {
    size += kBatchOperationOverheadMax + request.ops[i].user_key.size() + ContentOf(i).size();
  }
  if (size > room.record_bytes) {
    return Status::InvalidArgument("the batch takes " + std::to_string(size) + " bytes; at most " +
                                   std::to_string(room.record_bytes) +
                                   " fit (half of the memtable memory, 112 MiB at most)");
  }
  if (const size_t whole = size + Memtable::ReserveBytes(request.ops.size()); whole > room.memory_bytes) {
    return Status::InvalidArgument("the batch has " + std::to_string(request.ops.size()) +
                                   " operations, which take " + std::to_string(whole) +
                                   " bytes of memory with their places in a memtable; there are " +
                                   std::to_string(room.memory_bytes));
  }
  // Kept, the chunks of an earlier one would not come back with its flush, and this batch may wait for those.
  if (memtable != into) memtable.reset();
  uint8_t* memory = into->arena().Allocate(size);
  if (memory == nullptr) return Status::ResourceExhausted("no memtable memory");
  BatchRecordWriter writer(memory, request.table, epoch);
  for (size_t i = 0; i < request.ops.size(); ++i) {
    const bool remove = request.ops[i].kind == WriteKind::kDelete;
    writer.Add(remove ? EntryKind::kTombstone : EntryKind::kPut, request.ops[i].user_key,
               remove ? std::string_view() : ContentOf(i));
  }
  memtable = into;
  encoded_epoch = epoch;
  payload = memory;
  payload_view = writer.Finish();
  return Status();
}

}  // namespace partita
