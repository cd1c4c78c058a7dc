#pragma once
#include <string_view>

namespace partita {

// A named step that a promise hangs on: a flush, a flush of names, a check of bytes, a wait for the log, a
// fence. In the build preset `debug` one of them can be left out (PARTITA_SITE_OFF=<name>), and some test
// must notice; test/sites leaves out each in turn, and holds the source to its list. In every other build
// this is nothing.
//
//   if (SiteIsOn("wal.spare.flush")) PARTITA_CO_TRY(co_await file->Flush());
#ifdef PARTITA_SITES
bool SiteIsOn(std::string_view name);
#else
constexpr bool SiteIsOn(std::string_view) { return true; }
#endif

}  // namespace partita
