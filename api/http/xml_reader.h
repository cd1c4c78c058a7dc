#pragma once
#include <initializer_list>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "api/http/service_error.h"

namespace partita::http {

// Reads the small XML bodies of the service (ACL, service properties), strictly: one element tree of known
// names, nothing beside them. Attributes are ignored, comments too.

// A client's document is never near this.
inline constexpr size_t kXmlBytesMax = 64 << 10;

inline ServiceError InvalidDocument() { return ServiceError(ErrorCode::kInvalidXmlDocument).AsXml(); }

// Parses `xml` and gives its root, which must be called `root_name`. Refuses as InvalidXmlDocument: more
// than kXmlBytesMax bytes, text that is no UTF-8, a document type (so no entities but the five of XML),
// elements nested deeper than any body of the service.
std::optional<ServiceError> ParseXml(std::string_view xml, const char* root_name,
                                     pugi::xml_document* document, pugi::xml_node* root);

// True when all children are elements.
bool HoldsElementsOnly(pugi::xml_node node);

// True when all children are elements of these names, each at most once.
bool HoldsOnly(pugi::xml_node node, std::initializer_list<std::string_view> names);

// The text of an element, all of it; nothing when it holds elements, or a character that XML has
// not.
std::optional<std::string> TextOf(pugi::xml_node node);
// The same without white space around it.
std::optional<std::string> TrimmedTextOf(pugi::xml_node node);

}  // namespace partita::http
