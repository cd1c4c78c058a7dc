#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "api/query_plan.h"
#include "engine/base/result.h"

namespace partita {

// Continuation tokens as header texts (spec 11.7): `1!LEN!TEXT`, where TEXT is the key's base64 with `.`,
// `_` and `-` for `+`, `/` and `=`, and LEN its length. They hold a key and nothing else, so they need no
// state and never expire. (`.` for `+`, because `-` would be read as padding.)

// Never empty: "1!0!" for the empty key. `key` is UTF-8.
std::string EncodeKeyToken(std::string_view key);

// The key of a token. Lenient with what clients do to it: an empty text is the empty key, and a `%` left
// after URL decoding is decoded once more. kInvalidArgument (Violation::kInvalidInput) for any other text
// that EncodeKeyToken did not write.
Result<std::string> DecodeKeyToken(std::string_view text);

// The position that a request's NextPartitionKey and NextRowKey name; nothing when it has neither, or both
// empty. A missing or empty row token means the start of the partition. kInvalidArgument as above, and for
// a row token alone.
Result<std::optional<QueryPosition>> DecodePosition(std::optional<std::string_view> next_partition_key,
                                                    std::optional<std::string_view> next_row_key);

}  // namespace partita
