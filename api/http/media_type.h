#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "api/http/service_error.h"

namespace partita::http {

// How much metadata a JSON answer carries (spec 5.2).
enum class MetadataLevel : uint8_t { kNone, kMinimal, kFull };

// The level asked for by `$format` if given, else by Accept (spec 5.1): the first JSON media type of the
// list; `*/*`, `application/*` or nothing at all is minimal. Otherwise 415: JsonFormatNotSupported when
// JSON was asked for in a form that we do not write (odata=verbose), else AtomFormatNotSupported; as XML.
std::optional<ServiceError> ChooseMetadataLevel(std::optional<std::string_view> format,
                                                std::optional<std::string_view> accept, MetadataLevel* level);

// The Content-Type of a request's JSON body: application/json in any form, or none, is taken; Atom and
// everything else is 415 AtomFormatNotSupported.
std::optional<ServiceError> CheckJsonContentType(std::optional<std::string_view> content_type);

// The value of Content-Type for a JSON answer: "application/json;odata=LEVEL;streaming=true;charset=utf-8".
std::string_view JsonContentType(MetadataLevel level);

// The value of the parameter, without quotes around it; nothing when absent. Names ignore case.
// `MediaTypeParameter("multipart/mixed; boundary=b1", "boundary")` is "b1".
std::optional<std::string_view> MediaTypeParameter(std::string_view media_type, std::string_view name);
// The type itself without parameters and white space: "multipart/mixed". Compare ignoring case.
std::string_view MediaTypeName(std::string_view media_type);

}  // namespace partita::http
