#include "api/http/authorization.h"

#include <gtest/gtest.h>

#include <random>

#include "api/http/sas_token.h"
#include "engine/base/user_key.h"
#include "test/http/authorization_world.h"

namespace partita::http {
namespace {

constexpr const char* kDate = "Wed, 15 Jan 2025 10:20:30 GMT";
constexpr const char* kFailed = "403 AuthenticationFailed";

class AuthorizationTest : public testing::Test {
 protected:
  // Signed over the path, which is no secondary one.
  SentRequest SharedKey(std::string target, const std::string& account = "contoso") {
    SentRequest sent;
    sent.target = std::move(target);
    sent.With("x-ms-date", kDate);
    const std::string path = sent.target.substr(0, sent.target.find('?'));
    const std::string text = "GET\n\n\n" + std::string(kDate) + "\n/" + account + path;
    return sent.With("Authorization",
                     "SharedKey " + account + ":" + world_.accounts.Find(account)->Sign(text));
  }

  // `fields` as in a query, signed as `account`.
  SentRequest Sas(const std::string& fields, const std::string& path = "/orders()",
                  const std::string& account = "contoso") {
    QueryParameters query;
    EXPECT_FALSE(query.Parse(fields));
    const std::optional<SasToken> token = ReadSasToken(query);
    std::string text = "none";
    if (token && token->kind == SasKind::kTable) text = TableSasText(*token, account);
    if (token && token->kind == SasKind::kAccount) {
      text = AccountSasText(*token, account, EncryptionScopeLine::kByVersion);
    }
    SentRequest sent;
    sent.target = path + "?" + fields + "&sig=" + Encoded(world_.accounts.Find(account)->Sign(text));
    return sent;
  }
  std::string SasAnswer(const std::string& fields) {
    return world_.Answer(Sas(fields), Operation::kQueryEntities, "orders");
  }

  AuthorizationWorld world_;
};

// ---- Shared Key.

TEST_F(AuthorizationTest, TheKeyOfTheAccountAllowsEverythingWithoutARange) {
  Grant grant;
  ASSERT_FALSE(world_.Authorize(SharedKey("/orders()"), &grant));
  EXPECT_TRUE(grant.is_owner());
  EXPECT_EQ(grant.key_range(), nullptr);
  for (int i = 0; i <= static_cast<int>(Operation::kGetServiceStats); ++i) {
    EXPECT_FALSE(grant.Check(static_cast<Operation>(i), "orders"));
    EXPECT_FALSE(grant.CheckKey(static_cast<Operation>(i), "p", "r"));
  }
}

TEST_F(AuthorizationTest, AGrantThatNothingFilledInAllowsNothing) {
  for (int i = 0; i <= static_cast<int>(Operation::kGetServiceStats); ++i) {
    EXPECT_TRUE(Grant().Check(static_cast<Operation>(i), "").has_value());
  }
  Grant grant;
  ASSERT_FALSE(world_.Authorize(SharedKey("/orders()"), &grant));
  ASSERT_TRUE(world_.Authorize(SentRequest(), &grant));
  EXPECT_TRUE(grant.Check(Operation::kQueryTables, "").has_value());
}

TEST_F(AuthorizationTest, DatesAtTheEdgeOfTheWindowPassAndOnesBeyondDoNot) {
  constexpr uint64_t kWindow = 15 * 60 * kTicksPerSecond;
  SentRequest sent = SharedKey("/Tables");
  const uint64_t now = sent.arrived_ticks;
  for (const uint64_t arrived : {now - kWindow, now + kWindow}) {
    sent.arrived_ticks = arrived;
    EXPECT_EQ(world_.Answer(sent), "ok");
  }
  for (const uint64_t arrived : {now - kWindow - 1, now + kWindow + 1}) {
    sent.arrived_ticks = arrived;
    EXPECT_EQ(world_.Answer(sent), kFailed);
  }
}

TEST_F(AuthorizationTest, AnUnknownAccountAnswersAsAWrongSignatureDoes) {
  SentRequest sent = SharedKey("/Tables");
  sent.headers[1].second = "SharedKey contoso:" + std::string(44, 'A');
  Grant grant;
  const auto wrong = world_.Authorize(sent, &grant);
  SentRequest unknown = sent;
  unknown.target = "/acct1x/Tables";
  unknown.headers[1].second = "SharedKey acct1x:" + std::string(44, 'A');
  const auto stranger = world_.Authorize(unknown, &grant);
  ASSERT_TRUE(wrong && stranger);
  EXPECT_EQ(AuthorizationWorld::Text(wrong), kFailed);
  EXPECT_EQ(AuthorizationWorld::Text(stranger), kFailed);
  EXPECT_EQ(wrong->message, stranger->message);
  EXPECT_EQ(wrong->as_xml, stranger->as_xml);
}

TEST_F(AuthorizationTest, TheAccountOfTheHeaderMustBeTheAddressedOne) {
  SentRequest sent = SharedKey("/Tables");
  std::string& authorization = sent.headers[1].second;
  authorization.replace(authorization.find("contoso"), 7, "acct1");
  EXPECT_EQ(world_.Answer(sent), kFailed);
}

TEST_F(AuthorizationTest, ADisabledAccountSaysSoToItsOwnerAlone) {
  SentRequest sent = SharedKey("/disabled1/Tables", "disabled1");
  EXPECT_EQ(world_.Answer(sent), "403 AccountIsDisabled");
  sent.headers[1].second[30] ^= 1;
  EXPECT_EQ(world_.Answer(sent), kFailed);
}

TEST_F(AuthorizationTest, ADisabledAccountSaysSoToTheHoldersOfItsTokensAlone) {
  for (const char* fields : {"sv=2019-02-02&se=2030-01-01&sp=r&tn=orders",         // For a table,
                             "sv=2019-02-02&ss=t&srt=sco&sp=rl&se=2030-01-01"}) {  // for the account.
    ASSERT_EQ(SasAnswer(fields), "ok");
    SentRequest sent = Sas(fields, "/disabled1/orders()", "disabled1");
    EXPECT_EQ(world_.Answer(sent), "403 AccountIsDisabled") << fields;
    sent.target[sent.target.find("sig=") + 6] ^= 1;
    EXPECT_EQ(world_.Answer(sent), kFailed) << fields;
  }
}

TEST_F(AuthorizationTest, MalformedHeadersAreRefusedAsSuch) {
  for (const char* header : {"", "SharedKey", "SharedKey ", "SharedKeyLite abc", "sharedkey contoso:AAAA",
                             "SharedKeyHeavy contoso:AAAA", "contoso:AAAA"}) {
    SentRequest sent;
    sent.With("x-ms-date", kDate).With("Authorization", header);
    EXPECT_EQ(world_.Answer(sent), "400 InvalidAuthenticationInfo") << header;
  }
  SentRequest twice = SharedKey("/Tables");
  twice.With("Authorization", twice.headers[1].second);
  EXPECT_EQ(world_.Answer(twice), "400 InvalidAuthenticationInfo");
}

TEST_F(AuthorizationTest, WithAHeaderAndATokenTheHeaderCounts) {
  const SentRequest token = Sas("sv=2019-02-02&se=2030-01-01&sp=r&tn=orders");
  EXPECT_EQ(world_.Answer(token), "ok");
  SentRequest both = token;
  both.With("x-ms-date", kDate).With("Authorization", "SharedKey contoso:AAAA");
  EXPECT_EQ(world_.Answer(both), kFailed);
}

TEST_F(AuthorizationTest, AnyChangedCharacterOfWhatIsSignedIsRefused) {
  SentRequest sent = SharedKey("/orders(PartitionKey='a',RowKey='b')?comp=acl");
  EXPECT_EQ(world_.Answer(sent), kFailed);  // comp is signed.
  sent = SharedKey("/orders(PartitionKey='a',RowKey='b')");
  sent.With("Content-Type", "").With("Content-MD5", "");
  ASSERT_EQ(world_.Answer(sent), "ok");
  for (size_t i = 1; i < sent.target.size(); ++i) {
    SentRequest other = sent;
    other.target[i] ^= 1;
    EXPECT_NE(world_.Answer(other), "ok") << other.target;
  }
  for (auto& [name, value] : sent.headers) {
    const std::string before = value;
    for (size_t i = 0; i <= before.size(); ++i) {
      value = before;
      if (i < before.size()) {
        value[i] ^= 1;
      } else {
        value.push_back('x');
      }
      EXPECT_NE(world_.Answer(sent), "ok") << name << ": " << value;
    }
    value = before;
  }
  sent.method = "PUT";
  EXPECT_EQ(world_.Answer(sent), kFailed);
}

// ---- SAS.

TEST_F(AuthorizationTest, AnyChangedFieldOfATokenIsRefused) {
  const std::string fields =
      "sv=2019-02-02&st=2024-01-01&se=2030-01-01&sp=raud&tn=orders&spk=a&srk=b&epk=c&erk=d&spr=https,http"
      "&sip=10.0.0.0-10.0.0.9";
  const SentRequest sent = Sas(fields);
  ASSERT_EQ(world_.Answer(sent, Operation::kQueryEntities, "orders"), "ok");
  // From the '?' on; the name of a parameter is not signed, and one that is unknown drops its value.
  for (size_t i = sent.target.find('?') + 1; i < sent.target.size(); ++i) {
    for (const char c : {'0', '9', 'x', '&', '=', '%', '\n'}) {
      SentRequest other = sent;
      if (other.target[i] == c) continue;
      other.target[i] = c;
      EXPECT_NE(world_.Answer(other, Operation::kQueryEntities, "orders"), "ok") << other.target;
    }
  }
}

TEST_F(AuthorizationTest, ATokenWithMissingOrMalformedFieldsIsNoToken) {
  ASSERT_EQ(SasAnswer("sv=2019-02-02&se=2030-01-01&sp=r&tn=orders"), "ok");
  for (const char* fields : {
           "sv=2019-02-02&sp=r&tn=orders",                           // No expiry,
           "sv=2019-02-02&se=2030-01-01&tn=orders",                  // no permission,
           "sv=2019-02-02&se=2030-01-01&sp=r",                       // no table,
           "se=2030-01-01&sp=r&tn=orders",                           // no version.
           "sv=2012-02-12&se=2030-01-01&sp=r&tn=orders",             // Versions too old,
           "sv=2013-08-15&se=2030-01-01&sp=r&ss=t&srt=o",            // for an account,
           "sv=2019-2-2&se=2030-01-01&sp=r&tn=orders",               // and no dates.
           "sv=2019-02-02&se=2030-13-01&sp=r&tn=orders",             // Times.
           "sv=2019-02-02&se=2030-01-01T00:00&sp=r&tn=orders",       //
           "sv=2019-02-02&st=soon&se=2030-01-01&sp=r&tn=orders",     //
           "sv=2019-02-02&se=2030-01-01&sp=x&tn=orders",             // Letters.
           "sv=2019-02-02&se=2030-01-01&sp=R&tn=orders",             //
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&ss=t&srt=o",  // Of both kinds.
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&srk=b",       // Rows without a partition.
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&erk=b",       //
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&spk=a%0Ab",   // A line break.
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&sip=10.0.0",  // Addresses.
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&sip=10.0.0.9-10.0.0.1",
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&spr=http",    // Protocols.
           "sv=2019-02-02&se=2030-01-01&sp=r&tn=orders&si=unknown",  // Policies.
       }) {
    EXPECT_EQ(SasAnswer(fields), kFailed) << fields;
  }
}

TEST_F(AuthorizationTest, AFieldRepeatedWithAnotherValueIsRefused) {
  SentRequest sent = Sas("sv=2019-02-02&se=2030-01-01&sp=r&tn=orders");
  sent.target += "&sp=raud";
  EXPECT_NE(world_.Answer(sent), "ok");
}

TEST_F(AuthorizationTest, PoliciesGiveWhatTheTokenLeavesOut) {
  StoredPolicies policies;
  policies.policies = {
      {.id = "all",
       .start = DateTime{Ticks("2024-01-01T00:00:00Z")},
       .expiry = DateTime{Ticks("2030-01-01T00:00:00Z")},
       .permission = "r"},
      {.id = "later", .start = DateTime{Ticks("2026-01-01T00:00:00Z")}},
      {.id = "over", .expiry = DateTime{Ticks("2024-01-01T00:00:00Z")}},
      {.id = "bare"},
  };
  world_.policies.policies[{"contoso", "orders"}] = policies;
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=ORDERS&si=all"), "ok");
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=All"), kFailed);
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=later&se=2030-01-01&sp=r"), kFailed);
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=over&sp=r"), kFailed);
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=bare&se=2030-01-01&sp=r"), "ok");
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=bare&sp=r"), kFailed);
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=bare&se=2030-01-01"), kFailed);
  for (const char* twice : {"st=2024-01-01", "se=2030-01-01", "sp=r"}) {
    EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=all&" + std::string(twice)),
              "400 InvalidQueryParameterValue");
  }
  world_.policies.policies.clear();  // Tokens follow at once.
  EXPECT_EQ(SasAnswer("sv=2019-02-02&tn=orders&si=all"), kFailed);
}

TEST_F(AuthorizationTest, ASignatureIsAskedForBeforeThePolicy) {
  world_.policies.policies[{"contoso", "orders"}].policies.push_back({.id = "all", .permission = "r"});
  SentRequest sent = Sas("sv=2019-02-02&tn=orders&si=all&sp=r&se=2030-01-01");
  EXPECT_EQ(world_.Answer(sent), "400 InvalidQueryParameterValue");
  sent.target[sent.target.find("sig=") + 6] ^= 1;
  EXPECT_EQ(world_.Answer(sent), kFailed);
}

TEST_F(AuthorizationTest, AnEmptyBoundIsNoBoundAsTheSignatureCannotTell) {
  const auto range = [&](const std::string& bounds) {
    Grant grant;
    EXPECT_FALSE(world_.Authorize(Sas("sv=2019-02-02&se=2030-01-01&sp=r&tn=orders" + bounds), &grant));
    return grant;
  };
  EXPECT_EQ(range("&spk=&epk=").key_range(), nullptr);
  EXPECT_EQ(range("&spk=&srk=&epk=&erk=").key_range(), nullptr);
  const Grant lowest = range("&epk=&erk=m");
  ASSERT_NE(lowest.key_range(), nullptr);
  EXPECT_TRUE(lowest.key_range()->Contains("", "m"));
  EXPECT_FALSE(lowest.key_range()->Contains("", "n"));
  EXPECT_FALSE(lowest.key_range()->Contains("a", ""));
  EXPECT_FALSE(range("&spk=&srk=m").key_range()->Contains("", "l"));
}

TEST_F(AuthorizationTest, TheEncryptionScopeLineMayBeLeftOutOfNewerTokens) {
  const std::string fields = "sv=2021-12-02&ss=t&srt=sco&sp=rl&se=2030-01-01";
  EXPECT_EQ(world_.Answer(Sas(fields, "/Tables"), Operation::kQueryTables, ""), "ok");
  const std::string text = "contoso\nrl\nt\nsco\n\n2030-01-01\n\n\n2021-12-02\n";
  SentRequest sent;
  sent.target = "/Tables?" + fields + "&sig=" + Encoded(world_.accounts.Find("contoso")->Sign(text));
  EXPECT_EQ(world_.Answer(sent, Operation::kQueryTables, ""), "ok");
}

TEST_F(AuthorizationTest, RefusalsOfTablesAreJsonAndThoseOfAclAndPropertiesXml) {
  Grant grant;
  ASSERT_FALSE(world_.Authorize(Sas("sv=2019-02-02&se=2030-01-01&sp=r&tn=orders"), &grant));
  EXPECT_FALSE(grant.Check(Operation::kInsertEntity, "orders")->as_xml);
  EXPECT_FALSE(grant.Check(Operation::kCreateTable, "orders")->as_xml);
  EXPECT_TRUE(grant.Check(Operation::kGetTableAcl, "orders")->as_xml);
  EXPECT_TRUE(grant.Check(Operation::kGetServiceStats, "")->as_xml);
  EXPECT_TRUE(grant.Check(Operation::kQueryEntities, "others")->as_xml);
}

// ---- Key ranges.

TEST(KeyRangeTest, ContainsIsTheFormulaOfTheServiceInTheOrderOfTheStore) {
  const std::vector<std::string> keys = {"",       "a",      "b",          "ba",        "\u00FC",
                                         "\uE000", "\uFFFD", "\U00010000", "\U0010FFFF"};
  std::mt19937_64 random(7);
  const auto draw = [&] { return keys[random() % keys.size()]; };
  for (int i = 0; i < 20'000; ++i) {
    KeyRange range;
    if (random() % 4 != 0) range.lower_partition = draw();
    if (range.lower_partition && random() % 2 == 0) range.lower_row = draw();
    if (random() % 4 != 0) range.upper_partition = draw();
    if (range.upper_partition && random() % 2 == 0) range.upper_row = draw();
    const std::string partition = draw(), row = draw();
    const std::string p = OrderedText(partition), r = OrderedText(row);
    bool expected = true;
    if (range.lower_partition) {
      const std::string spk = OrderedText(*range.lower_partition);
      expected = expected && (p > spk || (p == spk && r >= OrderedText(range.lower_row.value_or(""))));
    }
    if (range.upper_partition) {
      const std::string epk = OrderedText(*range.upper_partition);
      expected =
          expected && (p < epk || (p == epk && (!range.upper_row || r <= OrderedText(*range.upper_row))));
    }
    ASSERT_EQ(range.Contains(partition, row), expected) << partition << ", " << row;
  }
}

}  // namespace
}  // namespace partita::http
