#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/write_request.h"

namespace partita {

inline std::string VersionText(Version version) { return std::to_string(version.value); }

// What a crash takes with it.
enum class CrashKind : uint8_t { kNone, kProcess, kPower };
std::string_view CrashKindName(CrashKind kind);

// How the model's merges combine: base, ';' and patch; a long base is replaced by its hash first.
Result<std::string> MergeForModel(std::string_view user_key, std::string_view base, std::string_view patch);

// An independent model of the store: what clients asked and were told, and what therefore may and
// must be there. It knows nothing of the engine but its promises (the F rules).
//
// Every content written carries the number of its write, so what a read returns names its writer.
// Versions order the writes of a shard, because log order is version order; a write in doubt has
// no version until a read shows one.
//
// Time is counted in events. A *life* runs from one compared state to the next: when a crash or
// close is over and everything was read back, Recovered() holds the life's history against it,
// and what was read is the base of the next life.
//
// A value: copy it to follow several crashes of one life. Violations are collected, not asserted,
// so that a planted defect can be expected.
class StoreModel {
 public:
  struct Op {
    std::string key;
    WriteKind kind = WriteKind::kPut;
    Precondition precondition = Precondition::kNone;
    Version expected;
    std::string content;  // For merges the patch.
  };
  struct Row {
    Version version;
    std::string content;
  };
  using Rows = std::map<std::string, Row>;

  // ---- Keys. A key is known from AddKey until its table is gone. `entity` names it across tables
  // of the same name (F17); `group` is what one page reads as one point: a range.
  void AddKey(const std::string& key, std::string entity, uint32_t group, uint32_t shard);
  void SetShard(const std::string& key, uint32_t shard);
  // From now until SetShard the keys of [lower, upper) are on the shard they were on, or on another one
  // (F18).
  void SetAdrift(const std::string& lower, const std::string& upper);
  void RemoveKeys(TableId table);
  uint32_t ShardOf(const std::string& key) const { return keys_.at(key).shard; }
  bool Knows(const std::string& key) const { return keys_.contains(key); }
  std::vector<std::string> Keys() const;
  // The version last seen of the key, or one of before; 0 when it never had one.
  Version LastVersion(const std::string& key) const;
  Version OlderVersion(const std::string& key) const;

  // ---- Writes.
  uint64_t NextNumber() { return ++last_number_; }
  void Begin(uint64_t number, DurabilityLevel level, std::vector<Op> ops);
  void Acknowledge(uint64_t number, Version version);
  // Wholly absent, for good. `why` is kAlreadyExists, kNotFound or kPreconditionFailed for a failed
  // condition, which is a read; anything else says nothing about the entity.
  void Refuse(uint64_t number, Code why, uint32_t failed_op);
  void InDoubt(uint64_t number);

  // ---- Reads: Now() before, then what was seen.
  uint64_t Now() { return ++now_; }
  void SeenRow(const std::string& key, Version version, const std::string& content, uint64_t begun);
  void SeenAbsent(const std::string& key, uint64_t begun);
  // The read was refused as in doubt: something of the key's shard must be.
  void SeenInDoubt(const std::string& key, uint64_t begun);
  // All rows within an interval; those of one group were read at one point.
  void SeenPage(const std::string& lower, const std::string& upper, const Rows& rows, uint64_t begun);

  // What a copy of the store must hold (F68): claimed when the backup begins, complete when it has ended.
  // Only for keys of tables that were there all the while.
  struct CopyClaim {
    std::map<std::string, uint32_t> shards;  // Of each key.
    uint64_t begun = 0;
  };
  CopyClaim ClaimCopy() { return {{}, Now()}; }
  void AddToClaim(const std::string& key, CopyClaim* claim) const {
    claim->shards[key] = keys_.at(key).shard;
  }
  // The rows of a restored copy, within the life that made it; judged with the life's history.
  void SeenCopy(const CopyClaim& claim, const Rows& rows);
  std::string EntityOf(const std::string& key) const;
  // Writes in doubt of the lives so far that were seen to have happened, and others.
  uint64_t doubts_happened() const { return doubts_happened_; }
  uint64_t doubts_without_trace() const { return doubts_without_trace_; }

  // Everything settled before `begun` is at level power now (F8).
  void Barrier(uint64_t begun);
  void ClosedCleanly();

  // ---- Ends of lives.
  void Crashed(CrashKind kind) { worst_ = std::max(worst_, kind); }
  // Part of what recovery shows, read before it was complete: must be there ever after (F28).
  void SeenDuringRecovery(const std::string& key, const std::optional<Row>& row);
  // What damage may have taken when Recovered() is asked next.
  struct Losses {
    std::set<std::string> unread;  // Keys that answered an error.
    // Shards whose log was damaged at its end perhaps, where nothing proves it (F31): what it held may be
    // gone from some point on, without holes.
    std::set<uint32_t> logs_cut;
    // Shards whose manifest was lost: files that a compaction had let go may be back, and with them what was
    // deleted.
    std::set<uint32_t> files_back;
    // What a repair listed as lost: keys in [lower, upper) with what is above a version.
    struct Listed {
      std::string lower, upper;
      Version above;
    };
    std::vector<Listed> listed;
  };
  void Forgive(Losses losses) { losses_ = std::move(losses); }
  // Everything there is after an open: judged against the life that ended, and the next begins.
  void Recovered(const Rows& rows);
  // What was compared last is taken for what is there now, as nobody wrote since.
  void StartsUnread();
  // Judges the history so far, while the store lives on.
  void CheckHistory();
  // Ranges may change hands now.
  void Resharded();

  const std::vector<std::string>& violations() const { return violations_; }
  void Violation(std::string text);
  std::string DescribeKey(const std::string& key) const;

 private:
  static constexpr uint64_t kNever = UINT64_MAX;
  static constexpr uint32_t kAdriftMin = 1000;

  enum class Answer : uint8_t { kPending, kAcknowledged, kRefused, kInDoubt };
  struct Write {
    uint64_t number = 0;
    DurabilityLevel level = DurabilityLevel::kPower;
    std::vector<Op> ops;
    uint64_t begun = 0;
    uint64_t ended = kNever;
    uint64_t settled = kNever;  // Some answer showed that it happened.
    Answer answer = Answer::kPending;
    Version version;  // 0: not known.
    Version floor;    // The shard had shown this before it began (F18).
    const Op* FindOp(const std::string& key) const;
    bool may_have_happened() const { return answer != Answer::kRefused; }
  };
  enum class Sight : uint8_t { kRow, kAbsent, kPresent, kOtherVersion };
  struct Seen {
    Sight sight;
    Version version;  // kRow: which; kOtherVersion: not this one.
    uint64_t begun = 0;
    uint64_t ended = 0;
  };
  struct Key {
    std::string entity;
    uint32_t group = 0;
    uint32_t shard = 0;
    std::optional<Row> base;
    std::vector<uint64_t> writes;  // Numbers, in the order begun.
    std::vector<Seen> seen;
  };
  struct Page {
    uint32_t group = 0;
    std::string lower, upper;
    std::map<std::string, Version> rows;
    uint64_t begun = 0;
  };
  // A state of a key in version order.
  struct State {
    Version version;
    const Write* write = nullptr;  // Null: the base.
    bool present = false;
    bool content_known = false;
    std::string content;
    uint64_t begun = 0;
    uint64_t settled = 0;
  };
  struct History {
    std::vector<State> states;          // The base first, then by version.
    std::vector<const Write*> unknown;  // May have happened; version not known.
  };

  History HistoryOf(const std::string& name, const Key& key) const;
  void CheckConditions(const std::string& name, const History& history);
  void CheckSeen(const std::string& name, const Key& key, const History& history);
  bool MayHaveSeen(const Seen& seen, const History& history) const;
  void CheckPages();
  void CheckCopies();
  void Expose(const std::string& name, const Key& key, Version version, const std::string& content);
  // Finds who wrote a row and learns the version; false after a violation.
  bool Attribute(const std::string& name, const Key& key, const Row& row, const char* where, bool settles);
  bool Required(const Write& write) const;
  // Whether damage may have taken this state of the key, or anything of it.
  bool Forgiven(const std::string& name, Version version) const;
  bool MayBeBack(const Key& key) const;
  bool Forgiven(const std::string& name) const { return Forgiven(name, Version(UINT64_MAX)); }
  std::map<uint32_t, Version> Cuts(const Rows& rows);
  void RaiseCutsForAbsences(const Rows& rows, std::map<uint32_t, Version>* cuts);
  void CheckSurvival(const Rows& rows, const std::map<uint32_t, Version>& cuts);
  bool AbsenceMayBe(const std::string& name, const History& history, Version floor, const Rows& rows) const;
  void CheckTakenBack(const std::string& name, const Key& key, const History& history, const Rows& rows);
  void StartLife(const Rows& rows);

  std::map<std::string, Key> keys_;
  std::map<uint64_t, Write> writes_;  // Of this life.
  std::vector<Page> pages_;
  std::vector<std::pair<CopyClaim, Rows>> copies_;
  uint64_t doubts_happened_ = 0, doubts_without_trace_ = 0;
  std::map<std::string, std::map<uint64_t, std::string>> exposed_;  // entity -> version -> content.
  std::map<uint32_t, Version> shown_max_;                           // Of each shard (F18).
  Losses losses_;
  std::map<std::string, std::optional<Row>> pinned_;  // Shown by an incomplete recovery.
  uint32_t adrift_ = kAdriftMin;                      // The next name of keys that are no certain shard's.
  CrashKind worst_ = CrashKind::kNone;
  bool closed_cleanly_ = false;
  uint64_t now_ = 0;
  uint64_t last_number_ = 0;
  std::vector<std::string> violations_;
};

}  // namespace partita
