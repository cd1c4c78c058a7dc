#include "api/http/media_type.h"

#include <algorithm>

#include "api/ascii.h"

namespace partita::http {
namespace {

// Takes the part before `separator` off the front; a separator within quotes is text.
std::string_view TakePart(std::string_view* text, char separator) {
  bool quoted = false;
  size_t size = std::min(text->find(separator), text->size());
  if (text->substr(0, size).find('"') != std::string_view::npos) size = 0;
  for (; size < text->size(); ++size) {
    const char c = (*text)[size];
    if (c == '"') quoted = !quoted;
    if (c == separator && !quoted) break;
  }
  const std::string_view part = text->substr(0, size);
  text->remove_prefix(std::min(size + 1, text->size()));
  return part;
}

// What one media range of an Accept list asks for.
enum class Asked : uint8_t { kOther, kAnything, kUnknownJson, kNone, kMinimal, kFull };

Asked AskedByRange(std::string_view range) {
  const std::string_view name = MediaTypeName(range);
  if (name == "*/*" || EqualIgnoringCase(name, "application/*")) return Asked::kAnything;
  // `$format=json` is the short form that OData knows.
  if (!EqualIgnoringCase(name, "application/json") && !EqualIgnoringCase(name, "json")) return Asked::kOther;
  const std::optional<std::string_view> level = MediaTypeParameter(range, "odata");
  if (!level || EqualIgnoringCase(*level, "minimalmetadata")) return Asked::kMinimal;
  if (EqualIgnoringCase(*level, "nometadata")) return Asked::kNone;
  if (EqualIgnoringCase(*level, "fullmetadata")) return Asked::kFull;
  return Asked::kUnknownJson;
}

}  // namespace

std::string_view MediaTypeName(std::string_view media_type) { return TrimBlanks(TakePart(&media_type, ';')); }

std::optional<std::string_view> MediaTypeParameter(std::string_view media_type, std::string_view name) {
  TakePart(&media_type, ';');
  while (!media_type.empty()) {
    std::string_view value = TakePart(&media_type, ';');
    if (!EqualIgnoringCase(TrimBlanks(TakePart(&value, '=')), name)) continue;
    value = TrimBlanks(value);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    return value;
  }
  return std::nullopt;
}

std::optional<ServiceError> ChooseMetadataLevel(std::optional<std::string_view> format,
                                                std::optional<std::string_view> accept,
                                                MetadataLevel* level) {
  *level = MetadataLevel::kMinimal;
  const bool format_decides = format && !TrimBlanks(*format).empty();
  std::string_view list = format_decides ? *format : TrimBlanks(accept.value_or(std::string_view()));
  if (list.empty()) return std::nullopt;
  bool anything = false;
  bool unknown_json = false;
  while (!list.empty()) {
    switch (AskedByRange(TakePart(&list, ','))) {
      case Asked::kNone:
        *level = MetadataLevel::kNone;
        return std::nullopt;
      case Asked::kMinimal:
        return std::nullopt;
      case Asked::kFull:
        *level = MetadataLevel::kFull;
        return std::nullopt;
      case Asked::kAnything:
        anything = true;
        break;
      case Asked::kUnknownJson:
        unknown_json = true;
        break;
      case Asked::kOther:
        break;
    }
  }
  if (anything) return std::nullopt;
  return ServiceError(unknown_json ? ErrorCode::kJsonFormatNotSupported : ErrorCode::kAtomFormatNotSupported)
      .AsXml();
}

std::optional<ServiceError> CheckJsonContentType(std::optional<std::string_view> content_type) {
  const std::string_view name = MediaTypeName(content_type.value_or(std::string_view()));
  if (name.empty() || EqualIgnoringCase(name, "application/json")) return std::nullopt;
  return ServiceError(ErrorCode::kAtomFormatNotSupported);
}

std::string_view JsonContentType(MetadataLevel level) {
  switch (level) {
    case MetadataLevel::kNone:
      return "application/json;odata=nometadata;streaming=true;charset=utf-8";
    case MetadataLevel::kMinimal:
      return "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
    case MetadataLevel::kFull:
      return "application/json;odata=fullmetadata;streaming=true;charset=utf-8";
  }
  return {};
}

}  // namespace partita::http
