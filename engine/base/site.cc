#include "engine/base/site.h"

#ifdef PARTITA_SITES
#include <cstdlib>

namespace partita {

bool SiteIsOn(std::string_view name) {
  static const char* const off = std::getenv("PARTITA_SITE_OFF");
  return off == nullptr || name != off;
}

}  // namespace partita
#endif
