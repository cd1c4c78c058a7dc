#pragma once
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/date_time.h"
#include "api/http/authorization.h"
#include "api/http/http_date.h"
#include "engine/catalog.h"

namespace partita::http {

// What the vectors of spec 14 use, all made up.
inline constexpr const char* kContosoKey =
    "cW/v/E7TrIw7LD13KgOQmnbqDmWdreuqsZ339o+SMYKWm4zU0Idg56iJd7PMMQK5om4fbk8ujMkdrz/WmXNC5A==";
inline constexpr const char* kAcct1Key = "bXktZmFrZS1rZXktZm9yLXRlc3RzLW9ubHktMDEyMzQ1Njc4OQ==";

inline uint64_t Ticks(std::string_view text) { return ParseDateTime(text)->ticks; }

// A request that owns its text. Host style, as contoso, unless the target begins with /acct1.
struct SentRequest {
  std::string method = "GET";
  std::string target = "/Tables";
  std::vector<std::pair<std::string, std::string>> headers;
  bool secure = true;
  std::string remote_address = "10.0.0.1";
  uint64_t arrived_ticks = Ticks("2025-01-15T10:20:30Z");

  SentRequest& With(std::string name, std::string value) {
    headers.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  std::string host() const {
    return target.starts_with("/acct1") || target.starts_with("/disabled1")
               ? "127.0.0.1:10002"
               : "contoso.table.core.windows.net";
  }
  // Views into this.
  HttpRequest View() const {
    HttpRequest request;
    request.method = MethodFromName(method);
    request.method_text = method;
    request.target = target;
    for (const auto& [name, value] : headers) request.headers.push_back({name, value});
    request.secure = secure;
    request.remote_address = remote_address;
    request.arrived_ticks = arrived_ticks;
    return request;
  }
};

// Policies by account and folded table.
class FakePolicies : public PolicySource {
 public:
  Result<std::shared_ptr<const StoredPolicies>> Policies(std::string_view account,
                                                         std::string_view table) override {
    const auto it = policies.find({std::string(account), FoldCase(table)});
    return it == policies.end() ? nullptr : std::make_shared<const StoredPolicies>(it->second);
  }
  std::map<std::pair<std::string, std::string>, StoredPolicies> policies;
};

// Accounts `contoso`, `acct1` (which has a second key) and `disabled1`, and an authorizer over them.
struct AuthorizationWorld {
  AuthorizationWorld()
      : accounts(std::move(
            *AccountSet::Create({{.name = "contoso", .keys = {kContosoKey}},
                                 {.name = "acct1", .keys = {std::string(kDevelopmentKey), kAcct1Key}},
                                 {.name = "disabled1", .keys = {kContosoKey}, .disabled = true}}))),
        authorizer(accounts, &policies) {}

  std::optional<ServiceError> Authorize(const SentRequest& sent, Grant* grant) const {
    const HttpRequest request = sent.View();
    const std::string host = sent.host();
    Resource resource;
    if (auto refused = ParseResource(request.target, host, request.secure, AddressRules(), &resource)) {
      return refused;
    }
    QueryParameters query;
    if (auto refused = query.Parse(resource.query)) return refused;
    return authorizer.Authorize(request, resource, query, grant);
  }

  // The code of the refusal with its status, such as "403 AuthenticationFailed"; "ok" without one.
  std::string Answer(const SentRequest& sent) const {
    Grant grant;
    return Text(Authorize(sent, &grant));
  }
  // The same for an operation that the request is about.
  std::string Answer(const SentRequest& sent, Operation operation, std::string_view table) const {
    Grant grant;
    if (auto refused = Authorize(sent, &grant)) return Text(refused);
    return Text(grant.Check(operation, table));
  }
  static std::string Text(const std::optional<ServiceError>& error) {
    if (!error) return "ok";
    return std::to_string(error->status) + " " + std::string(ErrorCodeName(error->code));
  }

  AccountSet accounts;
  FakePolicies policies;
  Authorizer authorizer;
};

// Percent-encodes all but letters and digits.
inline std::string Encoded(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte)) {
      out.push_back(c);
    } else {
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

}  // namespace partita::http
