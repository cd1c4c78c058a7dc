#include "test/power/ledger.h"

#include <algorithm>
#include <fstream>
#include <map>

namespace partita {

void Ledger::Add(const Note& note) {
  notes_.push_back(note);
  switch (note.kind) {
    case Note::Kind::kFound:
      acknowledged_[note.writer] = begun_[note.writer] = note.number;
      break;
    case Note::Kind::kBegun:
      begun_[note.writer] = note.number;
      break;
    case Note::Kind::kAcknowledged:
      acknowledged_[note.writer] = note.number;
      ++transactions_;
      break;
    case Note::Kind::kBackupDone:
      ++backups_;
      break;
    case Note::Kind::kRefused:
      ++refused_;
      break;
    case Note::Kind::kGivenUp:
      ++given_up_;
      break;
    default:
      break;
  }
}

// A note carries what the disk had recorded by then. What was acknowledged with `entries` <= cut had reached
// the disk before the cut; what began with `entries` >= cut had not.
Ledger::Bounds Ledger::BoundsAt(uint64_t cut) const {
  Bounds bounds;
  Numbers acknowledged{}, before_barrier{};
  for (const Note& note : notes_) {
    const bool before_cut = note.entries <= cut;
    uint32_t& at_least = bounds.at_least[note.writer];
    switch (note.kind) {
      case Note::Kind::kFound:
        // Whatever its level was: what an opened store shows has been flushed (F29).
        acknowledged[note.writer] = note.number;
        if (before_cut) at_least = note.number;
        break;
      case Note::Kind::kBegun:
        if (note.entries < cut)
          bounds.at_most[note.writer] = std::max(bounds.at_most[note.writer], note.number);
        break;
      case Note::Kind::kAcknowledged:
        acknowledged[note.writer] = note.number;
        if (before_cut && IsPowerWriter(note.writer)) at_least = note.number;
        break;
      case Note::Kind::kBarrierBegun:
        before_barrier = acknowledged;
        break;
      case Note::Kind::kBarrierDone:
        for (uint32_t i = 0; before_cut && i < kWriters; ++i) {
          bounds.at_least[i] = std::max(bounds.at_least[i], before_barrier[i]);
        }
        break;
      default:
        break;
    }
  }
  return bounds;
}

bool Ledger::StoreExists(uint64_t cut) const {
  return std::any_of(notes_.begin(), notes_.end(), [cut](const Note& note) {
    const bool promise = note.kind == Note::Kind::kCreateDone || note.kind == Note::Kind::kBarrierDone ||
                         (note.kind == Note::Kind::kAcknowledged && IsPowerWriter(note.writer));
    return promise && note.entries <= cut;
  });
}

// F9: what is there was begun after what had been acknowledged before in its table, which lies on one shard,
// at whatever level: so that is there too.
std::string Ledger::CheckOrder(const Numbers& found, uint64_t cut) const {
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    Numbers acknowledged{}, before_it{};
    for (const Note& note : notes_) {
      const bool known = note.kind == Note::Kind::kAcknowledged || note.kind == Note::Kind::kFound;
      if (known) acknowledged[note.writer] = note.number;
      const bool begins = note.kind == Note::Kind::kBegun && note.writer == writer;
      if (begins && note.number == found[writer] && note.entries < cut) before_it = acknowledged;
    }
    if (found[writer] == 0) continue;
    for (uint32_t other = 0; other < kWriters; ++other) {
      if (TableOfWriter(other) != TableOfWriter(writer) || found[other] >= before_it[other]) continue;
      return "writer " + std::to_string(writer) + "'s transaction " + std::to_string(found[writer]) +
             " is there, but not " + std::to_string(before_it[other]) + " of writer " +
             std::to_string(other) + ", which was acknowledged before it began (F9)";
    }
  }
  return "";
}

// F19: what was said to be made is there, what was said to be dropped is not.
std::string Ledger::CheckKeeperTables(const Store& store, uint64_t cut) const {
  struct Expected {
    bool may = false, must = false;
  };
  std::map<uint32_t, Expected> tables;
  for (const Note& note : notes_) {
    if (note.kind == Note::Kind::kCreateBegun) tables[note.number].may = note.entries < cut;
    if (note.kind == Note::Kind::kCreateDone) tables[note.number].must = note.entries <= cut;
    if (note.kind == Note::Kind::kDropBegun && note.entries < cut) tables[note.number].must = false;
    if (note.kind == Note::Kind::kDropDone && note.entries <= cut) tables[note.number].may = false;
  }
  for (const auto& [number, expected] : tables) {
    const bool there = store.FindTable(kLoadAccount, KeeperTableName(number)).ok();
    if (there ? expected.may : !expected.must) continue;
    return "table " + KeeperTableName(number) +
           (there ? " is there, but was dropped or not yet made" : " is missing") + " (F19)";
  }
  return "";
}

std::string Ledger::CheckPartition(const PartitionState& state, const Bounds& bounds, uint32_t writer) const {
  if (!state.error.empty()) return "writer " + std::to_string(writer) + ": " + state.error;
  if (state.number >= bounds.at_least[writer] && state.number <= bounds.at_most[writer]) return "";
  return "writer " + std::to_string(writer) + ": found transaction " + std::to_string(state.number) +
         ", but " + std::to_string(bounds.at_least[writer]) + " was durable and " +
         std::to_string(bounds.at_most[writer]) + " begun (F2, F6)";
}

std::string Ledger::CheckWhatIsRead(Store& store, uint64_t cut, uint64_t* refused) const {
  const Bounds bounds = BoundsAt(cut);
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    const PartitionState state = ReadPartition(store, writer);
    *refused += state.refused ? 1 : 0;
    const std::string wrong = state.refused ? "" : CheckPartition(state, bounds, writer);
    if (!wrong.empty()) return wrong;
  }
  return CheckKeeperTables(store, cut);
}

std::string Ledger::Check(Store& store, uint64_t cut) const {
  const Bounds bounds = BoundsAt(cut);
  Numbers found{};
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    const PartitionState state = ReadPartition(store, writer);
    std::string wrong = CheckPartition(state, bounds, writer);
    if (!wrong.empty()) return wrong;
    found[writer] = state.number;
  }
  const std::string order = CheckOrder(found, cut);
  return order.empty() ? CheckKeeperTables(store, cut) : order;
}

std::vector<Ledger::Backup> Ledger::BackupsAt(uint64_t cut) const {
  std::vector<Backup> backups;
  for (const Note& note : notes_) {
    if (note.kind == Note::Kind::kBackupBegun && note.entries < cut) backups.push_back({note.number});
    const bool done = note.kind == Note::Kind::kBackupDone && note.entries <= cut;
    if (done && !backups.empty() && backups.back().number == note.number) backups.back().must = true;
  }
  return backups;
}

// Of writers at any level: a backup holds all that was acknowledged before it was asked for (F68).
std::string Ledger::CheckBackup(Store& store, uint32_t number) const {
  Bounds bounds;
  Numbers acknowledged{}, begun{};
  bool under_way = false;
  for (const Note& note : notes_) {
    const bool its = note.number == number;
    if (note.kind == Note::Kind::kFound) acknowledged[note.writer] = begun[note.writer] = note.number;
    if (note.kind == Note::Kind::kBegun) begun[note.writer] = note.number;
    if (note.kind == Note::Kind::kAcknowledged) acknowledged[note.writer] = note.number;
    if (note.kind == Note::Kind::kBackupBegun && its) bounds.at_least = acknowledged;
    under_way = under_way || (note.kind == Note::Kind::kBackupBegun && its);
    if (under_way) bounds.at_most = begun;
    if (note.kind == Note::Kind::kBackupDone && its) break;
  }
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    const std::string wrong = CheckPartition(ReadPartition(store, writer), bounds, writer);
    if (!wrong.empty()) return "backup " + std::to_string(number) + ": " + wrong;
  }
  return "";
}

Status Ledger::Save(const std::string& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(notes_.data()),
            static_cast<std::streamsize>(notes_.size() * sizeof(Note)));
  out.close();
  return out ? Status() : Status::IoError("cannot write " + path);
}

Result<Ledger> Ledger::Load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Status::IoError("cannot read " + path);
  Ledger ledger;
  for (Note note; in.read(reinterpret_cast<char*>(&note), sizeof note);) ledger.Add(note);
  return ledger;
}

}  // namespace partita
