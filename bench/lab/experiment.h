#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/entity.h"
#include "bench/lab/imported_records.h"
#include "bench/lab/key_template.h"
#include "bench/lab/record.h"
#include "engine/base/throughput_targets.h"

namespace partita::lab {

// A key-layout experiment as its file says it, checked (experiment_file.h). Three things are kept apart: what
// the application means (fields, operations), how that becomes keys and entities (layouts), and when it
// happens (arrival). Plain values.

// How a field of a record gets its values.
enum class Distribution : uint8_t {
  kConstant,  // `text`, or `number`.
  kSequence,  // start + record * step.
  kClock,     // A DateTime: start + record * step.
  kUniform,   // 0 to n - 1, each as likely.
  kZipf,      // 0 to n - 1, k in proportion to 1 / (k + 1)^theta.
  kWeighted,  // One of `choices`.
  kNormal,    // A Double, mean and sd.
  kText,      // Words, `text_size` characters.
  kColumn,    // Of the imported file: that of row `record` modulo their number.
  kTemplate,  // Text made of other fields.
};

// Whether numbers from min to max all have so many digits, with leading zeros and without a sign.
bool FitDigits(std::pair<int64_t, int64_t> range, uint64_t digits, uint64_t base);

// A generalised Pareto distribution from 0 on: `scale` * (u^-shape - 1) / shape for u in (0, 1].
struct Pareto {
  double shape = 1, scale = 1;
};

struct Field {
  std::string name;
  Distribution distribution = Distribution::kConstant;
  std::string text;             // kConstant.
  uint64_t n = 0;               // kUniform, kZipf.
  double theta = 0.99;          // kZipf.
  double mean = 0, sd = 1;      // kNormal.
  int64_t start = 0, step = 1;  // kSequence; kClock in ticks of 100 ns.
  double swing = 0;             // kNormal: the mean goes up and down by it as a sine over a day
  std::optional<size_t> clock;  // of this time, highest at noon.
  double rhythm = 0;          // kClock: records are denser by day, by this share, and as much rarer by night.
  double late_share = 0;      // kClock: so many of the records are late, by this long on average,
  int64_t late_ticks = 0;     // so that their time lies before that of their neighbours.
  KeyTemplate text_template;  // kTemplate.
  std::optional<size_t> per;  // Drawn once for each value of that field, not for each record.
  uint32_t text_size = 0;     // kText: the median.
  double text_sigma = 0;      // kText: of a log-normal size; 0: all alike.
  std::optional<Pareto> text_pareto;  // kText: sizes drawn so, up to `text_size`.
  std::vector<std::pair<std::string, double>> choices;
  // Numbers become text: what stands before and behind, and the digits at least. Unset: they stay numbers.
  struct NumberFormat {
    std::string before, after;
    uint32_t digits = 0;
  };
  std::optional<NumberFormat> format;
  size_t column = 0;         // kColumn: which of the imported ones,
  ImportColumn column_says;  // and what is known of its values.
  // So many records there are at most, with those that a run writes, however the dice fall: much more than
  // there will be.
  uint64_t records_max = 0;

  PropertyType type() const;
  bool derived() const { return distribution == Distribution::kTemplate || per || swing > 0; }
  bool is_time() const { return type() == PropertyType::kDateTime; }
  // The smallest and largest of its whole numbers among `records_max` records.
  std::pair<int64_t, int64_t> NumberRange() const;
  // Whether all of its texts have one length.
  bool HasOneLength() const;
  // kSequence, kClock: what the record has but for rhythm and lateness, held at the ends of what there is.
  int64_t SteppedValue(uint64_t record) const;
};

enum class OpKind : uint8_t {
  kInsert,   // New records, which must not exist yet.
  kUpsert,   // New records, or old ones again.
  kMerge,    // Sets some fields of a record that exists.
  kReplace,  // Writes a record that exists again, whole.
  kDelete,
  kGet,     // One record that exists, by all of its fields that stand in keys.
  kQuery,   // Records by conditions.
  kModify,  // Reads a record, and sets some fields if nobody changed it since; else again.
};
const char* OpKindName(OpKind kind);

// How an operation chooses the record it is about, among those written so far.
enum class Pick : uint8_t { kUniform, kZipf, kLatest, kRanges };

// Records that are hot by ranges of their numbers, as MixGraph has it: the k-th of `ranges` (in an order that
// the seed shuffles) has a weight of a * e^(b k) + c * e^(d k) for k from 1 on; within it the record is a
// hash of (u / key_a)^(1 / key_b) for u in [0, 1).
struct HotRanges {
  uint32_t ranges = 30;
  double a = 14.18, b = -2.917, c = 0.0164, d = -0.08082;
  double key_a = 0.002312, key_b = 0.3467;
};

// A condition of a query on one field; all of an operation must hold.
struct Condition {
  size_t field = 0;
  enum class Kind : uint8_t {
    kEqualsRecord,  // "@record": as the chosen record has it.
    kEquals,        // `value`.
    kLast,          // A time: within `ticks` before that of the newest record.
    kFromRecord,    // A time: from the chosen record's time on for `ticks`.
    kBetween,       // value <= field < value_end.
    kOneOf,         // One of `values`; "@record" within them is not possible.
  } kind = Kind::kEquals;
  PropertyValue value, value_end;
  std::vector<PropertyValue> values;
  int64_t ticks = 0;
};

struct Op {
  std::string name;
  OpKind kind = OpKind::kInsert;
  double weight = 1;
  uint32_t batch = 1;  // Records of one kInsert or kUpsert.
  Pick pick = Pick::kUniform;
  double theta = 0.99;   // kZipf, kLatest: the skew.
  HotRanges hot_ranges;  // kRanges.
  std::vector<Condition> where;
  std::optional<size_t> order_field;  // The answer is wanted in its order,
  bool order_descending = false;
  uint64_t limit = 0;                  // and only so many; 0: all.
  std::optional<Pareto> limit_pareto;  // Drawn so for each, up to `limit`.
  std::vector<size_t> select;          // Empty: all fields.
  std::vector<size_t> set;             // kMerge, kModify: these get new values.

  bool sets() const { return kind == OpKind::kMerge || kind == OpKind::kModify; }
  bool writes_new() const { return kind == OpKind::kInsert || kind == OpKind::kUpsert; }
  bool reads() const { return kind == OpKind::kGet || kind == OpKind::kQuery; }
};

// One entity that a record becomes.
struct EntityPlan {
  std::string name;   // Of a copy; empty: the record itself.
  std::string table;  // "Lab" unless it says so.
  KeyTemplate partition_key, row_key;
  std::vector<size_t> fields;  // Stored as properties of their own name.
  bool atomic = false;         // A copy: written with the record, in one transaction.
  // Several records in one entity: the value of `fold_from` under a name that the record gives.
  std::optional<KeyTemplate> fold_name;
  size_t fold_from = 0;
  // Folded into one property, a line each, by who inserts all records of an entity in one operation.
  bool fold_packs = false;
  // Of a layout with several types of entity: only records become it whose field has one of these values.
  struct When {
    size_t field = 0;
    std::vector<PropertyValue> values;
  };
  std::optional<When> when;
  // A copy that is an index entity: its one property lists this field's values, of all records with its keys.
  // Who writes a record reads it, adds the value, and writes it if nobody did so meanwhile.
  std::optional<size_t> list_of;

  bool Takes(const Record& record) const;
};

enum class ArrivalModel : uint8_t { kConstant, kPoisson, kRamp, kSteps, kBurst, kDiurnal, kReplay, kClosed };
const char* ArrivalModelName(ArrivalModel model);

// When operations arrive. All but kClosed are open loops: the next one comes whether or not the last is done.
struct Arrival {
  ArrivalModel model = ArrivalModel::kConstant;
  std::vector<double> rates;   // Operations a second; each is a cell of its own, but for kSteps.
  double rate_end = 0;         // kRamp: from `rates` to here.
  double on_s = 1, off_s = 1;  // kBurst: at the rate, then not at all.
  double amplitude = 0.5;      // kDiurnal: of the rate, as a sine,
  double period_s = 10;        // which returns after so long.
  std::vector<double> times;   // kReplay: seconds from the start, not falling.
  double scale = 1;            // kReplay: twice as fast with 2.
  uint32_t clients = 64;       // Calls in flight at most; kClosed: clients that wait for each answer.
  double think_s = 0;          // kClosed: and then so long.
  double warmup_s = 1, duration_s = 5;

  // Operations a second at the highest of the rates, and when it is highest; of kReplay the mean from the
  // first to the last that is due. Nothing for kClosed: how fast it is will be known when it has run.
  std::optional<double> HighestRate() const;
  // Operations of a run at the highest of the rates, about: those due before so many seconds, and all. 0 for
  // kClosed.
  double OperationsBy(double seconds) const;
  double OperationsExpected() const { return OperationsBy(warmup_s + duration_s); }
  // kReplay: so many of `times` are due before so many seconds, and before the run ends, which leaves out the
  // others.
  uint64_t TimesReplayedBy(double seconds) const;
  uint64_t TimesReplayed() const { return TimesReplayedBy(warmup_s + duration_s); }

  bool operator==(const Arrival&) const = default;
};

struct Layout {
  std::string name;
  std::vector<EntityPlan> entities;  // The record itself, as each of its types, then its copies.
  size_t types = 1;                  // So many are the record itself.
  // A query for several known RowKeys is one with `or`, not a request for each.
  bool joins_choices = false;

  // It is loaded in this way instead of the experiment's, for as long.
  std::optional<Arrival> arrival;

  // Whether a copy is in the partition of the record itself, of whatever type that is.
  bool SharesPartition(const EntityPlan& copy) const;
  // What the record itself becomes. REQUIRES: it is of one of the types.
  const EntityPlan& BaseOf(const Record& record) const;
};

// What is measured.
enum class TargetKind : uint8_t {
  kEmbedded,  // New stores of the engine on this machine.
  kHttp,      // A table service.
  kRocksDb,   // New stores of RocksDB on this machine.
};
const char* TargetKindName(TargetKind kind);

enum class OnThrottled : uint8_t { kDrop, kRetry };

struct Goal {
  std::optional<double> p99_ms, throttled;
};

// What a measured or predicted figure must be for the run to succeed.
struct Expectation {
  std::string metric;  // See metrics.h.
  size_t layout = 0;
  std::optional<size_t> op;
  std::optional<size_t> times_of;  // The figure is how many times that of this layout.
  std::optional<double> above, below, equals;
  std::optional<std::string> is;  // For metric "plan".
  uint32_t line = 0;
};

struct Experiment {
  std::string name, description;
  uint64_t seed = 1;
  uint32_t repeats = 3;
  uint64_t records = 0;                             // There before the operations begin.
  std::shared_ptr<const ImportedRecords> imported;  // Where fields have columns.
  std::vector<Field> fields;
  std::vector<Op> ops;
  std::vector<Layout> layouts;
  Arrival arrival;
  ThroughputTargets limits;
  OnThrottled on_throttled = OnThrottled::kDrop;
  TargetKind target = TargetKind::kEmbedded;
  // kHttp: a connection string, or env:NAME of a variable that holds it; or where, and env:NAME of the key or
  // signature. Never a secret itself.
  std::string connection, url, credential;
  uint8_t durability = 2;  // partita::Durability.
  uint32_t shards = 0;
  uint64_t memory_bytes = 256u << 20;
  Goal goal;
  std::vector<Expectation> expectations;

  double weight_sum() const;
  const Arrival& ArrivalOf(const Layout& layout) const { return layout.arrival ? *layout.arrival : arrival; }
  // How many records an operation adds, on average.
  double NewRecordsPerOperation() const;
  // How many records a run of the highest rate adds, about; of a closed loop nobody knows: 0.
  double NewRecordsExpected(const Arrival& of) const;
};

}  // namespace partita::lab
