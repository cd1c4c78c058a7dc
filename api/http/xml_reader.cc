#include "api/http/xml_reader.h"

#include <expat.h>

#include <algorithm>
#include <memory>

namespace partita::http {

namespace {

// StorageServiceProperties / Cors / CorsRule / AllowedOrigins, and some more.
constexpr size_t kXmlDepthMax = 6;

constexpr std::string_view kWhiteSpace = " \t\r\n";

// What the parser calls as it goes on.
struct XmlBuilder {
  XML_Parser parser = nullptr;
  XmlElement* root = nullptr;
  std::vector<XmlElement*> open;  // Nothing moves one of them: it is the last child of the one before.

  void Start(const char* name) {
    if (open.size() == kXmlDepthMax) return Refuse();
    XmlElement* element = root;
    if (!open.empty()) element = &open.back()->children.emplace_back();
    element->name = name;
    open.push_back(element);
  }
  void Refuse() { XML_StopParser(parser, XML_FALSE); }

  static XmlBuilder& Of(void* data) { return *static_cast<XmlBuilder*>(data); }
};

}  // namespace

std::optional<ServiceError> ParseXml(std::string_view xml, std::string_view root_name, XmlElement* root) {
  if (xml.size() > kXmlBytesMax) return InvalidDocument();
  *root = XmlElement();
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate("UTF-8"),
                                                                       XML_ParserFree);
  if (parser == nullptr) return ServiceError(ErrorCode::kServerBusy).AsXml();
  XmlBuilder builder{.parser = parser.get(), .root = root, .open = {}};
  XML_SetUserData(parser.get(), &builder);
  XML_SetElementHandler(
      parser.get(), [](void* data, const char* name, const char**) { XmlBuilder::Of(data).Start(name); },
      [](void* data, const char*) { XmlBuilder::Of(data).open.pop_back(); });
  XML_SetCharacterDataHandler(parser.get(), [](void* data, const char* text, int size) {
    XmlBuilder::Of(data).open.back()->text.append(text, static_cast<size_t>(size));
  });
  XML_SetStartDoctypeDeclHandler(parser.get(), [](void* data, const char*, const char*, const char*, int) {
    XmlBuilder::Of(data).Refuse();
  });
  const XML_Status parsed = XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), /*isFinal=*/1);
  if (parsed != XML_STATUS_OK || root->name != root_name) return InvalidDocument();
  return std::nullopt;
}

const XmlElement* XmlElement::Child(std::string_view child_name) const {
  const auto at = std::find_if(children.begin(), children.end(),
                               [child_name](const XmlElement& child) { return child.name == child_name; });
  return at == children.end() ? nullptr : &*at;
}

bool XmlElement::HoldsElementsOnly() const { return text.find_first_not_of(kWhiteSpace) == text.npos; }

bool XmlElement::HoldsOnly(std::initializer_list<std::string_view> names) const {
  if (!HoldsElementsOnly()) return false;
  for (const XmlElement& child : children) {
    if (std::find(names.begin(), names.end(), child.name) == names.end()) return false;
    if (Child(child.name) != &child) return false;
  }
  return true;
}

std::optional<std::string> TextOf(const XmlElement& element) {
  if (!element.children.empty()) return std::nullopt;
  return element.text;
}

std::optional<std::string> TrimmedTextOf(const XmlElement& element) {
  std::optional<std::string> text = TextOf(element);
  if (!text) return text;
  const size_t begin = std::min(text->find_first_not_of(kWhiteSpace), text->size());
  return text->substr(begin, text->find_last_not_of(kWhiteSpace) + 1 - begin);
}

}  // namespace partita::http
