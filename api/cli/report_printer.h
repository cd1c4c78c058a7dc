#pragma once
#include <ostream>

#include "api/cli/commands.h"
#include "engine/report.h"

namespace partita {

// A report for people: facts in two columns with their reasons, then tables, then damages.
void PrintReport(std::ostream& out, const Report& report);

// The same as one JSON object: facts under their names, tables as arrays of objects, "damages" as an array
// of strings. A fact with a reason has it under NAME_why. REQUIRES: all these names differ.
void PrintReportJson(std::ostream& out, const Report& report);

// The one or the other, as the flags say.
void PrintAsAsked(const StoreFlags& store, const Report& report, Console& console);

}  // namespace partita
