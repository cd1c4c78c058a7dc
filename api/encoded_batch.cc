#include "api/encoded_batch.h"

#include <algorithm>

#include "api/entity_codec.h"
#include "api/etag.h"
#include "api/names.h"
#include "engine/base/assert.h"
#include "engine/base/entity_record.h"
#include "engine/base/user_key.h"

namespace partita {

namespace {

// A reservation is a guess: beyond it memory grows with what is really there.
constexpr size_t kRoomMax = 4u << 20;

// Merge semantics of the service; checks the limits that two valid halves can break together.
Result<std::string> MergeContents(std::string_view user_key, std::string_view base, std::string_view patch) {
  if (base.empty()) return std::string(patch);
  Result<std::string> merged = MergeEntityRecords(base, patch);
  // A record holds more properties than an entity may have, but not as many as two; its bytes are enough for
  // both.
  if (merged.code() == Code::kInvalidArgument) {
    return BrokenRule(Violation::kTooManyProperties, merged.status().message());
  }
  PARTITA_TRY(merged.status());
  PARTITA_ASSIGN(UserKeyParts parts, DecodeUserKey(user_key));
  PARTITA_TRY(ValidateMergedRecord(parts.partition_key, parts.row_key, *merged));
  return merged;
}

Status ApplyCondition(const Write& write, WriteOp* op) {
  bool conditional = write.action == WriteAction::kReplace || write.action == WriteAction::kMerge ||
                     write.action == WriteAction::kDelete;
  if (write.if_match.empty()) {
    if (conditional) op->precondition = Precondition::kPresent;
    return Status();
  }
  if (!conditional) {
    return Status::InvalidArgument("if_match is allowed with replace, merge and delete only");
  }
  ParsedEtag etag = ParseEtag(write.if_match);
  switch (etag.form) {
    case EtagForm::kMalformed:
      return BrokenRule(Violation::kInvalidInput,
                        "if_match is " + QuotedForMessage(write.if_match) +
                            "; it must be '*' or one ETag as a read or write returned it");
    case EtagForm::kAny:
      op->precondition = Precondition::kPresent;
      return Status();
    case EtagForm::kForeign:
      op->precondition = Precondition::kVersionEquals;
      op->expected_version = Version(0);  // No entity has it.
      return Status();
    case EtagForm::kVersion:
      op->precondition = Precondition::kVersionEquals;
      op->expected_version = etag.version;
      return Status();
  }
  return Status();
}

Status CheckEntity(const Write& write) {
  if (write.action != WriteAction::kDelete) return ValidateEntity(write.entity);
  PARTITA_TRY(CheckKey(KeyKind::kPartitionKey, write.entity.partition_key()));
  return CheckKey(KeyKind::kRowKey, write.entity.row_key());
}

}  // namespace

size_t EncodedRoom(uint64_t bytes_bound, size_t operations) {
  constexpr size_t kOverhead = 64;
  return static_cast<size_t>(bytes_bound / 2 + operations * kOverhead);
}

void EncodedBatch::Reserve(size_t operations, size_t bytes) {
  places_.reserve(operations);
  ops_.reserve(operations);
  bytes_.reserve(std::min(bytes, kRoomMax));
}

Status EncodedBatch::Add(const Write& write) {
  if (write.action > WriteAction::kDelete) {
    return Status::InvalidArgument("action is " + std::to_string(static_cast<int>(write.action)) +
                                   ", which is none");
  }
  PARTITA_TRY(CheckEntity(write));
  WriteOp op;
  PARTITA_TRY(ApplyCondition(write, &op));
  switch (write.action) {
    case WriteAction::kInsert:
      op.precondition = Precondition::kAbsent;
      break;
    case WriteAction::kMerge:
    case WriteAction::kInsertOrMerge:
      op.kind = WriteKind::kMerge;
      break;
    case WriteAction::kDelete:
      op.kind = WriteKind::kDelete;
      break;
    case WriteAction::kReplace:
    case WriteAction::kInsertOrReplace:
      break;
  }
  Place place;
  place.key = bytes_.size();
  AppendEntityKey(&bytes_, table_, write.entity);
  place.content = bytes_.size();
  if (op.kind != WriteKind::kDelete) AppendEntityContent(&bytes_, write.entity);
  place.end = bytes_.size();
  places_.push_back(place);
  ops_.push_back(op);
  return Status();
}

// The views are set last, when nothing moves any more.
void EncodedBatch::Link(DurabilityLevel durability) {
  PARTITA_ASSERT(!ops_.empty());
  const std::string_view bytes = bytes_;
  for (size_t i = 0; i < ops_.size(); ++i) {
    const Place& place = places_[i];
    ops_[i].user_key = bytes.substr(place.key, place.content - place.key);
    ops_[i].content = bytes.substr(place.content, place.end - place.content);
  }
  request_.table = table_;
  request_.ops = ops_;
  request_.durability = durability;
  request_.merge = MergeContents;
}

}  // namespace partita
