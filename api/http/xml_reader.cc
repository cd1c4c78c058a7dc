#include "api/http/xml_reader.h"

#include <algorithm>

#include "engine/base/text.h"

namespace partita::http {

namespace {

// StorageServiceProperties / Cors / CorsRule / AllowedOrigins and its text.
constexpr int kXmlDepthMax = 6;

// Walks without recursion: the depth is the client's.
bool IsTooDeep(pugi::xml_node top) {
  struct DepthWalker : pugi::xml_tree_walker {
    bool for_each(pugi::xml_node&) override { return depth() < kXmlDepthMax; }
  };
  DepthWalker walker;
  return !top.traverse(walker);
}

// A character reference can name what XML, or UTF-8, cannot hold: it would not come back as it was.
bool IsXmlText(std::string_view text) {
  constexpr std::string_view kFffe = "\xEF\xBF\xBE";
  constexpr std::string_view kFfff = "\xEF\xBF\xBF";
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  };
  return IsValidUtf8(text) && std::none_of(text.begin(), text.end(), is_control) &&
         text.find(kFffe) == text.npos && text.find(kFfff) == text.npos;
}

bool IsWhiteSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

std::optional<ServiceError> ParseXml(std::string_view xml, const char* root_name,
                                     pugi::xml_document* document, pugi::xml_node* root) {
  const ServiceError refused = ServiceError(ErrorCode::kInvalidXmlDocument).AsXml();
  // A zero byte would end the text for the parser.
  if (xml.size() > kXmlBytesMax || !IsValidUtf8(xml) || xml.find('\0') != xml.npos) return refused;
  // Document types are asked for, to be refused; comments and declarations are not kept.
  constexpr unsigned kFlags = pugi::parse_cdata | pugi::parse_escapes | pugi::parse_eol | pugi::parse_doctype;
  const pugi::xml_parse_result parsed =
      document->load_buffer(xml.data(), xml.size(), kFlags, pugi::encoding_utf8);
  if (!parsed || IsTooDeep(*document)) return refused;
  // Exactly the root: no document type, no second element.
  const pugi::xml_node first = document->first_child();
  if (first.type() != pugi::node_element || first.next_sibling() ||
      std::string_view(first.name()) != root_name) {
    return refused;
  }
  *root = first;
  return std::nullopt;
}

bool HoldsElementsOnly(pugi::xml_node node) {
  const auto children = node.children();
  return std::all_of(children.begin(), children.end(),
                     [](const pugi::xml_node& child) { return child.type() == pugi::node_element; });
}

bool HoldsOnly(pugi::xml_node node, std::initializer_list<std::string_view> names) {
  if (!HoldsElementsOnly(node)) return false;
  for (const pugi::xml_node child : node.children()) {
    if (std::find(names.begin(), names.end(), std::string_view(child.name())) == names.end()) return false;
    if (node.child(child.name()) != child) return false;
  }
  return true;
}

std::optional<std::string> TextOf(pugi::xml_node node) {
  std::string text;
  for (const pugi::xml_node child : node.children()) {
    if (child.type() != pugi::node_pcdata && child.type() != pugi::node_cdata) return std::nullopt;
    text.append(child.value());
  }
  if (!IsXmlText(text)) return std::nullopt;
  return text;
}

std::optional<std::string> TrimmedTextOf(pugi::xml_node node) {
  std::optional<std::string> text = TextOf(node);
  if (!text) return text;
  const auto begin = std::find_if_not(text->begin(), text->end(), IsWhiteSpace);
  const auto end = std::find_if_not(text->rbegin(), std::make_reverse_iterator(begin), IsWhiteSpace).base();
  return std::string(begin, end);
}

}  // namespace partita::http
