#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/access_policies.h"
#include "api/http/authorization.h"
#include "api/http/sas_token.h"
#include "api/http/service_properties.h"

// A request's first line and headers, from whoever sends them, up to a decision: nothing crashes, and
// nothing is granted without a signature. The key is drawn anew by each process, so what is granted to
// the input as it stands would be a forgery. The same token is then signed rightly, to reach what lies
// behind the signature.
//
// Input: lines. The first is the target, the second the address of the client, the others `Name: value`.
// What follows an empty line is tried as the XML bodies that a client may store.

namespace {

using namespace partita::http;  // A fuzz target is a program of its own.

void Require(bool condition) {
  if (!condition) std::abort();
}

constexpr std::string_view kHost = "127.0.0.1:10002";

class EveryPolicy : public PolicySource {
 public:
  partita::Result<std::shared_ptr<const StoredPolicies>> Policies(std::string_view,
                                                                  std::string_view) override {
    StoredPolicies policies;
    policies.policies = {{.id = "p", .permission = "raud"},
                         {.id = "e", .expiry = partita::DateTime{1u << 30}}};
    return std::make_shared<const StoredPolicies>(std::move(policies));
  }
};

const AccountSet& Accounts() {
  // A key that nobody knows: what a stranger, whose keys are random, signs.
  static const AccountSet kAccounts = [] {
    AccountSet drawn = std::move(*AccountSet::Create({}));
    const std::string key = drawn.FindOrStranger("").Sign("key");
    return std::move(*AccountSet::Create({{.name = "acct1", .keys = {key}}}));
  }();
  return kAccounts;
}

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

std::optional<ServiceError> Authorize(const HttpRequest& request, Grant* grant) {
  static EveryPolicy policies;
  static const Authorizer kAuthorizer(Accounts(), &policies);
  Resource resource;
  if (auto refused = ParseResource(request.target, kHost, request.secure, AddressRules(), &resource)) {
    return refused;
  }
  QueryParameters query;
  if (auto refused = query.Parse(resource.query)) return refused;
  return kAuthorizer.Authorize(request, resource, query, grant);
}

// Whatever a token says, it opens one table and no more than its range.
void RequireBounds(const Grant& grant, const SasToken& token) {
  if (token.kind != SasKind::kTable) return;
  for (int i = static_cast<int>(Operation::kQueryTables); i <= static_cast<int>(Operation::kGetServiceStats);
       ++i) {
    Require(grant.Check(static_cast<Operation>(i), token.table).has_value());
  }
  Require(grant.Check(Operation::kQueryEntities, std::string(token.table) + "x").has_value());
  if (const KeyRange* range = grant.key_range()) {
    for (const std::string_view key : {token.lower_partition, token.upper_partition, std::string_view("m")}) {
      const bool inside = range->Contains(key, key);
      Require(inside == !grant.CheckKey(Operation::kDeleteEntity, key, key).has_value());
    }
  }
}

void TrySigned(HttpRequest request) {
  const size_t mark = request.target.find('?');
  if (mark == request.target.npos) return;
  QueryParameters query;
  if (query.Parse(request.target.substr(mark + 1)) || query.Has("sig")) return;
  const std::optional<SasToken> token = ReadSasToken(query);
  if (!token) return;
  const std::string text = token->kind == SasKind::kTable
                               ? TableSasText(*token, "acct1")
                               : AccountSasText(*token, "acct1", EncryptionScopeLine::kByVersion);
  std::string target(request.target);
  target.append("&sig=");
  for (const char c : Accounts().Find("acct1")->Sign(text)) {
    target.append(c == '+' ? "%2B" : std::string(1, c));
  }
  request.target = target;
  request.headers.clear();
  Grant grant;
  if (!Authorize(request, &grant)) RequireBounds(grant, *token);
}

void TryBodies(std::string_view body) {
  StoredPolicies policies;
  if (!ReadAccessPolicies(body, &policies)) {
    StoredPolicies again;
    Require(!ReadAccessPolicies(WriteAccessPolicies(policies), &again) &&
            again.policies == policies.policies);
  }
  ServiceProperties properties;
  if (!UpdateServiceProperties(body, &properties)) {
    ServiceProperties again;
    Require(!UpdateServiceProperties(WriteServiceProperties(properties), &again) && again == properties);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  HttpRequest request;
  request.method = Method::kGet;
  request.method_text = "GET";
  request.target = TakeLine(&text);
  request.remote_address = TakeLine(&text);
  request.arrived_ticks = 1u << 20;
  while (!text.empty()) {
    const std::string_view line = TakeLine(&text);
    if (line.empty()) break;
    const size_t colon = std::min(line.find(": "), line.size());
    request.headers.push_back({line.substr(0, colon), line.substr(std::min(colon + 2, line.size()))});
  }
  Grant grant;
  Require(Authorize(request, &grant).has_value());
  Require(grant.Check(Operation::kQueryEntities, "t").has_value());
  TrySigned(request);
  TryBodies(text);
  return 0;
}
