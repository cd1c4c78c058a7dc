#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::http {

// Asks the admin address of a running server ("127.0.0.1:9090", or "http://..." before it) for a page.
// Blocks, at most some 10 s. kIoError: nobody answers; kNotFound, kInvalidArgument: what the server says;
// kUnsupported: another error of it.
Result<std::string> AskAdmin(const std::string& address, const std::string& target);

// The value of a query parameter, percent-encoded.
std::string EncodeParameter(std::string_view value);

}  // namespace partita::http
