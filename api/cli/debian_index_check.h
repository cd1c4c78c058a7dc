#pragma once
#include <map>
#include <string>
#include <string_view>

#include "api/entity.h"

namespace partita {

// A second reading of package stanzas, for verification only: written apart from DebianIndexReader and
// by other means (whole stanzas as strings, a map, UTF-16 text), so that one mistake is not made twice.
// Slow. Shares no code with the reader but the Entity.

// The properties that a stanza must have, by name, as text: "s:" and the text of a String, "n:" and the
// digits of an Int64. REQUIRES: a well-formed stanza (fields once, UTF-8).
std::map<std::string, std::string> ExpectedDebianProperties(std::string_view stanza);

// "PartitionKey|RowKey" before repeated rows are told apart.
std::string ExpectedDebianKeys(std::string_view stanza);

// Empty when the entity is what the stanza says, else the first difference. The RowKey may carry
// `_Architecture`, as the rule for repeated rows has it.
std::string CompareWithStanza(const Entity& entity, std::string_view stanza);

}  // namespace partita
