#include <algorithm>

#include "test/support/store_model.h"

// How the model judges a life: the history of each key in version order against what clients saw,
// and, after a crash, what is there against what had to survive.
//
//  1. Whoever wrote a row that is there has happened, at the row's version.
//  2. Each shard's log ends somewhere: its *cut*. It is at least the highest version among the rows
//     that are there and the writes that this kind of crash must spare. Everything known up to the
//     cut must be there (F6, F9, F12), or something later.
//  3. An absence that only a later delete explains moves the cut to that delete.
//
// The hard case is a write in doubt that left no row: a delete, or one that was overwritten. Its
// version is unknown, so it may explain an absence, and it weakens the checks of its keys.

namespace partita {

namespace {

std::string Number(uint64_t number) { return "write " + std::to_string(number); }

}  // namespace

StoreModel::History StoreModel::HistoryOf(const std::string& name, const Key& key) const {
  History history;
  State base;
  if (key.base) base = {key.base->version, nullptr, true, true, key.base->content, 0, 0};
  base.content_known = true;
  history.states.push_back(base);
  for (uint64_t number : key.writes) {
    const Write& write = writes_.at(number);
    if (!write.may_have_happened()) continue;
    if (write.version.value == 0) {
      history.unknown.push_back(&write);
      continue;
    }
    const Op* op = write.FindOp(name);
    history.states.push_back(
        {write.version, &write, op->kind != WriteKind::kDelete, false, "", write.begun, write.settled});
  }
  std::sort(history.states.begin() + 1, history.states.end(),
            [](const State& a, const State& b) { return a.version < b.version; });
  for (size_t i = 1; i < history.states.size(); ++i) {
    State& state = history.states[i];
    const State& before = history.states[i - 1];
    const Op* op = state.write->FindOp(name);
    state.content_known = op->kind != WriteKind::kMerge || (before.content_known && history.unknown.empty());
    if (!state.content_known) continue;
    if (op->kind == WriteKind::kPut) state.content = op->content;
    if (op->kind != WriteKind::kMerge) continue;
    Result<std::string> merged = MergeForModel(name, before.present ? before.content : "", op->content);
    state.content = std::move(merged).value();
  }
  return history;
}

void StoreModel::CheckConditions(const std::string& name, const History& history) {
  const Key& key = keys_.at(name);
  auto exposed = exposed_.find(key.entity);
  for (size_t i = 1; i < history.states.size(); ++i) {
    const State& state = history.states[i];
    const State& before = history.states[i - 1];
    const Op* op = state.write->FindOp(name);
    if (state.version <= before.version) {
      Violation(Number(state.write->number) + " has the version of another on " + DescribeKey(name));
    }
    if (state.present && state.content_known && exposed != exposed_.end()) {
      auto shown = exposed->second.find(state.version.value);
      if (shown != exposed->second.end() && shown->second != state.content) {
        Violation("wrong content at version " + VersionText(state.version) + " of " + DescribeKey(name) +
                  ": '" + shown->second.substr(0, 60) + "' instead of '" + state.content.substr(0, 60) + "'");
      }
    }
    if (!history.unknown.empty()) continue;
    bool holds = true;
    if (op->precondition == Precondition::kAbsent) holds = !before.present;
    if (op->precondition == Precondition::kPresent) holds = before.present;
    if (op->precondition == Precondition::kVersionEquals)
      holds = before.present && before.version == op->expected;
    if (!holds) {
      Violation(Number(state.write->number) +
                " happened although its condition did not hold (expected version " +
                VersionText(op->expected) + ", before it " +
                (before.present ? VersionText(before.version) : "absent") + ", F16): " + DescribeKey(name));
    }
  }
}

// Whether some state that was there at some moment of the reading looks like that.
bool StoreModel::MayHaveSeen(const Seen& seen, const History& history) const {
  for (size_t i = 0; i < history.states.size(); ++i) {
    const State& state = history.states[i];
    bool gone_before = i + 1 < history.states.size() && history.states[i + 1].settled < seen.begun;
    if (state.begun > seen.ended || gone_before) continue;
    bool matches = false;
    if (seen.sight == Sight::kRow) matches = state.present && state.version == seen.version;
    if (seen.sight == Sight::kAbsent) matches = !state.present;
    if (seen.sight == Sight::kPresent) matches = state.present;
    if (seen.sight == Sight::kOtherVersion) matches = state.present && state.version != seen.version;
    if (matches) return true;
  }
  return false;
}

void StoreModel::CheckSeen(const std::string& name, const Key& key, const History& history) {
  for (const Seen& seen : key.seen) {
    if (MayHaveSeen(seen, history)) continue;
    bool unknown_may = false;
    for (const Write* write : history.unknown) {
      if (write->begun > seen.ended) continue;
      bool deletes = write->FindOp(name)->kind == WriteKind::kDelete;
      if (seen.sight == Sight::kAbsent ? deletes : seen.sight != Sight::kRow && !deletes) unknown_may = true;
    }
    if (unknown_may) continue;
    std::string what = seen.sight == Sight::kRow       ? "version " + VersionText(seen.version)
                       : seen.sight == Sight::kAbsent  ? "absence"
                       : seen.sight == Sight::kPresent ? "presence"
                                                       : "another version than " + VersionText(seen.version);
    Violation("a read or refusal showed " + what + " of " + DescribeKey(name) +
              ", which was so at no moment of it (F14)");
  }
}

// A page is one point: with the highest version it shows, it shows everything up to that (F10, F14).
void StoreModel::CheckPages() {
  for (const Page& page : pages_) {
    Version highest;
    for (const auto& [name, version] : page.rows) highest = std::max(highest, version);
    for (const auto& [name, key] : keys_) {
      if (key.group != page.group || name < page.lower || (!page.upper.empty() && name >= page.upper))
        continue;
      History history = HistoryOf(name, key);
      if (!history.unknown.empty()) continue;
      const State* newest = nullptr;
      for (const State& state : history.states) {
        if (state.version <= highest) newest = &state;
      }
      auto row = page.rows.find(name);
      Version shown = row == page.rows.end() ? Version() : row->second;
      Version due = newest != nullptr && newest->present ? newest->version : Version();
      // An absence may be due to a delete above the highest version shown.
      bool later_delete = false;
      for (const State& state : history.states)
        later_delete = later_delete || (!state.present && state.version > highest);
      if (shown == due || (shown.value == 0 && later_delete)) continue;
      Violation("a page that shows version " + VersionText(highest) + " shows " + VersionText(shown) +
                " instead of " + VersionText(due) + " of " + DescribeKey(name) + " (F10, F14)");
    }
  }
}

void StoreModel::CheckHistory() {
  for (const auto& [name, key] : keys_) {
    if (key.writes.empty() && key.seen.empty()) continue;
    History history = HistoryOf(name, key);
    CheckConditions(name, history);
    CheckSeen(name, key, history);
  }
  CheckPages();
  CheckCopies();
}

// ---- After a crash or close.

bool StoreModel::Required(const Write& write) const {
  if (write.settled == kNever || !write.may_have_happened()) return false;
  if (closed_cleanly_) return write.level != DurabilityLevel::kMemory;
  switch (worst_) {
    case CrashKind::kNone:
      return true;
    case CrashKind::kProcess:
      return write.level != DurabilityLevel::kMemory;
    case CrashKind::kPower:
      return write.level == DurabilityLevel::kPower;
  }
  return true;
}

std::map<uint32_t, Version> StoreModel::Cuts(const Rows& rows) {
  std::map<uint32_t, Version> cuts;
  for (const auto& [name, row] : rows) {
    auto key = keys_.find(name);
    if (key == keys_.end()) continue;
    if (key->second.base && key->second.base->version == row.version) continue;
    Version& cut = cuts[key->second.shard];
    cut = std::max(cut, row.version);
  }
  for (const auto& [number, write] : writes_) {
    if (write.version.value == 0 || !Required(write)) continue;
    auto key = keys_.find(write.ops[0].key);
    if (key == keys_.end() || losses_.logs_cut.contains(key->second.shard)) continue;
    Version& cut = cuts[key->second.shard];
    cut = std::max(cut, write.version);
  }
  return cuts;
}

void StoreModel::RaiseCutsForAbsences(const Rows& rows, std::map<uint32_t, Version>* cuts) {
  for (bool raised = true; raised;) {
    raised = false;
    for (const auto& [name, key] : keys_) {
      if (rows.contains(name)) continue;
      Version& cut = (*cuts)[key.shard];
      History history = HistoryOf(name, key);
      const State* floor = nullptr;
      const State* later_delete = nullptr;
      for (const State& state : history.states) {
        if (state.version <= cut || state.write == nullptr) floor = &state;
        if (state.version > cut && !state.present && later_delete == nullptr) later_delete = &state;
      }
      if (!floor->present || later_delete == nullptr || later_delete->write == nullptr) continue;
      if (Forgiven(name, floor->version)) continue;
      if (AbsenceMayBe(name, history, floor->version, rows)) continue;
      cut = later_delete->version;
      raised = true;
    }
  }
}

// Whether a delete in doubt may have made the key absent after version `floor`. Of a transaction the
// other operations must then have happened as well (F10).
bool StoreModel::AbsenceMayBe(const std::string& name, const History& history, Version floor,
                              const Rows& rows) const {
  for (const Write* write : history.unknown) {
    if (write->FindOp(name)->kind != WriteKind::kDelete) continue;
    bool plausible = true;
    for (const Op& op : write->ops) {
      auto row = rows.find(op.key);
      if (op.kind == WriteKind::kDelete) {
        // Its own absence must hold too, unless something later put it back.
        if (row != rows.end() && row->second.version <= floor) plausible = false;
      } else if (row != rows.end() && row->second.version <= floor) {
        plausible = false;
      }
    }
    if (plausible) return true;
  }
  return false;
}

void StoreModel::CheckSurvival(const Rows& rows, const std::map<uint32_t, Version>& cuts) {
  for (const auto& [name, key] : keys_) {
    History history = HistoryOf(name, key);
    auto cut = cuts.find(key.shard);
    const State* floor = &history.states[0];
    for (const State& state : history.states) {
      if (cut != cuts.end() && state.version <= cut->second) floor = &state;
    }
    if (Forgiven(name, floor->present ? floor->version : Version(UINT64_MAX))) continue;
    if (!floor->present && MayBeBack(key)) continue;
    auto row = rows.find(name);
    std::string after = " after " + std::string(CrashKindName(worst_)) +
                        (closed_cleanly_ ? " following a clean close: " : ": ") + DescribeKey(name);
    if (row != rows.end()) {
      if (row->second.version < floor->version) {
        Violation((floor->present ? "lost version " : "revived over the deletion ") +
                  VersionText(floor->version) + ", shows " + VersionText(row->second.version) + " (F12)" +
                  after);
      }
    } else if (floor->present && !AbsenceMayBe(name, history, floor->version, rows)) {
      Violation("lost version " + VersionText(floor->version) + ", shows nothing (F12)" + after);
    }
    if (!Forgiven(name) && !losses_.logs_cut.contains(key.shard)) CheckTakenBack(name, key, history, rows);
  }
}

// A key that is adrift may be of such a shard.
bool StoreModel::MayBeBack(const Key& key) const {
  return losses_.files_back.contains(key.shard) || (key.shard >= kAdriftMin && !losses_.files_back.empty());
}

bool StoreModel::Forgiven(const std::string& name, Version version) const {
  if (losses_.unread.contains(name)) return true;
  return std::any_of(losses_.listed.begin(), losses_.listed.end(), [&](const Losses::Listed& lost) {
    return name >= lost.lower && (lost.upper.empty() || name < lost.upper) && version > lost.above;
  });
}

// What a read or refusal showed and only writes of required levels can explain stays (F13).
void StoreModel::CheckTakenBack(const std::string& name, const Key& key, const History& history,
                                const Rows& rows) {
  for (const Seen& seen : key.seen) {
    if (seen.sight == Sight::kRow) continue;  // Settled its write.
    bool shows_absent = seen.sight == Sight::kAbsent;
    const State* before = &history.states[0];
    for (const State& state : history.states) {
      if (state.settled < seen.begun) before = &state;
    }
    bool explained = shows_absent ? !before->present : before->present && before->version != seen.version;
    if (seen.sight == Sight::kPresent) explained = before->present;
    if (explained) continue;
    bool spared = true;
    size_t candidates = 0;
    auto consider = [&](const Write& write) {
      if (write.begun > seen.ended) return;
      if (shows_absent != (write.FindOp(name)->kind == WriteKind::kDelete)) return;
      ++candidates;
      Write settled = write;
      settled.settled = seen.ended;
      spared = spared && Required(settled);
    };
    for (const State& state : history.states) {
      if (state.write != nullptr && state.version > before->version) consider(*state.write);
    }
    for (const Write* write : history.unknown) consider(*write);
    if (candidates == 0 || !spared) continue;
    auto row = rows.find(name);
    bool back = row != rows.end() && row->second.version <= before->version;
    if (!shows_absent) {
      back = back || (row == rows.end() && !before->present && candidates == 1 && [&] {
               for (uint64_t number : key.writes) {
                 const Write& write = writes_.at(number);
                 if (write.may_have_happened() && write.FindOp(name)->kind == WriteKind::kDelete)
                   return false;
               }
               return true;
             }());
    }
    if (back) {
      Violation(std::string("taken back: a read or refusal had shown ") +
                (shows_absent ? "the absence of " : "a newer state of ") + DescribeKey(name) +
                " (F13), after " + std::string(CrashKindName(worst_)));
    }
  }
}

void StoreModel::Recovered(const Rows& rows) {
  Now();
  bool attributed = true;
  for (const auto& [name, row] : rows) {
    auto key = keys_.find(name);
    if (key == keys_.end()) {
      Violation("recovered: a row of no known key, '" + row.content.substr(0, 40) + "'");
      continue;
    }
    attributed = Attribute(name, key->second, row, "recovered", /*settles=*/false) && attributed;
  }
  for (const auto& [name, row] : pinned_) {
    auto now = rows.find(name);
    bool same = row ? now != rows.end() && now->second.version == row->version : now == rows.end();
    if (keys_.contains(name) && !same) {
      Violation("an interrupted recovery had shown " + (row ? VersionText(row->version) : "absence") +
                " of " + DescribeKey(name) + ", now there is " +
                (now == rows.end() ? "absence" : VersionText(now->second.version)) + " (F28)");
    }
  }
  if (attributed) {
    CheckHistory();
    std::map<uint32_t, Version> cuts = Cuts(rows);
    RaiseCutsForAbsences(rows, &cuts);
    CheckSurvival(rows, cuts);
  }
  StartLife(rows);
}

void StoreModel::StartsUnread() {
  Rows rows;
  for (const auto& [name, key] : keys_) {
    if (key.base) rows[name] = *key.base;
  }
  StartLife(rows);
}

void StoreModel::StartLife(const Rows& rows) {
  for (auto& [name, key] : keys_) {
    key.writes.clear();
    key.seen.clear();
    key.base.reset();
    auto row = rows.find(name);
    if (row == rows.end()) continue;
    key.base = row->second;
    Version& shown = shown_max_[key.shard];
    shown = std::max(shown, row->second.version);
  }
  for (const auto& [number, write] : writes_) {
    if (write.answer != Answer::kInDoubt) continue;
    ++(write.version.value != 0 ? doubts_happened_ : doubts_without_trace_);
  }
  writes_.clear();
  copies_.clear();
  pages_.clear();
  pinned_.clear();
  losses_ = Losses();
  worst_ = CrashKind::kNone;
  closed_cleanly_ = false;
}

}  // namespace partita
