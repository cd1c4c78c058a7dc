#include "api/http/access_policies.h"

#include <algorithm>

#include "api/date_time.h"
#include "api/http/http_date.h"
#include "api/http/json_text.h"
#include "api/http/xml_reader.h"
#include "engine/base/text.h"

namespace partita::http {

namespace {

constexpr std::string_view kHead = "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>";
constexpr std::string_view kPermissions = "raud";
constexpr size_t kDateSize = 10;  // YYYY-MM-DD

// Each letter once, where it stands first: repeated they say no more, and would be kept and given back by the
// ten thousand.
std::string EachOnce(std::string_view letters) {
  std::string once;
  for (const char letter : letters) {
    if (once.find(letter) == once.npos) once += letter;
  }
  return once;
}

// A moment as an ACL gives it: as a SAS does, or with an offset in the place of `Z`, which azure-xml for Java
// sends for who is not in UTC. The reference does not say what the service answers to that; what is meant is
// plain.
std::optional<DateTime> ParsePolicyTime(std::string_view text) {
  const bool is_date = text.size() == kDateSize;
  const bool has_zone = text.ends_with('Z') || text.find_first_of("+-", kDateSize) != text.npos;
  if (!is_date && !has_zone) return std::nullopt;
  // Nine digits are refused (recorded), unlike in a value.
  if (FractionDigits(text) > kFractionDigitsKept) return std::nullopt;
  Result<DateTime> time = ParseDateTime(is_date ? std::string(text).append("T00:00Z") : std::string(text));
  if (!time.ok()) return std::nullopt;
  return *time;
}

// An empty element says as much as none.
std::optional<ServiceError> ReadTime(const XmlElement* node, std::optional<DateTime>* time) {
  if (node == nullptr) return std::nullopt;
  const std::optional<std::string> text = TrimmedTextOf(*node);
  if (!text) return InvalidDocument();
  if (text->empty()) return std::nullopt;
  *time = ParsePolicyTime(*text);
  if (!*time) return InvalidDocument();
  return std::nullopt;
}

std::optional<ServiceError> ReadAccessPolicy(const XmlElement& node, StoredPolicy* policy) {
  if (!node.HoldsOnly({"Start", "Expiry", "Permission"})) return InvalidDocument();
  if (auto refused = ReadTime(node.Child("Start"), &policy->start)) return refused;
  if (auto refused = ReadTime(node.Child("Expiry"), &policy->expiry)) return refused;
  if (const XmlElement* permission = node.Child("Permission")) {
    const std::optional<std::string> text = TrimmedTextOf(*permission);
    if (!text) return InvalidDocument();
    if (text->find_first_not_of(kPermissions) != text->npos) {
      return ServiceError(ErrorCode::kInvalidXmlNodeValue).AsXml();
    }
    policy->permission = EachOnce(*text);
  }
  return std::nullopt;
}

std::optional<ServiceError> ReadIdentifier(const XmlElement& node, StoredPolicy* policy) {
  if (node.name != "SignedIdentifier" || !node.HoldsOnly({"Id", "AccessPolicy"})) {
    return InvalidDocument();
  }
  // Without an Id: recorded.
  const XmlElement* const named = node.Child("Id");
  const std::optional<std::string> id = named != nullptr ? TextOf(*named) : std::nullopt;
  // One of blanks alone would not be read back: between elements blanks mean nothing.
  const bool blank = !id || id->find_first_not_of(" \t\r\n") == id->npos;
  if (blank || Utf16Units(*id) > kStoredPolicyIdUnitsMax) return InvalidDocument();
  policy->id = *id;
  const XmlElement* terms = node.Child("AccessPolicy");
  return terms != nullptr ? ReadAccessPolicy(*terms, policy) : std::nullopt;
}

void AppendTime(std::string* out, const char* name, const std::optional<DateTime>& time) {
  if (!time) return;
  out->append("<").append(name).append(">");
  AppendSevenDigitTime(out, *time);
  out->append("</").append(name).append(">");
}

void AppendIdentifier(std::string* out, const StoredPolicy& policy) {
  out->append("<SignedIdentifier><Id>");
  AppendXmlText(out, policy.id);
  out->append("</Id>");
  // One without terms is not given back: recorded.
  if (policy.start || policy.expiry || !policy.permission.empty()) {
    out->append("<AccessPolicy>");
    AppendTime(out, "Start", policy.start);
    AppendTime(out, "Expiry", policy.expiry);
    if (!policy.permission.empty()) {
      out->append("<Permission>").append(policy.permission).append("</Permission>");
    }
    out->append("</AccessPolicy>");
  }
  out->append("</SignedIdentifier>");
}

}  // namespace

const StoredPolicy* StoredPolicies::Find(std::string_view id) const {
  const auto it =
      std::find_if(policies.begin(), policies.end(), [id](const auto& policy) { return policy.id == id; });
  return it == policies.end() ? nullptr : &*it;
}

std::optional<DateTime> ParseSasTime(std::string_view text) {
  const bool has_offset = text.size() > kDateSize && !text.ends_with('Z');
  return has_offset ? std::nullopt : ParsePolicyTime(text);
}

std::optional<ServiceError> ReadAccessPolicies(std::string_view xml, StoredPolicies* policies) {
  StoredPolicies read;
  if (!xml.empty()) {
    XmlElement root;
    if (auto refused = ParseXml(xml, "SignedIdentifiers", &root)) return refused;
    if (!root.HoldsElementsOnly()) return InvalidDocument();
    for (const XmlElement& node : root.children) {
      StoredPolicy policy;
      if (read.policies.size() == kStoredPoliciesMax) return InvalidDocument();
      if (auto refused = ReadIdentifier(node, &policy)) return refused;
      if (read.Find(policy.id) != nullptr) return InvalidDocument();
      read.policies.push_back(std::move(policy));
    }
  }
  *policies = std::move(read);
  return std::nullopt;
}

std::string WriteAccessPolicies(const StoredPolicies& policies) {
  std::string xml(kHead);
  if (policies.policies.empty()) return xml.append("<SignedIdentifiers />");
  xml.append("<SignedIdentifiers>");
  for (const StoredPolicy& policy : policies.policies) AppendIdentifier(&xml, policy);
  return xml.append("</SignedIdentifiers>");
}

}  // namespace partita::http
