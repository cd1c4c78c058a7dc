#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace partita::lab {

// The keys that an experiment file may have: what the reader accepts and what the published schema says come
// of one list, so that the two cannot differ.

// The names of one section: "" is the top; "op" an [[op]], "field" one of [data.fields], and so on.
std::vector<std::string> KeysOfSection(std::string_view section);

// The JSON schema of experiment files (bench/lab/experiment.schema.json).
std::string ExperimentSchema();

}  // namespace partita::lab
