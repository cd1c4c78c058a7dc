#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace partita::lab {

// One key that an experiment file may have: what the reader accepts and what the published schema says, so
// that the two cannot differ.
struct ExperimentKey {
  std::string_view section;  // "" is the top; "op" an [[op]], "field" one of [data.fields], and so on.
  std::string_view name;
  // "text", "texts", "whole", "number", "numbers", "flag", "time" ("250ms", "1h"), "any"; "section X",
  // "sections X" for a table or an array of tables of section X; "map X" for a table of them under names of
  // one's own.
  std::string_view type;
  std::string_view manual;
};

std::span<const ExperimentKey> ExperimentKeys();
// The names of one section.
std::vector<std::string> KeysOfSection(std::string_view section);

// The JSON schema of experiment files (bench/lab/experiment.schema.json).
std::string ExperimentSchema();

}  // namespace partita::lab
