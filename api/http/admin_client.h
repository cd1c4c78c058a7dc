#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::http {

// Asks the admin address of a running server ("127.0.0.1:9090", "localhost:9090", or "http://" before
// it) for a page. Blocks, at most 10 s from connecting to the last byte. kIoError: nobody answers; kNotFound,
// kInvalidArgument: what the server says; kUnsupported: another error of it.
Result<std::string> AskAdmin(const std::string& address, const std::string& target);

// Has it change something: POST of `json`. Blocks, at most 120 s; whether what was begun is done
// nevertheless, it then does not know. Errors: those of AskAdmin, and whatever the server's own say.
Result<std::string> TellAdmin(const std::string& address, const std::string& target, const std::string& json);

// The same for what takes as long as it takes; who ends waiting ends it.
Result<std::string> RunOnAdmin(const std::string& address, const std::string& target);

// The value of a query parameter, percent-encoded.
std::string EncodeParameter(std::string_view value);

}  // namespace partita::http
