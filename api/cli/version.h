#pragma once

namespace partita {

// What `partita --version` and the Server header say; CMakeLists.txt has the number.
inline constexpr const char* kPartitaVersion = PARTITA_VERSION;

}  // namespace partita
