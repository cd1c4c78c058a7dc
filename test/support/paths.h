#pragma once

// Where this build was made. Defined in a file of the build's own (test/CMakeLists.txt), so that all other
// objects serve every copy of the tree (test/mutants).
namespace partita {

extern const char* const kSourceDirectory;  // Of the tree; no slash at its end.
extern const char* const kCommandPath;      // The program `partita`.

}  // namespace partita
