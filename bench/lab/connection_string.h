#pragma once
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace partita::lab {

// Where a table service is and how one proves to be allowed, as Azure's tools write it down.
struct Connection {
  bool secure = false;
  std::string host;  // A name, or an address without brackets.
  std::string port;
  std::string path;        // Before the tables' names: "" or "/devstoreaccount1".
  std::string account;     // Signs with the key,
  std::string key_base64;  // unless this is empty:
  std::string sas;         // then this goes behind each address.

  // "127.0.0.1:10002"; an address of IPv6 in brackets.
  std::string Place() const;
  // Without secrets, for people: "http://127.0.0.1:10002/devstoreaccount1".
  std::string Endpoint() const;
};

// `name=value;...` with TableEndpoint, or AccountName with DefaultEndpointsProtocol and EndpointSuffix; and
// AccountKey or SharedAccessSignature; or UseDevelopmentStorage=true. "env:NAME" is read from the
// environment. kInvalidArgument: what is missing or wrong; it does not show the text, which holds a key.
Result<Connection> ParseConnection(std::string_view text);

// The same of an address, and "env:NAME" of a variable that holds the key of the account that the address
// names (first in its path, or in front of its host), or a shared access signature.
Result<Connection> ConnectionOf(const std::string& url, const std::string& credential);

}  // namespace partita::lab
