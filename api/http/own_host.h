#pragma once
#include <span>
#include <string>
#include <string_view>

namespace partita::http {

// Whether a Host header names this server so that no web page elsewhere can have made a browser believe it:
// a page whose own name is made to lead here (DNS rebinding) shows that name. So: any numeric address,
// localhost and what ends with .localhost, and `names`; with or without a port, in any case.
bool IsOwnHost(std::string_view host, std::span<const std::string> names);

}  // namespace partita::http
