#include "api/http/query_parameters.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "api/http/resource.h"
#include "engine/base/text.h"

namespace partita::http {
namespace {

// All that the service gives a meaning to (spec 2.3, 14.4, 14.5).
constexpr std::string_view kKnownNames[] = {
    "$filter",
    "$select",
    "$top",
    "$format",
    "$orderby",
    "$skip",
    "$inlinecount",
    "$expand",
    "timeout",
    "api-version",
    "comp",
    "restype",
    "sv",
    "st",
    "se",
    "sp",
    "si",
    "sip",
    "spr",
    "tn",
    "spk",
    "srk",
    "epk",
    "erk",
    "ss",
    "srt",
    "sig",
    "ses",
    "NextTableName",
    "NextPartitionKey",
    "NextRowKey",
};
constexpr std::string_view kUnsupportedNames[] = {"$orderby", "$skip", "$inlinecount", "$expand"};

bool IsKnown(std::string_view name) {
  return std::find(std::begin(kKnownNames), std::end(kKnownNames), name) != std::end(kKnownNames);
}

}  // namespace

std::optional<ServiceError> QueryParameters::Parse(std::string_view query) {
  decoded_.clear();
  parameters_.clear();
  name_bits_ = 0;
  raw_comp_.reset();
  if (query.size() > kQueryBytesMax) {
    return ServiceError(ErrorCode::kInvalidUri, "The query string is too long.").Early();
  }
  decoded_.reserve(query.size());
  while (!query.empty()) {
    const size_t size = std::min(query.find('&'), query.size());
    const std::string_view piece = query.substr(0, size);
    query.remove_prefix(std::min(size + 1, query.size()));
    if (piece.empty()) continue;
    const size_t equals = std::min(piece.find('='), piece.size());
    const std::string_view value = piece.substr(std::min(equals + 1, piece.size()));
    if (std::optional<ServiceError> error = Add(piece.substr(0, equals), value)) return error;
  }
  return std::nullopt;
}

std::optional<ServiceError> QueryParameters::Decode(std::string_view raw, Piece* piece) {
  piece->begin = static_cast<uint32_t>(decoded_.size());
  if (!AppendPercentDecoded(&decoded_, raw, PlusSign::kSpace))
    return ServiceError(ErrorCode::kInvalidUri).Early();
  piece->size = static_cast<uint32_t>(decoded_.size()) - piece->begin;
  if (!IsValidUtf8(Text(*piece))) return ServiceError(ErrorCode::kInvalidInput).Early();
  return std::nullopt;
}

std::optional<ServiceError> QueryParameters::Add(std::string_view raw_name, std::string_view raw_value) {
  Parameter parameter;
  if (std::optional<ServiceError> error = Decode(raw_name, &parameter.name)) return error;
  if (std::optional<ServiceError> error = Decode(raw_value, &parameter.value)) return error;
  const std::string_view name = Text(parameter.name);
  if (const std::optional<std::string_view> first = Find(name)) {
    if (*first == Text(parameter.value) || !IsKnown(name)) return std::nullopt;
    return ServiceError(ErrorCode::kInvalidQueryParameterValue,
                        "A query parameter is given twice with different values.")
        .Early();
  }
  if (parameters_.size() == kQueryParametersMax) {
    return ServiceError(ErrorCode::kInvalidUri, "The query string has too many parameters.").Early();
  }
  if (name == "comp") raw_comp_ = std::string(raw_value);
  parameters_.push_back(parameter);
  name_bits_ |= BitOf(name);
  return std::nullopt;
}

std::optional<std::string_view> QueryParameters::Find(std::string_view name) const {
  if ((name_bits_ & BitOf(name)) == 0) return std::nullopt;
  for (const Parameter& parameter : parameters_) {
    if (Text(parameter.name) == name) return Text(parameter.value);
  }
  return std::nullopt;
}

std::optional<ServiceError> QueryParameters::Timeout(uint32_t* seconds) const {
  *seconds = kTimeoutSecondsMax;
  const std::string_view text = Get("timeout");
  if (text.empty()) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return ServiceError(ErrorCode::kInvalidQueryParameterValue).Early();
  uint32_t given = 0;
  const std::errc overflow = std::from_chars(text.data(), text.data() + text.size(), given).ec;
  if (overflow == std::errc() && given != 0) *seconds = std::min(given, kTimeoutSecondsMax);
  return std::nullopt;
}

std::optional<ServiceError> QueryParameters::CheckSupported() const {
  for (const std::string_view name : kUnsupportedNames) {
    if (Has(name)) return ServiceError(ErrorCode::kNotImplemented);
  }
  return std::nullopt;
}

}  // namespace partita::http
