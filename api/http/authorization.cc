#include "api/http/authorization.h"

#include <algorithm>

#include "api/ascii.h"
#include "api/http/http_date.h"
#include "api/http/resource.h"
#include "api/http/sas_token.h"
#include "api/http/source_range.h"
#include "engine/catalog.h"

namespace partita::http {

namespace {

// From this version on who gives no credentials is told how to get a token (spec 14.6).
constexpr std::string_view kChallengeVersionMin = "2020-12-06";

ServiceError NotAuthenticated() { return ServiceError(ErrorCode::kAuthenticationFailed).AsXml(); }

ServiceError Malformed() { return ServiceError(ErrorCode::kInvalidAuthenticationInfo).AsXml(); }

ServiceError Challenge() {
  ServiceError error(ErrorCode::kInvalidAuthenticationInfo,
                     "Server failed to authenticate the request. Please refer to the information in the "
                     "www-authenticate header.");
  error.status = 401;
  error.challenge = true;
  return std::move(error).AsXml();
}

// Neither a header nor a token. A missing version means the newest.
ServiceError Anonymous(const HttpRequest& request, const QueryParameters& query) {
  std::optional<std::string_view> version = request.Header("x-ms-version");
  if (!version) version = query.Find("api-version");
  return !version || *version >= kChallengeVersionMin ? Challenge() : NotAuthenticated();
}

// ---- Shared Key.

struct SharedKeyHeader {
  bool lite = false;
  std::string_view account;
  std::string_view signature;
};

// Nothing when it is neither scheme, or malformed.
std::optional<SharedKeyHeader> ParseSharedKey(std::string_view authorization) {
  const size_t space = authorization.find(' ');
  const std::string_view scheme = authorization.substr(0, space);
  if (scheme != "SharedKey" && scheme != "SharedKeyLite") return std::nullopt;
  if (space == authorization.npos) return std::nullopt;
  const std::string_view credentials = TrimBlanks(authorization.substr(space));
  const size_t colon = credentials.find(':');
  if (colon == credentials.npos) return std::nullopt;
  return SharedKeyHeader{scheme == "SharedKeyLite", credentials.substr(0, colon),
                         credentials.substr(colon + 1)};
}

// What stands before the CanonicalizedResource (spec 14.1, 14.2).
void AppendSignedHeaders(std::string* text, const HttpRequest& request, bool lite, std::string_view date) {
  if (!lite) {
    text->append(request.method_text).push_back('\n');
    text->append(request.Header("Content-MD5").value_or("")).push_back('\n');
    text->append(request.Header("Content-Type").value_or("")).push_back('\n');
  }
  text->append(date).push_back('\n');
}

// The CanonicalizedResource (spec 14.3) is "/", the account, and these paths, then `comp`. A secondary
// address in path style is signed in several ways: the client from Python leaves the suffix out, others
// may sign the path as it stands or without the account's second appearance.
struct SignedPaths {
  std::string_view path;  // As sent.
  // Of a secondary address in path style alone; else `rest` is not used.
  bool with_variants = false;
  std::string_view rest;  // After the account's names.
};

SignedPaths PathsOf(const Resource& resource) {
  SignedPaths paths;
  paths.path = resource.path.empty() ? std::string_view("/") : resource.path;
  if (!resource.secondary || !resource.path_style) return paths;
  paths.with_variants = true;
  // "/ACCOUNT-secondary", then maybe "/ACCOUNT" and a slash: without it that is a table's name.
  paths.rest =
      paths.path.substr(std::min(paths.path.size(), 1 + resource.account.size() + kSecondarySuffix.size()));
  const std::string_view rest = paths.rest;
  const size_t doubled = 1 + resource.account.size();
  if (rest.size() > doubled && rest[0] == '/' && rest[doubled] == '/' &&
      rest.substr(1, resource.account.size()) == resource.account) {
    paths.rest.remove_prefix(doubled);
  }
  return paths;
}

// Tries each canonical form behind the headers, which `*text` holds.
class ResourceVerifier {
 public:
  ResourceVerifier(const Account& account, const Resource& resource, const QueryParameters& query,
                   std::string_view signature, std::string* text)
      : account_(account),
        resource_(resource),
        comp_(query.raw_comp()),
        signature_(signature),
        text_(text),
        headers_size_(text->size()) {}

  bool Verify() {
    const SignedPaths paths = PathsOf(resource_);
    if (TryPath("", "", paths.path)) return true;
    if (!paths.with_variants) return false;
    return TryPath("/", resource_.account, paths.rest) ||
           TryPath("/", resource_.account, kSecondarySuffix, paths.rest);
  }

 private:
  template <typename... Pieces>
  bool TryPath(Pieces... pieces) {
    text_->resize(headers_size_);
    text_->append("/").append(resource_.account);
    (text_->append(pieces), ...);
    if (comp_) text_->append("?comp=").append(*comp_);
    return account_.Verify(*text_, signature_);
  }

  const Account& account_;
  const Resource& resource_;
  const std::optional<std::string> comp_;
  const std::string_view signature_;
  std::string* text_;
  const size_t headers_size_;
};

// ---- SAS.

// A bit for each letter; nothing when one is not of `allowed`.
std::optional<uint32_t> LetterBits(std::string_view letters, std::string_view allowed) {
  uint32_t bits = 0;
  for (const char letter : letters) {
    if (allowed.find(letter) == allowed.npos) return std::nullopt;
    bits |= uint32_t{1} << (letter - 'a');
  }
  return bits;
}

constexpr std::string_view kTablePermissions = "raud";
constexpr std::string_view kAnyLetter = "abcdefghijklmnopqrstuvwxyz";

bool VerifySas(const SasToken& token, const Account& account, std::string_view name) {
  if (token.kind == SasKind::kTable) return account.Verify(TableSasText(token, name), token.signature);
  if (account.Verify(AccountSasText(token, name, EncryptionScopeLine::kByVersion), token.signature)) {
    return true;
  }
  return HasEncryptionScopeLine(token) &&
         account.Verify(AccountSasText(token, name, EncryptionScopeLine::kLeftOut), token.signature);
}

// What a token and the stored policy that it names say together.
struct SasTerms {
  std::optional<DateTime> start;
  std::optional<DateTime> expiry;
  std::string_view permission;
};

// A moment of the token. False when there is one that cannot be read.
bool ReadTime(std::string_view text, std::optional<DateTime>* time) {
  if (text.empty()) return true;
  *time = ParseSasTime(text);
  return time->has_value();
}

// Adds what the policy says. A field of both is refused, though the code is unconfirmed.
std::optional<ServiceError> MergePolicy(const StoredPolicy& policy, SasTerms* terms) {
  if ((policy.start && terms->start) || (policy.expiry && terms->expiry) ||
      (!policy.permission.empty() && !terms->permission.empty())) {
    return ServiceError(ErrorCode::kInvalidQueryParameterValue).AsXml();
  }
  if (policy.start) terms->start = policy.start;
  if (policy.expiry) terms->expiry = policy.expiry;
  if (!policy.permission.empty()) terms->permission = policy.permission;
  return std::nullopt;
}

// Who may send it, and how.
std::optional<ServiceError> CheckTransport(const SasToken& token, const HttpRequest& request) {
  if (!token.source.empty()) {
    const std::optional<SourceRange> range = SourceRange::Parse(token.source);
    if (!range) return NotAuthenticated();
    if (!range->Contains(request.remote_address)) {
      return ServiceError(ErrorCode::kAuthorizationSourceIPMismatch);
    }
  }
  if (token.protocol.empty() || token.protocol == "https,http" || token.protocol == "http,https") {
    return std::nullopt;
  }
  if (token.protocol != "https") return NotAuthenticated();
  if (!request.secure) return ServiceError(ErrorCode::kAuthorizationProtocolMismatch);
  return std::nullopt;
}

// An empty bound is no bound: the signed text is the same, so one could be turned into the other. Only a
// row key shows that the empty PartitionKey is meant. False when a row key stands alone.
bool ReadBound(std::string_view partition, bool has_partition, std::string_view row,
               std::optional<std::string>* partition_bound, std::optional<std::string>* row_bound) {
  if (!row.empty() && !has_partition) return false;
  if (partition.empty() && row.empty()) return true;
  *partition_bound = std::string(partition);
  if (!row.empty()) *row_bound = std::string(row);
  return true;
}

bool ReadRange(const SasToken& token, KeyRange* range) {
  return ReadBound(token.lower_partition, token.has_lower_partition, token.lower_row, &range->lower_partition,
                   &range->lower_row) &&
         ReadBound(token.upper_partition, token.has_upper_partition, token.upper_row, &range->upper_partition,
                   &range->upper_row);
}

}  // namespace

std::optional<ServiceError> Authorizer::Authorize(const HttpRequest& request, const Resource& resource,
                                                  const QueryParameters& query, Grant* grant) const {
  *grant = Grant();
  grant->secondary_ = resource.secondary || options_.read_only;
  // With both a header and a token the header counts (rule).
  if (const auto header = request.Header("Authorization")) {
    if (request.HeaderCount("Authorization") > 1) return Malformed();
    return AuthorizeByHeader(request, *header, resource, query, grant);
  }
  if (query.Has("sig")) return AuthorizeByToken(request, resource, query, grant);
  return Anonymous(request, query);
}

std::optional<ServiceError> Authorizer::AuthorizeByHeader(const HttpRequest& request,
                                                          std::string_view authorization,
                                                          const Resource& resource,
                                                          const QueryParameters& query, Grant* grant) const {
  if (authorization.substr(0, authorization.find(' ')) == "Bearer") return Challenge();
  const std::optional<SharedKeyHeader> header = ParseSharedKey(authorization);
  if (!header) return Malformed();

  std::optional<std::string_view> date = request.Header("x-ms-date");
  if (!date) date = request.Header("Date");
  const std::optional<DateTime> time = ParseHttpDate(date.value_or(""));
  if (!time) return NotAuthenticated();
  const uint64_t now = request.arrived_ticks;
  const uint64_t apart = time->ticks > now ? time->ticks - now : now - time->ticks;
  if (apart > options_.clock_window_ticks) return NotAuthenticated();

  const Account& account = accounts_.FindOrStranger(resource.account);
  thread_local std::string text;  // Keeps its memory from request to request.
  text.clear();
  AppendSignedHeaders(&text, request, header->lite, *date);
  const bool verified = ResourceVerifier(account, resource, query, header->signature, &text).Verify();
  if (!verified || header->account != resource.account) return NotAuthenticated();
  if (account.disabled()) return ServiceError(ErrorCode::kAccountIsDisabled).AsXml();
  grant->kind_ = Grant::Kind::kAccountKey;
  return std::nullopt;
}

std::optional<ServiceError> Authorizer::AuthorizeByToken(const HttpRequest& request, const Resource& resource,
                                                         const QueryParameters& query, Grant* grant) const {
  const std::optional<SasToken> token = ReadSasToken(query);
  if (!token) return NotAuthenticated();
  const Account& account = accounts_.FindOrStranger(resource.account);
  if (!VerifySas(*token, account, resource.account)) return NotAuthenticated();
  if (account.disabled()) return ServiceError(ErrorCode::kAccountIsDisabled).AsXml();

  SasTerms terms{.permission = token->permission};
  if (!ReadTime(token->start, &terms.start) || !ReadTime(token->expiry, &terms.expiry)) {
    return NotAuthenticated();
  }
  std::shared_ptr<const StoredPolicies> policies;  // terms may point into it.
  if (!token->policy.empty()) {
    if (policies_ != nullptr) {
      Result<std::shared_ptr<const StoredPolicies>> found =
          policies_->Policies(resource.account, token->table);
      if (!found.ok()) return ErrorOfStatus(found.status(), /*for_table=*/true);
      policies = std::move(*found);
    }
    const StoredPolicy* policy = policies == nullptr ? nullptr : policies->Find(token->policy);
    if (policy == nullptr) return NotAuthenticated();
    if (auto refused = MergePolicy(*policy, &terms)) return refused;
  }
  const uint64_t now = request.arrived_ticks;
  if (!terms.expiry || terms.expiry->ticks <= now) return NotAuthenticated();
  if (terms.start && terms.start->ticks > now) return NotAuthenticated();

  const bool of_table = token->kind == SasKind::kTable;
  const auto permissions = LetterBits(terms.permission, of_table ? kTablePermissions : kAnyLetter);
  const auto types = LetterBits(token->resource_types, kAnyLetter);
  if (!permissions || *permissions == 0 || !types) return NotAuthenticated();
  if (auto refused = CheckTransport(*token, request)) return refused;
  if (!of_table && token->services.find('t') == token->services.npos) {
    return ServiceError(ErrorCode::kAuthorizationServiceMismatch);
  }
  if (of_table && !ReadRange(*token, &grant->range_)) return NotAuthenticated();
  grant->kind_ = of_table ? Grant::Kind::kTableSas : Grant::Kind::kAccountSas;
  grant->permissions_ = *permissions;
  grant->resource_types_ = *types;
  grant->table_ = FoldCase(token->table);
  return std::nullopt;
}

}  // namespace partita::http
