#include "api/http/resource.h"

#include <algorithm>

#include "api/ascii.h"
#include "api/names.h"
#include "engine/base/text.h"

namespace partita::http {
namespace {

using MaybeError = std::optional<ServiceError>;

constexpr std::string_view kPartitionKeyName = "PartitionKey";
constexpr std::string_view kRowKeyName = "RowKey";

ServiceError BadUri() { return ServiceError(ErrorCode::kInvalidUri).Early(); }
ServiceError BadSyntax() {
  return ServiceError(ErrorCode::kInvalidInput, "Bad Request - Error in query syntax.").Early();
}
ServiceError BadKeyCharacter() {
  return ServiceError(ErrorCode::kOutOfRangeInput, "One of the request inputs is out of range.").Early();
}

// ---- Hosts.

bool IsHostCharacter(char c) {
  return IsAsciiDigit(c) || IsAsciiLetter(c) || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' ||
         c == ']';
}

std::string_view HostWithoutPort(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

// Part of every URL in an answer, of which a batch has hundreds: no longer than a name can be (RFC 1035).
bool IsUsableHost(std::string_view host) {
  constexpr size_t kNameBytesMax = 255;
  constexpr size_t kPortBytesMax = 6;  // `:65535`
  const std::string_view name = HostWithoutPort(host);
  return !name.empty() && name.size() <= kNameBytesMax && host.size() <= kNameBytesMax + kPortBytesMax &&
         std::all_of(host.begin(), host.end(), IsHostCharacter);
}

bool IsIpAddress(std::string_view host) {
  if (host.starts_with('[')) return true;
  return std::all_of(host.begin(), host.end(), [](char c) { return IsAsciiDigit(c) || c == '.'; });
}

// ---- Paths.

// Takes the first segment off `path`, which begins with a slash or is empty. Nothing when it is empty.
std::optional<std::string_view> TakeSegment(std::string_view* path) {
  if (path->empty()) return std::nullopt;
  path->remove_prefix(1);
  const size_t size = std::min(path->find('/'), path->size());
  const std::string_view segment = path->substr(0, size);
  path->remove_prefix(size);
  return segment;
}

// Cuts `-secondary` off; true when it was there.
bool TakeSecondarySuffix(std::string_view* account) {
  if (!account->ends_with(kSecondarySuffix)) return false;
  account->remove_suffix(kSecondarySuffix.size());
  return true;
}

// ---- The segment that names the thing: decoded text, tokenised with quotes honoured.
class SegmentParser {
 public:
  explicit SegmentParser(std::string_view text) : rest_(text) {}

  bool AtEnd() const { return rest_.empty(); }
  // Nothing is left, or `()`: a collection is meant.
  bool NamesAll() const { return rest_.empty() || rest_ == "()"; }
  bool Take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  // Up to the parenthesis or the end.
  std::string_view TakeName() {
    const std::string_view name = rest_.substr(0, rest_.find('('));
    rest_.remove_prefix(name.size());
    return name;
  }
  // 'text' with inner quotes doubled. False when it does not begin with a quote or does not end.
  bool TakeQuoted(std::string* text) {
    text->clear();
    if (!Take("'")) return false;
    while (true) {
      const size_t quote = rest_.find('\'');
      if (quote == rest_.npos) return false;
      text->append(rest_, 0, quote);
      rest_.remove_prefix(quote + 1);
      if (!Take("'")) return true;
      text->push_back('\'');
    }
  }

 private:
  std::string_view rest_;
};

MaybeError CheckKeyCharacters(std::string_view key) {
  bool forbidden = false;
  for (size_t at = 0; at < key.size();) {
    const DecodedCharacter decoded = *DecodeUtf8(key, at);  // The whole segment was checked.
    if (decoded.character == '/' || decoded.character == '\\') return BadSyntax();
    forbidden = forbidden || IsForbiddenInKey(decoded.character);
    at += decoded.size;
  }
  if (forbidden) return BadKeyCharacter();
  return std::nullopt;
}

// `PartitionKey='a',RowKey='b')` up to the end. The names in either order; one optional space after the
// comma.
MaybeError ParseKeys(SegmentParser* parser, Resource* resource) {
  bool has_partition_key = false;
  bool has_row_key = false;
  do {
    if (has_partition_key || has_row_key) parser->Take(" ");
    const bool is_partition_key = parser->Take(kPartitionKeyName);
    if (!is_partition_key && !parser->Take(kRowKeyName)) return BadSyntax();
    bool& has = is_partition_key ? has_partition_key : has_row_key;
    std::string* key = is_partition_key ? &resource->partition_key : &resource->row_key;
    if (has || !parser->Take("=") || !parser->TakeQuoted(key)) return BadSyntax();
    has = true;
  } while (parser->Take(","));
  if (!parser->Take(")") || !parser->AtEnd() || !has_partition_key) return BadSyntax();
  resource->kind = has_row_key ? ResourceKind::kEntity : ResourceKind::kPartition;
  if (MaybeError error = CheckKeyCharacters(resource->partition_key)) return error;
  return CheckKeyCharacters(resource->row_key);
}

// Below `Tables`: nothing, `()` or `('t')`.
MaybeError ParseTables(SegmentParser* parser, Resource* resource) {
  resource->kind = ResourceKind::kTables;
  if (parser->NamesAll()) return std::nullopt;
  resource->kind = ResourceKind::kTable;
  if (!parser->Take("(") || !parser->TakeQuoted(&resource->table) || !parser->Take(")") || !parser->AtEnd())
    return BadSyntax();
  return std::nullopt;
}

MaybeError ParseSegment(std::string_view text, Resource* resource) {
  if (text.empty()) {
    resource->kind = ResourceKind::kService;
    return std::nullopt;
  }
  SegmentParser parser(text);
  const std::string_view name = parser.TakeName();
  // No table can have this name in any case, so nothing else can be meant.
  if (EqualIgnoringCase(name, "Tables")) return ParseTables(&parser, resource);
  if (text == "$batch" || text == "$metadata") {
    resource->kind = text == "$batch" ? ResourceKind::kBatch : ResourceKind::kMetadata;
    return std::nullopt;
  }
  if (name.empty()) return BadSyntax();
  resource->table = std::string(name);
  resource->kind = ResourceKind::kEntities;
  if (parser.NamesAll()) return std::nullopt;
  if (!parser.Take("(")) return BadSyntax();
  return ParseKeys(&parser, resource);
}

// The path after the account's part.
MaybeError ParseResourcePath(std::string_view path, Resource* resource) {
  // Ruby's client puts a second slash behind the account.
  if (path == "//$batch" && resource->path_style) path.remove_prefix(1);
  const std::string_view segment = TakeSegment(&path).value_or(std::string_view());
  if (!path.empty()) {
    // A raw slash within a key cuts its segment in two.
    if (segment.find_first_of("('") != segment.npos) return BadSyntax();
    return BadUri();
  }
  // Most segments are plain; those are parsed where they lie.
  const bool plain = std::all_of(segment.begin(), segment.end(),
                                 [](char c) { return static_cast<uint8_t>(c) < 0x80 && c != '%'; });
  if (plain) return ParseSegment(segment, resource);
  std::string decoded;
  decoded.reserve(segment.size());
  if (!AppendPercentDecoded(&decoded, segment, PlusSign::kPlus)) return BadUri();
  if (!IsValidUtf8(decoded)) return BadSyntax();
  return ParseSegment(decoded, resource);
}

// Behind `/ACCOUNT-secondary`: the Python client names both (spec 2.1), with a slash behind. Without one it
// is a table.
void TakeRepeatedAccount(std::string_view account, std::string_view* path) {
  std::string_view after = *path;
  if (TakeSegment(&after) == account && !after.empty()) *path = after;
}

// Takes `/ACCOUNT`, `/ACCOUNT-secondary` or `/ACCOUNT-secondary/ACCOUNT` off the path.
MaybeError TakeAccountPath(std::string_view* path, Resource* resource) {
  const std::string_view whole = *path;
  std::string_view account = TakeSegment(path).value_or(std::string_view());
  resource->secondary = TakeSecondarySuffix(&account);
  if (account.empty()) return BadUri();
  resource->account = std::string(account);
  resource->base.account_prefix = whole.substr(0, whole.size() - path->size());
  if (resource->secondary) TakeRepeatedAccount(account, path);
  return std::nullopt;
}

void TakeAccountOfHost(std::string_view host, Resource* resource) {
  std::string_view label = host.substr(0, host.find('.'));
  resource->account.resize(label.size());
  std::transform(label.begin(), label.end(), resource->account.begin(), AsciiLower);
  label = resource->account;
  resource->secondary = TakeSecondarySuffix(&label);
  resource->account.resize(label.size());
}

// Cuts `http://HOST` or `https://HOST` off an absolute URL; nothing when it is relative.
std::optional<std::string_view> TakeAuthority(std::string_view* url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualIgnoringCase(url->substr(0, scheme.size()), scheme)) continue;
    url->remove_prefix(scheme.size());
    const size_t size = std::min(url->find_first_of("/?"), url->size());
    const std::string_view authority = url->substr(0, size);
    url->remove_prefix(size);
    return authority;
  }
  return std::nullopt;
}

// Splits at the first `?`.
void SetPathAndQuery(std::string_view target, Resource* resource) {
  const size_t mark = std::min(target.find('?'), target.size());
  resource->path = target.substr(0, mark);
  resource->query = target.substr(std::min(mark + 1, target.size()));
}

}  // namespace

void AppendUrlBase(std::string* out, const UrlBase& base) {
  out->append(base.secure ? "https://" : "http://").append(base.host).append(base.account_prefix);
}

bool AppendPercentDecoded(std::string* out, std::string_view text, PlusSign plus) {
  while (true) {
    size_t plain = 0;
    while (plain < text.size() && text[plain] != '%' && text[plain] != '+') ++plain;
    out->append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) return true;
    size_t taken = 1;
    if (text[0] == '%') {
      taken = 3;
      const int high = text.size() >= taken ? HexDigitValue(text[1]) : -1;
      const int low = text.size() >= taken ? HexDigitValue(text[2]) : -1;
      if (high < 0 || low < 0) return false;
      out->push_back(static_cast<char>(static_cast<uint8_t>(high * 16 + low)));
    } else {
      out->push_back(plus == PlusSign::kSpace ? ' ' : '+');
    }
    text.remove_prefix(taken);
  }
}

bool IsPathStyleHost(std::string_view host, const AddressRules& rules) {
  if (IsIpAddress(host) || host.find('.') == host.npos) return true;
  return std::any_of(rules.path_style_hosts.begin(), rules.path_style_hosts.end(),
                     [host](const std::string& name) { return EqualIgnoringCase(host, name); });
}

std::optional<ServiceError> ParseResource(std::string_view target, std::optional<std::string_view> host,
                                          bool secure, const AddressRules& rules, Resource* resource) {
  *resource = Resource();
  if (const std::optional<std::string_view> authority = TakeAuthority(&target)) host = authority;
  if (!host || !IsUsableHost(*host)) return ServiceError(ErrorCode::kHostInformationNotPresent).Early();
  resource->base.secure = secure;
  resource->base.host = *host;
  SetPathAndQuery(target, resource);

  std::string_view path = resource->path;
  if (!path.empty() && path[0] != '/') return BadUri();
  resource->path_style = IsPathStyleHost(HostWithoutPort(*host), rules);
  if (!resource->path_style) {
    TakeAccountOfHost(HostWithoutPort(*host), resource);
  } else if (MaybeError error = TakeAccountPath(&path, resource)) {
    return error;
  }
  MaybeError error = ParseResourcePath(path, resource);
  std::string_view rest = path;
  const std::string_view first = TakeSegment(&rest).value_or(std::string_view());
  const bool names_account = rest.size() > 1 && first.find_first_of("('") == first.npos;
  if (error && error->code == ErrorCode::kInvalidUri && !resource->path_style && names_account) {
    // One who asks a machine by its full name, and names the account as on loopback.
    return ServiceError(
               ErrorCode::kInvalidUri,
               "The URL could not be parsed: the account is taken from the host name '" +
                   std::string(HostWithoutPort(*host)) +
                   "'. To name it in the path, add the host to path-style-hosts of the settings file.")
        .Early();
  }
  return error;
}

std::optional<ServiceError> ParseInnerResource(std::string_view url, const Resource& outer,
                                               Resource* resource) {
  *resource = Resource();
  resource->account = outer.account;
  resource->secondary = outer.secondary;
  resource->path_style = outer.path_style;
  resource->base = outer.base;
  const bool absolute = TakeAuthority(&url).has_value();
  SetPathAndQuery(url, resource);

  // `orders` is relative to the service, like `/orders`. The first segment ends at a slash within the path
  // even so, because TakeSegment wants one in front.
  std::string_view path = resource->path;
  std::string with_slash;
  if (!absolute && !path.starts_with('/')) {
    with_slash = "/" + std::string(path);
    path = with_slash;
  }
  // A lone segment is the thing itself, also when a table has the account's name.
  std::string_view after = path;
  std::string_view first = TakeSegment(&after).value_or(std::string_view());
  if (!after.empty()) {
    const bool secondary = TakeSecondarySuffix(&first);
    if (first != outer.account) {
      // Another account's path; a slash within a key is told as such.
      return BadSyntax();
    }
    path = after;
    if (secondary) TakeRepeatedAccount(first, &path);
  }
  return ParseResourcePath(path, resource);
}

}  // namespace partita::http
