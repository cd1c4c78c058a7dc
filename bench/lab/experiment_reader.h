#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/toml_section.h"

namespace partita::lab {

// The ticks of 100 ns in so many seconds, of which a double has most parts a little smaller or larger than
// they were written.
inline int64_t TicksIn(double seconds) { return std::llround(seconds * 1e7); }

// Fills an experiment from the tables of its file, top to bottom; what later sections name must stand in
// earlier ones, whatever their order in the file. Used once, by one thread.
class ExperimentReader {
 public:
  // Files are named from `directory` on, where the experiment's own lies.
  ExperimentReader(const TomlSection& top, std::string directory, Experiment* experiment)
      : top_(top), directory_(std::move(directory)), experiment_(*experiment) {}
  void Read();

 private:
  void ReadData(const TomlSection& data);
  void ReadField(const std::string& name, const TomlSection& section);
  // A field that is a column of the imported file.
  void ReadColumn(const TomlSection& section, Field field);
  // All columns as fields.
  void TakeAllColumns(const TomlSection& data, const std::vector<std::string>& names);
  // Adds it, if it can be a property.
  void TakeField(const TomlSection& section, Field field);
  bool ReadRowFormat(const TomlSection& section, const std::string& path, RowFileFormat* format);
  // Reads the file behind all fields. REQUIRES: nothing is wrong with them.
  void ReadImport(const TomlSection& data);
  std::string PathOf(const std::string& file) const;
  void ReadClock(const TomlSection& section, Field* field);
  void ReadSequence(const TomlSection& section, Field* field);
  // Tells the fields how many records there will be at most. REQUIRES: arrival and operations were read.
  void SetRecordsMax();
  // So many operations no run has, on any layout.
  double OperationsMax() const;
  // Notes when the values leave [min, max] within the records.
  void CheckSteps(const TomlSection& section, const Field& field, int64_t min, int64_t max);
  void ReadFormat(const TomlSection& section, Field* field);
  // Of fields that are made of others. REQUIRES: all fields and how many records there will be are known.
  void ReadDerived();
  void ReadTextTemplate(const TomlSection& section, Field* field);
  void ReadChoices(const TomlSection& section, Field* field);
  // Not empty; else noted.
  static std::string ReadName(const TomlSection& section);
  void ReadOp(const TomlSection& section);
  void ReadPick(const TomlSection& section, Op* op);
  std::optional<Pareto> ReadPareto(const TomlSection& section, std::string_view key);
  void ReadOrder(const TomlSection& section, Op* op);
  void ReadConditions(const TomlSection& section, Op* op);
  void ReadCondition(const TomlSection& section, const toml::key& key, const toml::node& node, Op* op);
  bool ReadConditionTable(const TomlSection& section, const toml::table& table, Condition* condition);
  // A time as a number of ticks above 0; false, and noted, when it is none or too long.
  bool ReadTicks(const TomlSection& section, const toml::node& node, std::string_view text, int64_t* ticks);
  bool ReadValue(const TomlSection& section, const toml::node& node, const Field& field,
                 PropertyValue* value);
  void ReadLayout(const TomlSection& section);
  EntityPlan ReadEntity(const TomlSection& section, std::string_view default_table);
  void ReadTypes(const TomlSection& section, const EntityPlan& base, Layout* layout);
  EntityPlan ReadType(const TomlSection& section, const EntityPlan& base);
  std::optional<EntityPlan::When> ReadWhen(const TomlSection& section);
  EntityPlan ReadCopy(const TomlSection& section, const std::string& table);
  // False, and noted, when it is missing or wrong.
  bool ReadTemplate(const TomlSection& section, std::string_view key, KeyTemplate* out);
  void ReadFold(const TomlSection& section, EntityPlan* entity);
  std::vector<size_t> ReadFields(const TomlSection& section, std::string_view key, bool all);
  void ReadArrival(const TomlSection& section);
  // How the rate changes; `arrival->model` is known.
  void ReadShape(const TomlSection& section, Arrival* arrival);
  void ReadOwnArrival(const TomlSection& section, Layout* layout);
  void ReadReplay(const TomlSection& section);
  void ReadPlainTimes(const TomlSection& section, const std::string& path);
  void ReadTraceTimes(const TomlSection& section, const std::string& path);
  void ReadTarget(const TomlSection& section);
  void ReadService(const TomlSection& section);
  void ReadLimits(const TomlSection& section);
  void ReadGoal(const TomlSection& section);
  void ReadExpectation(const TomlSection& section);

  // Nothing, and noted, when there is none of that name.
  std::optional<size_t> FieldNamed(const TomlSection& section, const toml::node& node,
                                   const std::string& name);
  std::optional<size_t> LayoutNamed(const TomlSection& section, std::string_view key);
  std::optional<size_t> OpNamed(const TomlSection& section, std::string_view key);

  const TomlSection& top_;
  const std::string directory_;
  std::vector<ImportColumn> columns_;                    // Of fields, in their order.
  std::vector<std::pair<TomlSection, size_t>> derived_;  // Fields that name others, to be read behind all.
  Experiment& experiment_;
  bool makes_samples_ = false;  // Nothing was wrong with data and operations: records can be made.
};

}  // namespace partita::lab
