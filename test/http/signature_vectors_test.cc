// Runs test/vectors/signatures.json, every vector of it.
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <functional>

#include "api/http/sas_token.h"
#include "test/api/vector_file.h"
#include "test/http/authorization_world.h"

namespace partita::http {
namespace {

const JsonValue& Vectors() {
  static const JsonValue kVectors = LoadVectors("signatures.json");
  return kVectors;
}

std::string AfterColon(const std::string& authorization) {
  return authorization.substr(authorization.find(':') + 1);
}

SentRequest RequestOf(const JsonValue& vector) {
  SentRequest sent;
  sent.method = vector["method"].text;
  sent.target = vector["path"].text;
  if (!vector["query"].text.empty()) sent.target += "?" + vector["query"].text;
  const JsonValue& headers = vector["headers"];
  for (size_t i = 0; i < headers.names.size(); ++i) sent.With(headers.names[i], headers.items[i].text);
  const std::string date = headers.Has("x-ms-date") ? headers["x-ms-date"].text : headers["Date"].text;
  sent.arrived_ticks = ParseHttpDate(date)->ticks;
  return sent;
}

TEST(SignatureVectorsTest, SharedKeyAndSharedKeyLiteAreAsTheClientsSignThem) {
  const AuthorizationWorld world;
  const JsonValue& vectors = Vectors()["shared_key"];
  EXPECT_EQ(vectors.items.size(), 25u);
  for (const JsonValue& vector : vectors.items) {
    SCOPED_TRACE(vector["id"].text);
    const SigningKey key = *SigningKey::FromBase64(vector["key"].text);
    for (const std::string scheme : {"sharedkey", "sharedkeylite"}) {
      const std::string& authorization = vector[scheme + "_authorization"].text;
      EXPECT_EQ(key.Sign(vector[scheme + "_string_to_sign"].text), AfterColon(authorization));
      SentRequest sent = RequestOf(vector).With("Authorization", authorization);
      EXPECT_EQ(world.Answer(sent), "ok") << scheme;
      sent.target.insert(sent.target.find_last_of("/)") + 1, "x");
      EXPECT_NE(world.Answer(sent), "ok") << scheme;
    }
  }
}

TEST(SignatureVectorsTest, EachFormOfASecondaryAddressIsAccepted) {
  const AuthorizationWorld world;
  for (const JsonValue& vector : Vectors()["secondary"].items) {
    EXPECT_EQ(vector["accept_any_of"].items.size(), 3u);
    for (const JsonValue& form : vector["accept_any_of"].items) {
      SCOPED_TRACE(form["canonicalized_resource"].text);
      SentRequest sent = RequestOf(vector);
      sent.With("Authorization", "SharedKey acct1:" + form["sharedkey_signature"].text);
      EXPECT_EQ(world.Answer(sent, Operation::kGetServiceStats, ""), "ok");
      EXPECT_EQ(world.Answer(sent, Operation::kInsertEntity, "t"), "403 InsufficientAccountPermissions");
      sent.headers.back().second[30] ^= 1;
      EXPECT_EQ(world.Answer(sent), "403 AuthenticationFailed");
    }
  }
}

// A vector that says "<correct for...>" or "20 minutes before now" is made so.
TEST(SignatureVectorsTest, MalformedAndWrongHeadersAreRefusedWithTheirCodes) {
  const AuthorizationWorld world;
  EXPECT_EQ(Vectors()["header_failures"].items.size(), 10u);
  for (const JsonValue& vector : Vectors()["header_failures"].items) {
    SCOPED_TRACE(vector["id"].text);
    const JsonValue& headers = vector["headers"];
    SentRequest sent;
    std::string date = headers["x-ms-date"].text;
    constexpr uint64_t kTwentyMinutes = 20 * 60 * kTicksPerSecond;
    if (date == "20 minutes before now") date = FormatHttpDate({sent.arrived_ticks - kTwentyMinutes});
    if (date == "20 minutes after now") date = FormatHttpDate({sent.arrived_ticks + kTwentyMinutes});
    if (!date.empty()) sent.With("x-ms-date", date);
    std::string authorization = headers["Authorization"].text;
    if (const size_t mark = authorization.find('<'); mark != authorization.npos) {
      authorization.resize(mark);
      authorization += world.accounts.Find("contoso")->Sign("GET\n\n\n" + date + "\n/contoso/Tables");
    }
    if (!authorization.empty()) sent.With("Authorization", authorization);
    sent.With("x-ms-version", vector.Has("version") ? vector["version"].text : "2019-02-02");
    const std::string expected =
        std::to_string(static_cast<int>(vector["status"].number)) + " " + vector["code"].text;
    EXPECT_EQ(world.Answer(sent), expected);
    Grant grant;
    const auto refused = world.Authorize(sent, &grant);
    ASSERT_TRUE(refused.has_value());
    EXPECT_TRUE(refused->as_xml);
    EXPECT_EQ(refused->challenge, refused->status == 401);
    EXPECT_NE(AuthorizationWorld::Text(grant.Check(Operation::kQueryTables, "")), "ok");
  }
}

// A request with a SAS of the vectors, in the middle of every validity that they have.
SentRequest WithSas(const JsonValue& vector, std::string path) {
  SentRequest sent;
  sent.target = (vector["account"].text == "acct1" ? "/acct1" : "") + path + "?" + vector["query"].text;
  sent.arrived_ticks = Ticks("2025-02-01T00:00:00Z");
  return sent;
}

const JsonValue& Sas(std::string_view id) {
  for (const char* kind : {"service_sas", "account_sas"}) {
    for (const JsonValue& vector : Vectors()[kind].items) {
      if (vector["id"].text == id) return vector;
    }
  }
  static const JsonValue kNone;
  ADD_FAILURE() << id;
  return kNone;
}

StoredPolicies ReadersWith(std::optional<DateTime> expiry, std::string permission) {
  StoredPolicies policies;
  policies.policies.push_back({.id = "readers", .expiry = expiry, .permission = std::move(permission)});
  return policies;
}

TEST(SignatureVectorsTest, TableSasAreSignedAsDocumentedForEachVersion) {
  AuthorizationWorld world;
  EXPECT_EQ(Vectors()["service_sas"].items.size(), 16u);
  for (const JsonValue& vector : Vectors()["service_sas"].items) {
    SCOPED_TRACE(vector["id"].text);
    QueryParameters query;
    ASSERT_FALSE(query.Parse(vector["query"].text));
    const std::optional<SasToken> token = ReadSasToken(query);
    ASSERT_TRUE(token.has_value());
    const std::string text = TableSasText(*token, vector["account"].text);
    EXPECT_EQ(text, vector["string_to_sign"].text);
    EXPECT_EQ(SigningKey::FromBase64(vector["key"].text)->Sign(text), vector["signature"].text);

    const bool with_policy = vector["fields"].Has("si");
    const bool with_expiry = vector["fields"].Has("se");
    if (with_policy) {
      const std::optional<DateTime> expiry{DateTime{Ticks("2031-01-01T00:00:00Z")}};
      world.policies.policies[{"contoso", "orders"}] = ReadersWith(with_expiry ? std::nullopt : expiry, "r");
    }
    const std::string table = vector["fields"]["tn"].text;
    const std::string permission = with_policy ? "r" : vector["fields"]["sp"].text;
    const auto answer = [&](Operation operation) {
      return world.Answer(WithSas(vector, "/" + table + "()"), operation, table);
    };
    const bool reads = permission.find('r') != permission.npos;
    EXPECT_EQ(answer(Operation::kQueryEntities), reads ? "ok" : "403 AuthorizationPermissionMismatch");
    EXPECT_EQ(answer(Operation::kQueryTables), "403 AuthorizationFailure");
  }
}

TEST(SignatureVectorsTest, AccountSasAreSignedAsDocumentedForEachVersion) {
  const AuthorizationWorld world;
  EXPECT_EQ(Vectors()["account_sas"].items.size(), 6u);
  for (const JsonValue& vector : Vectors()["account_sas"].items) {
    SCOPED_TRACE(vector["id"].text);
    QueryParameters query;
    ASSERT_FALSE(query.Parse(vector["query"].text));
    const std::optional<SasToken> token = ReadSasToken(query);
    ASSERT_TRUE(token.has_value());
    const std::string text = AccountSasText(*token, "contoso", EncryptionScopeLine::kByVersion);
    EXPECT_EQ(text, vector["string_to_sign"].text);
    EXPECT_EQ(SigningKey::FromBase64(vector["key"].text)->Sign(text), vector["signature"].text);
    SentRequest sent = WithSas(vector, "/Tables");
    sent.remote_address = "192.168.0.7";
    const bool for_tables = vector["fields"]["ss"].text.find('t') != std::string::npos;
    EXPECT_EQ(world.Answer(sent), for_tables ? "ok" : "403 AuthorizationServiceMismatch");
  }
}

// ---- Permissions.

const std::map<std::string, std::vector<Operation>>& OperationsByText() {
  static const std::map<std::string, std::vector<Operation>> kOperations = {
      {"query entities", {Operation::kQueryEntities}},
      {"get entity", {Operation::kGetEntity}},
      {"query/get entities", {Operation::kQueryEntities, Operation::kGetEntity}},
      {"insert entity", {Operation::kInsertEntity}},
      {"update (PUT/MERGE with If-Match)", {Operation::kUpdateEntity}},
      {"update/merge", {Operation::kUpdateEntity}},
      {"delete entity", {Operation::kDeleteEntity}},
      {"insert-or-replace / insert-or-merge (no If-Match)", {Operation::kUpsertEntity}},
      {"insert-or-*", {Operation::kUpsertEntity}},
      {"list tables", {Operation::kQueryTables}},
      {"create table", {Operation::kCreateTable}},
      {"delete table", {Operation::kDeleteTable}},
      {"get/set ACL", {Operation::kGetTableAcl, Operation::kSetTableAcl}},
      {"service properties", {Operation::kGetServiceProperties, Operation::kSetServiceProperties}},
      {"stats", {Operation::kGetServiceStats}},
      {"get service properties, stats", {Operation::kGetServiceProperties, Operation::kGetServiceStats}},
      {"set service properties", {Operation::kSetServiceProperties}},
  };
  return kOperations;
}

// "a and u", "c or w", "r".
bool Satisfies(const std::string& permission, std::string needs) {
  needs = needs.substr(0, needs.find(" ("));
  const auto has = [&](char letter) { return permission.find(letter) != permission.npos; };
  if (needs.find(" or ") != needs.npos) return has(needs.front()) || has(needs.back());
  return has(needs.front()) && has(needs.back());
}

std::vector<std::string> SubsetsOf(std::string_view letters) {
  std::vector<std::string> subsets;
  for (uint32_t bits = 1; bits < (1u << letters.size()); ++bits) {
    std::string subset;
    for (size_t i = 0; i < letters.size(); ++i) {
      if ((bits >> i & 1) != 0) subset.push_back(letters[i]);
    }
    subsets.push_back(subset);
  }
  return subsets;
}

SentRequest Signed(const AuthorizationWorld& world, const std::string& fields) {
  QueryParameters query;
  EXPECT_FALSE(query.Parse(fields));
  const std::optional<SasToken> token = ReadSasToken(query);
  EXPECT_TRUE(token.has_value()) << fields;
  const std::string text = token->kind == SasKind::kTable
                               ? TableSasText(*token, "contoso")
                               : AccountSasText(*token, "contoso", EncryptionScopeLine::kByVersion);
  SentRequest sent;
  sent.target = "/?" + fields + "&sig=" + Encoded(world.accounts.Find("contoso")->Sign(text));
  return sent;
}

TEST(SignatureVectorsTest, EachOperationNeedsItsPermissionsAndNoOthers) {
  const AuthorizationWorld world;
  EXPECT_EQ(Vectors()["sas_permissions"].items.size(), 23u);
  for (const JsonValue& vector : Vectors()["sas_permissions"].items) {
    const bool of_table = vector["sas"].text == "service";
    const std::string& needs = vector["needs"].text;
    SCOPED_TRACE(vector["operation"].text + ", " + vector["sas"].text);
    ASSERT_TRUE(OperationsByText().contains(vector["operation"].text));
    for (const std::string& types : of_table ? std::vector<std::string>{""} : SubsetsOf("sco")) {
      for (const std::string& permission : SubsetsOf(of_table ? "raud" : "rwdlacu")) {
        const std::string fields =
            of_table ? "sv=2019-02-02&se=2030-01-01&tn=orders&sp=" + permission
                     : "sv=2019-02-02&se=2030-01-01&ss=t&srt=" + types + "&sp=" + permission;
        Grant grant;
        ASSERT_EQ(AuthorizationWorld::Text(world.Authorize(Signed(world, fields), &grant)), "ok");
        std::string expected = "ok";
        if (needs.starts_with("not possible")) {
          // Recorded for the two kinds apart (spec 14.4, 14.6).
          expected = of_table ? "403 AuthorizationFailure" : "404 ResourceNotFound";
        } else if (!of_table && types.find(needs[4]) == types.npos) {
          expected = "403 AuthorizationResourceTypeMismatch";
        } else if (!Satisfies(permission, of_table ? needs : needs.substr(needs.find("sp ") + 3))) {
          expected = "403 AuthorizationPermissionMismatch";
        }
        for (const Operation operation : OperationsByText().at(vector["operation"].text)) {
          EXPECT_EQ(AuthorizationWorld::Text(grant.Check(operation, "Orders")), expected) << fields;
        }
      }
    }
  }
}

// ---- Decisions.

std::string KeyAnswer(const Grant& grant, Operation operation, std::string_view partition,
                      std::string_view row) {
  return AuthorizationWorld::Text(grant.CheckKey(operation, partition, row));
}

// What the sentence of each vector says, done.
std::map<std::string, std::function<std::string(AuthorizationWorld&)>> Decisions() {
  const auto ask = [](std::string id, std::string path, Operation operation, std::string table,
                      std::function<void(SentRequest&)> change = nullptr) {
    return [=](AuthorizationWorld& world) {
      SentRequest sent = WithSas(Sas(id), path);
      if (change) change(sent);
      return world.Answer(sent, operation, table);
    };
  };
  const auto key = [](std::string id, Operation operation, std::string partition, std::string row) {
    return [=](AuthorizationWorld& world) {
      Grant grant;
      EXPECT_FALSE(world.Authorize(WithSas(Sas(id), "/orders()"), &grant));
      return KeyAnswer(grant, operation, partition, row);
    };
  };
  const auto at = [](std::string time) {
    return [=](SentRequest& sent) { sent.arrived_ticks = Ticks(time); };
  };
  const Operation query = Operation::kQueryEntities;
  return {
      {"d1", key("s9", Operation::kGetEntity, "p1", "x")},
      {"d2", key("s9", Operation::kInsertEntity, "p2", "x")},
      {"d3", ask("s9", "/orders()", query, "orders")},
      {"d4", ask("s10", "/orders()", query, "orders")},
      {"d5", ask("s1", "/T1()", query, "T1", at("2025-05-06T00:00:00Z"))},
      {"d6", ask("s1", "/T1()", query, "T1", at("2024-05-05T23:59:59Z"))},
      {"d7", ask("s3", "/orders", Operation::kInsertEntity, "orders")},
      {"d8", ask("s3", "/others()", query, "others")},
      {"d9", ask("s6", "/orders()", query, "orders", [](SentRequest& s) { s.remote_address = "10.0.0.2"; })},
      {"d10", ask("s6", "/orders()", query, "orders", [](SentRequest& s) { s.secure = false; })},
      {"d11", ask("s4", "/orders()", query, "orders")},
      {"d12",
       [=](AuthorizationWorld& world) {
         world.policies.policies[{"contoso", "orders"}] =
             ReadersWith(DateTime{Ticks("2031-01-01T00:00:00Z")}, "r");
         return ask("s5", "/orders()", query, "orders")(world);
       }},
      {"d13", ask("a5", "/orders()", query, "orders")},
      {"d14", ask("a6", "/Tables", Operation::kCreateTable, "t1",
                  [](SentRequest& s) { s.remote_address = "192.168.0.255"; })},
      {"d15",
       ask("s1", "/T1()", query, "T1", [](SentRequest& s) { s.target[s.target.find("sig=") + 7] ^= 1; })},
  };
}

TEST(SignatureVectorsTest, DecisionsAreAsTheServiceTakesThem) {
  const auto decisions = Decisions();
  EXPECT_EQ(Vectors()["sas_decisions"].items.size(), decisions.size());
  for (const JsonValue& vector : Vectors()["sas_decisions"].items) {
    SCOPED_TRACE(vector["id"].text + ": " + vector["request"].text);
    ASSERT_TRUE(decisions.contains(vector["id"].text));
    AuthorizationWorld world;
    const int status = static_cast<int>(vector["expect"].number);
    const std::string expected = status == 200 ? "ok" : std::to_string(status) + " " + vector["code"].text;
    EXPECT_EQ(decisions.at(vector["id"].text)(world), expected);
  }
}

TEST(SignatureVectorsTest, QueriesAreCutToTheRangeAndGetsOutsideFindNothing) {
  const AuthorizationWorld world;
  Grant grant;
  ASSERT_FALSE(world.Authorize(WithSas(Sas("s9"), "/orders()"), &grant));  // d3.
  ASSERT_NE(grant.key_range(), nullptr);
  EXPECT_FALSE(grant.key_range()->Contains("p0", "x"));
  EXPECT_TRUE(grant.key_range()->Contains("p1", ""));
  EXPECT_FALSE(grant.key_range()->Contains("p2", ""));
  ASSERT_FALSE(world.Authorize(WithSas(Sas("s10"), "/orders()"), &grant));  // d4.
  EXPECT_FALSE(grant.key_range()->Contains("p1", "n"));
  EXPECT_EQ(KeyAnswer(grant, Operation::kGetEntity, "p1", "n"), "404 ResourceNotFound");
  EXPECT_EQ(KeyAnswer(grant, Operation::kDeleteEntity, "p1", "n"), "403 AuthorizationFailure");
  EXPECT_EQ(KeyAnswer(grant, Operation::kDeleteEntity, "p1", "m"), "ok");
}

}  // namespace
}  // namespace partita::http
