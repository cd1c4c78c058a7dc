#include "api/cli/debian_index_check.h"

#include <sstream>
#include <vector>

namespace partita {
namespace {

struct NamedText {
  std::string name;
  std::vector<std::string> lines;
};

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::vector<NamedText> SplitFields(std::string_view stanza) {
  std::vector<NamedText> fields;
  std::istringstream input{std::string(stanza)};
  for (std::string line; std::getline(input, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (IsBlank(line[0])) {
      fields.back().lines.push_back(line.substr(1));
      continue;
    }
    NamedText field;
    size_t at = 0;
    while (line[at] != ':') field.name += line[at++];
    ++at;
    while (at < line.size() && IsBlank(line[at])) ++at;
    size_t end = line.size();
    while (end > at && IsBlank(line[end - 1])) --end;
    field.lines.push_back(line.substr(at, end - at));
    fields.push_back(field);
  }
  return fields;
}

std::string Joined(const NamedText& field) {
  std::string text = field.lines[0];
  for (size_t i = 1; i < field.lines.size(); ++i) text = text + "\n" + field.lines[i];
  return text;
}

// UTF-8 to UTF-16 and back, by arithmetic on code points.
std::u16string Utf16(const std::string& text) {
  std::u16string out;
  for (size_t i = 0; i < text.size();) {
    const unsigned lead = static_cast<unsigned char>(text[i]);
    const int more = lead < 0xC0 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    unsigned point = more == 0 ? lead : lead % (64u >> more);
    for (int k = 1; k <= more; ++k)
      point = point * 64 + static_cast<unsigned char>(text[i + static_cast<size_t>(k)]) % 64u;
    i += static_cast<size_t>(more) + 1;
    if (point >= 0x10000) {
      out += static_cast<char16_t>((point - 0x10000) / 0x400 + 0xD800);
      out += static_cast<char16_t>((point - 0x10000) % 0x400 + 0xDC00);
    } else {
      out += static_cast<char16_t>(point);
    }
  }
  return out;
}

std::string Utf8(const std::u16string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned point = text[i];
    if (point / 0x400 == 0xD800 / 0x400) point = 0x10000 + (point - 0xD800) * 0x400 + (text[++i] - 0xDC00u);
    std::string tail;
    unsigned limit = 0x80;  // What the lead byte can still hold.
    unsigned mark = 0;
    while (point >= limit) {
      tail.insert(tail.begin(), static_cast<char>(0x80 + point % 64));
      point /= 64;
      limit = mark == 0 ? 0x20 : limit / 2;
      mark = mark == 0 ? 0xC0 : mark / 2 + 0x80;
    }
    out += static_cast<char>(mark + point);
    out += tail;
  }
  return out;
}

std::string MappedName(const std::string& field) {
  std::string name;
  for (char c : field) {
    const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    const bool digit = c >= '0' && c <= '9';
    if (name.empty() && digit) name = "_";
    name += letter || digit ? c : '_';
  }
  for (const char* taken : {"PartitionKey", "RowKey", "Timestamp"}) {
    if (name == taken) return name + "_";
  }
  return name;
}

std::string MappedKey(const std::string& text) {
  std::u16string out;
  for (char16_t unit : Utf16(text)) {
    const bool control = unit < 0x20 || (unit > 0x7E && unit < 0xA0);
    const bool sign = unit == u'/' || unit == u'\\' || unit == u'#' || unit == u'?';
    out += control || sign ? u':' : unit;
  }
  return Utf8(out);
}

bool IsInteger(const std::string& text) {
  const size_t digits = text.find_first_not_of('-');
  return !text.empty() && digits <= 1 && text.find_first_not_of("0123456789", digits) == std::string::npos &&
         text.size() < 19;
}

}  // namespace

std::map<std::string, std::string> ExpectedDebianProperties(std::string_view stanza) {
  std::map<std::string, std::string> expected;
  for (const NamedText& field : SplitFields(stanza)) {
    const std::string name = MappedName(field.name);
    const std::string text = Joined(field);
    if ((field.name == "Size" || field.name == "Installed-Size") && IsInteger(text)) {
      expected[name] = "n:" + std::to_string(std::stoll(text));
      continue;
    }
    std::u16string rest = Utf16(text);
    int part = 1;
    do {
      size_t cut = rest.size() < 32768 ? rest.size() : 32768;
      if (cut < rest.size() && rest[cut - 1] >= 0xD800 && rest[cut - 1] < 0xDC00) --cut;
      expected[part == 1 ? name : name + "_" + std::to_string(part)] = "s:" + Utf8(rest.substr(0, cut));
      rest = rest.substr(cut);
      ++part;
    } while (!rest.empty());
  }
  return expected;
}

std::string ExpectedDebianKeys(std::string_view stanza) {
  std::map<std::string, std::string> fields;
  for (const NamedText& field : SplitFields(stanza)) fields[field.name] = Joined(field);
  const std::string section = fields["Section"].empty() ? "none" : fields["Section"];
  return MappedKey(section) + "|" + MappedKey(fields["Package"] + "_" + fields["Version"]);
}

std::string CompareWithStanza(const Entity& entity, std::string_view stanza) {
  std::map<std::string, std::string> expected = ExpectedDebianProperties(stanza);
  const std::string keys = entity.partition_key() + "|" + entity.row_key();
  const std::string expected_keys = ExpectedDebianKeys(stanza);
  const auto architecture = expected.find("Architecture");
  const std::string with_architecture =
      expected_keys + "_" + (architecture == expected.end() ? "" : MappedKey(architecture->second.substr(2)));
  if (keys != expected_keys && keys != with_architecture)
    return "keys " + keys + ", expected " + expected_keys;
  for (const Property& property : entity.properties()) {
    const std::string* text = property.value.if_string();
    const int64_t* number = property.value.if_int64();
    if (text == nullptr && number == nullptr) return property.name + " is neither String nor Int64";
    const std::string got = text != nullptr ? "s:" + *text : "n:" + std::to_string(*number);
    const auto it = expected.find(property.name);
    if (it == expected.end()) return property.name + " is not in the stanza";
    if (it->second != got) return property.name + " is " + got + ", expected " + it->second;
    expected.erase(it);
  }
  return expected.empty() ? "" : expected.begin()->first + " is missing";
}

}  // namespace partita
