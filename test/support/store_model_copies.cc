#include <algorithm>

#include "test/support/store_model.h"

// How the model judges a copy of the store (F68): a prefix of each shard's order with whole transactions,
// and in it everything that was settled before the backup began.

namespace partita {

std::string StoreModel::EntityOf(const std::string& key) const {
  auto found = keys_.find(key);
  return found == keys_.end() ? "?" : found->second.entity;
}

void StoreModel::SeenCopy(const CopyClaim& claim, const Rows& rows) {
  Now();
  Rows known;
  for (const auto& [name, row] : rows) {
    auto key = keys_.find(name);
    if (key == keys_.end() || !claim.shards.contains(name)) continue;
    // What lies in a table file is durable, so a copy settles its writer (F15).
    if (!Attribute(name, key->second, row, "copy", /*settles=*/true)) return;
    known[name] = row;
  }
  copies_.emplace_back(claim, std::move(known));
}

void StoreModel::CheckCopies() {
  for (const auto& [claim, rows] : copies_) {
    std::map<uint32_t, Version> cuts;
    for (const auto& [name, shard] : claim.shards) {
      auto key = keys_.find(name);
      if (key == keys_.end()) continue;  // The table was dropped since.
      Version& cut = cuts[shard];
      if (auto row = rows.find(name); row != rows.end()) cut = std::max(cut, row->second.version);
      for (const State& state : HistoryOf(name, key->second).states) {
        if (state.settled < claim.begun) cut = std::max(cut, state.version);
      }
    }
    for (const auto& [name, shard] : claim.shards) {
      auto key = keys_.find(name);
      if (key == keys_.end()) continue;
      History history = HistoryOf(name, key->second);
      const State* due = &history.states[0];
      bool later_delete = false;
      for (const State& state : history.states) {
        if (state.version <= cuts[shard]) due = &state;
        later_delete = later_delete || (!state.present && state.version > due->version);
      }
      auto row = rows.find(name);
      Version shown = row == rows.end() ? Version() : row->second.version;
      Version must = due->present ? due->version : Version();
      // A delete above the cut, known or in doubt, may be in the copy, and nothing after it.
      bool deleted = shown.value == 0 && (later_delete || AbsenceMayBe(name, history, due->version, rows));
      if (shown == must || deleted || !history.unknown.empty()) continue;
      Violation("a copy shows " + VersionText(shown) + " instead of " + VersionText(must) + " of " +
                DescribeKey(name) + " although its shard is there up to " + VersionText(cuts[shard]) +
                " (F68, F10)");
    }
  }
}

}  // namespace partita
