#include "test/support/linearizability.h"

#include <algorithm>
#include <unordered_set>

#include "engine/base/checksum.h"

// The search: reads and refusals that fit the state take their place at once, which loses nothing, as they
// change nothing. Of the acknowledged writes only the one with the lowest version may be next. What branches
// is where a write in doubt goes; states that led nowhere are remembered.

namespace partita {

namespace {

std::string RowText(const HistoryCall::Row& row) {
  if (!row.present) return "absent";
  return "'" + row.content.substr(0, 40) + "' at " + std::to_string(row.version.value);
}

class Search {
 public:
  Search(const std::vector<HistoryCall>& calls, uint32_t rows) : calls_(calls) {
    State start;
    start.done.resize(calls.size());
    start.rows.resize(rows);
    found_ = Explore(std::move(start));
  }
  bool found() const { return found_; }
  std::string Describe() const {
    std::string text = "no order explains these answers; the furthest one has placed " +
                       std::to_string(furthest_) + " of " + std::to_string(calls_.size()) +
                       " calls, to the state";
    for (const Row& row : furthest_state_.rows) text += " [" + RowText(row.value) + "]";
    for (size_t i = 0; i < calls_.size(); ++i) {
      text += "\n  " + std::string(furthest_state_.done[i] ? "placed  " : "left    ") + calls_[i].ToString();
    }
    return text;
  }

 private:
  struct Row {
    HistoryCall::Row value;  // Version 0: of a write in doubt, not seen yet.
    size_t writer = 0;
  };
  struct State {
    std::vector<bool> done;
    std::vector<Row> rows;
    Version last;  // Of the acknowledged writes placed, and of those in doubt that were seen.
    size_t placed = 0;
  };

  static bool InDoubt(const HistoryCall& call) {
    return call.kind == HistoryCall::Kind::kWrite && call.code == Code::kUnknown;
  }
  static bool Acknowledged(const HistoryCall& call) {
    return call.kind == HistoryCall::Kind::kWrite && call.code == Code::kOk;
  }

  bool Explore(State state) {
    if (!PlaceReads(&state)) return true;
    Note(state);
    if (!tried_.insert(HashOf(state)).second) return false;
    const uint64_t limit = EndOfFirst(state);
    size_t next = calls_.size();
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (state.done[i] || !Acknowledged(calls_[i])) continue;
      if (next == calls_.size() || calls_[i].version < calls_[next].version) next = i;
    }
    if (next < calls_.size() && calls_[next].begun < limit && calls_[next].version > state.last) {
      State after = state;
      if (Write(next, &after) && Explore(std::move(after))) return true;
    }
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (state.done[i] || !InDoubt(calls_[i]) || calls_[i].begun >= limit) continue;
      State after = state;
      if (Write(i, &after) && Explore(std::move(after))) return true;
    }
    return false;
  }

  // False when nothing is left to place.
  bool PlaceReads(State* state) {
    for (bool placed = true; placed;) {
      placed = false;
      const uint64_t limit = EndOfFirst(*state);
      for (size_t i = 0; i < calls_.size(); ++i) {
        const HistoryCall& call = calls_[i];
        if (state->done[i] || call.begun >= limit || Acknowledged(call) || InDoubt(call)) continue;
        if (!(call.kind == HistoryCall::Kind::kWrite ? Refused(call, *state) : Sees(call, state))) continue;
        Done(i, state);
        placed = true;
      }
    }
    return EndOfFirst(*state) != UINT64_MAX;
  }

  // When the first of the calls that are left had ended: whatever is placed now began before.
  uint64_t EndOfFirst(const State& state) const {
    uint64_t end = UINT64_MAX;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!state.done[i]) end = std::min(end, calls_[i].ended);
    }
    return end;
  }

  void Done(size_t call, State* state) {
    state->done[call] = true;
    ++state->placed;
  }

  void Note(const State& state) {
    if (state.placed < furthest_) return;
    furthest_ = state.placed;
    furthest_state_ = state;
  }

  enum class Holds : uint8_t { kNo, kYes, kEither };
  static Holds Condition(const HistoryCall::Part& part, const HistoryCall::Row& row) {
    auto as = [](bool holds) { return holds ? Holds::kYes : Holds::kNo; };
    switch (part.precondition) {
      case Precondition::kNone:
        return Holds::kYes;
      case Precondition::kAbsent:
        return as(!row.present);
      case Precondition::kPresent:
        return as(row.present);
      case Precondition::kVersionEquals:
        if (row.present && row.version.value == 0) return Holds::kEither;
        return as(row.present && row.version == part.expected);
    }
    return Holds::kNo;
  }

  static bool Refused(const HistoryCall& call, const State& state) {
    const HistoryCall::Part& part = call.parts[call.failed_part];
    const HistoryCall::Row& row = state.rows[part.row].value;
    if (Condition(part, row) == Holds::kYes) return false;
    if (call.code == Code::kAlreadyExists) return part.precondition == Precondition::kAbsent;
    if (call.code == Code::kNotFound) return !row.present;
    return call.code == Code::kPreconditionFailed && row.present;
  }

  bool Sees(const HistoryCall& call, State* state) {
    State bound = *state;
    for (size_t i = 0; i < call.seen.size(); ++i) {
      const size_t at = call.kind == HistoryCall::Kind::kGet ? call.row : i;
      const HistoryCall::Row& seen = call.seen[i];
      const Row row = bound.rows[at];
      if (seen.present != row.value.present) return false;
      if (!seen.present) continue;
      if (seen.content != row.value.content) return false;
      if (row.value.version.value == 0) Bind(row.writer, seen.version, &bound);
      if (bound.rows[at].value.version != seen.version) return false;
    }
    *state = std::move(bound);
    return true;
  }

  // A write in doubt was seen, and with it its version: that of all its rows (F11).
  static void Bind(size_t writer, Version version, State* state) {
    for (Row& row : state->rows) {
      if (row.value.version.value == 0 && row.writer == writer) row.value.version = version;
    }
    state->last = std::max(state->last, version);
  }

  bool Write(size_t index, State* state) {
    const HistoryCall& call = calls_[index];
    for (const HistoryCall::Part& part : call.parts) {
      if (Condition(part, state->rows[part.row].value) == Holds::kNo) return false;
    }
    for (const HistoryCall::Part& part : call.parts) {
      Row& row = state->rows[part.row];
      if (part.kind == WriteKind::kDelete) {
        row = Row();
        continue;
      }
      const bool appends = part.kind == WriteKind::kMerge && row.value.present;
      row.value.content = appends ? row.value.content + ";" + part.content : part.content;
      row.value.present = true;
      row.value.version = call.version;
      row.writer = index;
    }
    if (Acknowledged(call)) state->last = call.version;
    Done(index, state);
    return true;
  }

  static uint64_t HashOf(const State& state) {
    std::string text;
    for (const bool done : state.done) text += done ? '1' : '0';
    for (const Row& row : state.rows) {
      text +=
          row.value.content + '|' + std::to_string(row.value.version.value) + (row.value.present ? '+' : '-');
    }
    return Hash64(text);
  }

  const std::vector<HistoryCall>& calls_;
  std::unordered_set<uint64_t> tried_;
  size_t furthest_ = 0;
  State furthest_state_;
  bool found_ = false;
};

}  // namespace

std::string HistoryCall::ToString() const {
  std::string text = "client " + std::to_string(client) + " [" + std::to_string(begun) + ", " +
                     (ended == UINT64_MAX ? "..." : std::to_string(ended)) + "]";
  for (const Part& part : parts) {
    text += part.kind == WriteKind::kPut     ? " put r"
            : part.kind == WriteKind::kMerge ? " merge r"
                                             : " delete r";
    text += std::to_string(part.row) + "='" + part.content.substr(0, 24) + "'";
    if (part.precondition == Precondition::kAbsent) text += " if absent";
    if (part.precondition == Precondition::kPresent) text += " if present";
    if (part.precondition == Precondition::kVersionEquals)
      text += " if at " + std::to_string(part.expected.value);
  }
  if (kind == Kind::kWrite) {
    text += ": " + std::string(CodeName(code));
    if (code == Code::kOk) text += " " + std::to_string(version.value);
    if (code != Code::kOk && code != Code::kUnknown) text += " of part " + std::to_string(failed_part);
    return text;
  }
  text += kind == Kind::kGet ? " get r" + std::to_string(row) + ":" : " page:";
  for (const Row& each : seen) text += " " + RowText(each);
  return text;
}

std::optional<std::string> ExplainNotLinearizable(const std::vector<HistoryCall>& calls, uint32_t rows) {
  const Search search(calls, rows);
  if (search.found()) return std::nullopt;
  return search.Describe();
}

}  // namespace partita
