#pragma once
#include "bench/lab/experiment.h"
#include "bench/lab/toml_section.h"

namespace partita::lab {

// Notes what the service would refuse of one place of a layout: its table name, and keys, property names,
// values and sizes of a sample of the records. REQUIRES: the fields are read.
void CheckEntityPlan(const Experiment& experiment, const EntityPlan& entity, const TomlSection& section);

// The same for the layout as a whole: transactions, two entities with one key, operations it cannot do.
// REQUIRES: the operations are read.
void CheckLayout(const Experiment& experiment, const Layout& layout, const TomlSection& section);

}  // namespace partita::lab
