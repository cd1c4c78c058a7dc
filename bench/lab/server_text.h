#pragma once
#include <string>
#include <string_view>

namespace partita::lab {

// What a server said, fit to be shown and kept, since it may be anything and may repeat the address it was
// asked at: the first 300 bytes, well-formed UTF-8 without control characters, and without what proves that
// one is allowed. That is `sas` (a connection's; may be empty) and the signature in it, as it stands there
// and decoded, and the value of anything called `sig`.
std::string ServerText(std::string_view said, std::string_view sas);

}  // namespace partita::lab
