#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/throughput_targets.h"

namespace partita {

// The rules of the data model that a name, key or value can break, one for each error code that the
// service knows for them. Travels as the detail of a kInvalidArgument status.
enum class Violation : uint16_t {
  kNone = 0,
  kOutOfRangeInput = 1,        // Length of a table name; characters of a key; range of a DateTime.
  kInvalidResourceName = 2,    // Characters of a table name.
  kPropertyValueTooLarge = 3,  // Also an over-long key.
  kPropertyNameTooLong = 4,
  kPropertyNameInvalid = 5,
  kTooManyProperties = 6,
  kEntityTooLarge = 7,
  kInvalidInput = 8,  // Malformed: text that is no UTF-8, a value not of its type, a reserved name.
  kDuplicatePropertiesSpecified = 9,
  kPropertiesNeedValue = 10,  // PartitionKey or RowKey is not given.
};

// The service's code text, e.g. "PropertyNameInvalid"; "None" for kNone.
std::string_view ViolationName(Violation violation);

// The rule a status says was broken; kNone when it is not about one.
Violation ViolationOf(const Status& status);

// A kInvalidArgument status for the rule.
Status BrokenRule(Violation violation, std::string message);

// Text for messages: quoted, control characters and bad bytes as \xHH, at most 64 bytes of it.
std::string QuotedForMessage(std::string_view text);

// Each check returns ok, or kInvalidArgument with a violation and a message that says what was given,
// where it goes wrong (byte offset) and which rule it breaks.

// Length 3 to 63, then ASCII letters and digits with a letter first, then not `tables`
// (kOutOfRangeInput, kInvalidResourceName, kInvalidInput; length is tested first).
Status CheckTableName(std::string_view name);

// An account's name: 3 to 24 of [a-z0-9] (kInvalidInput).
Status CheckAccountName(std::string_view name);

// That each rule names an account and a table that there can be: one that does not would be in force nowhere.
// What else CheckThroughputTargets tests it does not.
Status CheckThroughputNames(const ThroughputTargets& targets);

// Table names are unique ignoring case; this is the form to compare. REQUIRES: a valid name.
std::string FoldTableName(std::string_view name);

// Which of the two keys is being checked; names it in the message.
enum class KeyKind : uint8_t { kPartitionKey, kRowKey };
std::string_view KeyKindName(KeyKind kind);

// Well-formed UTF-8 (so no lone surrogate), at most 512 UTF-16 units, none of `/ \ # ?` and of the
// control characters U+0000-U+001F and U+007F-U+009F. The empty key is valid.
Status CheckKey(KeyKind kind, std::string_view key);

// True for a character that no key may hold. Also what importers replace.
bool IsForbiddenInKey(char32_t character);

// Well-formed UTF-8, as every text of an entity is (kInvalidInput). `what` names it in the message.
Status CheckUtf8(std::string_view what, std::string_view text);

// A custom property's name: at most 255 UTF-16 units, a C# identifier (a letter of any script or `_`,
// then letters, digits, `_`, combining marks and format characters) that is a valid XML name too.
Status CheckPropertyName(std::string_view name);

// `PartitionKey`, `RowKey`, `Timestamp`, spelled exactly so.
bool IsSystemPropertyName(std::string_view name);

}  // namespace partita
