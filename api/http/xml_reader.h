#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/service_error.h"

namespace partita::http {

// Reads the small XML bodies of the service (ACL, service properties), strictly: one element tree of known
// names, nothing beside them. Attributes are ignored, comments too.

// A client's document is never near this.
inline constexpr size_t kXmlBytesMax = 64 << 10;

inline ServiceError InvalidDocument() { return ServiceError(ErrorCode::kInvalidXmlDocument).AsXml(); }

struct XmlElement {
  std::string name;
  std::string text;  // Its own, all pieces of it.
  std::vector<XmlElement> children;

  const XmlElement* Child(std::string_view child_name) const;  // The first of this name, or null.
  // Nothing but white space stands beside the children.
  bool HoldsElementsOnly() const;
  // The same, and these have the names, each at most once.
  bool HoldsOnly(std::initializer_list<std::string_view> names) const;
};

// Parses `xml`, whose root must be called `root_name`. Refuses as InvalidXmlDocument: more than kXmlBytesMax
// bytes, what is not well-formed XML in UTF-8, a document type (so no entities but the five of XML), elements
// nested deeper than any body of the service. ServerBusy: there is no memory for the parser.
std::optional<ServiceError> ParseXml(std::string_view xml, std::string_view root_name, XmlElement* root);

// The text of an element; nothing when it holds elements.
std::optional<std::string> TextOf(const XmlElement& element);
// The same without white space around it.
std::optional<std::string> TrimmedTextOf(const XmlElement& element);

}  // namespace partita::http
