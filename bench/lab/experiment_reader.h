#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/experiment.h"
#include "bench/lab/toml_section.h"

namespace partita::lab {

// Fills an experiment from the tables of its file, top to bottom; what later sections name must stand in
// earlier ones, whatever their order in the file. Used once, by one thread.
class ExperimentReader {
 public:
  ExperimentReader(const TomlSection& top, Experiment* experiment) : top_(top), experiment_(*experiment) {}
  void Read();

 private:
  void ReadData(const TomlSection& data);
  void ReadField(const std::string& name, const TomlSection& section);
  void ReadClock(const TomlSection& section, Field* field);
  void ReadSequence(const TomlSection& section, Field* field);
  // Tells the fields how many records there will be. REQUIRES: arrival and operations were read.
  void SetRecordsMax();
  // Notes when the values leave [min, max] within the records.
  void CheckSteps(const TomlSection& section, const Field& field, int64_t min, int64_t max);
  void ReadFormat(const TomlSection& section, Field* field);
  void ReadChoices(const TomlSection& section, Field* field);
  void ReadOp(const TomlSection& section);
  void ReadOrder(const TomlSection& section, Op* op);
  void ReadConditions(const TomlSection& section, Op* op);
  void ReadCondition(const TomlSection& section, const toml::key& key, const toml::node& node, Op* op);
  bool ReadConditionTable(const TomlSection& section, const toml::table& table, Condition* condition);
  // A time as a number of ticks above 0; false, and noted, when it is none or too long.
  bool ReadTicks(const TomlSection& section, const toml::node& node, std::string_view text, int64_t* ticks);
  bool ReadValue(const TomlSection& section, const toml::node& node, size_t field, PropertyValue* value);
  void ReadLayout(const TomlSection& section);
  EntityPlan ReadEntity(const TomlSection& section, std::string_view default_table);
  // False, and noted, when it is missing or wrong.
  bool ReadTemplate(const TomlSection& section, std::string_view key, KeyTemplate* out);
  void ReadFold(const TomlSection& section, EntityPlan* entity);
  std::vector<size_t> ReadFields(const TomlSection& section, std::string_view key, bool all);
  void ReadArrival(const TomlSection& section);
  void ReadReplay(const TomlSection& section);
  void ReadTarget(const TomlSection& section);
  void ReadLimits(const TomlSection& section);
  void ReadGoal(const TomlSection& section);
  void ReadExpectation(const TomlSection& section);

  // Nothing, and noted, when there is none of that name.
  std::optional<size_t> FieldNamed(const TomlSection& section, const toml::node& node,
                                   const std::string& name);
  std::optional<size_t> LayoutNamed(const TomlSection& section, std::string_view key);
  std::optional<size_t> OpNamed(const TomlSection& section, std::string_view key);

  const TomlSection& top_;
  Experiment& experiment_;
  bool makes_samples_ = false;  // Nothing was wrong with data and operations: records can be made.
};

}  // namespace partita::lab
