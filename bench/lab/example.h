#pragma once

namespace partita::lab {

// The experiment that `partita lab new` writes: it explains itself, and runs in less than a minute.
extern const char* const kExampleExperiment;

}  // namespace partita::lab
