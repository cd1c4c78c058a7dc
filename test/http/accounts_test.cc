#include "api/http/accounts.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

namespace partita::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kKey = "bXktZmFrZS1rZXk=";
constexpr const char* kOtherKey = "b3RoZXIta2V5";

TEST(AccountsTest, TheTextOfAzuriteGivesNamesWithOneOrTwoKeys) {
  Result<std::vector<AccountSettings>> accounts = ParseAccountsText("one:a2V5;;two:a2V5:b3RoZXI=;");
  ASSERT_TRUE(accounts.ok());
  ASSERT_EQ(accounts->size(), 2u);
  EXPECT_EQ((*accounts)[0].name, "one");
  EXPECT_THAT((*accounts)[0].keys, ElementsAre("a2V5"));
  EXPECT_THAT((*accounts)[1].keys, ElementsAre("a2V5", "b3RoZXI="));
  EXPECT_TRUE(ParseAccountsText("").ok());
  EXPECT_EQ(ParseAccountsText("one").code(), Code::kInvalidArgument);
  EXPECT_EQ(ParseAccountsText("one:a2V5;two:").code(), Code::kInvalidArgument);
}

TEST(AccountsTest, BadSettingsAreRefusedWithoutShowingAKey) {
  const std::vector<std::vector<AccountSettings>> bad = {
      {{.name = "No", .keys = {kKey}}},
      {{.name = "account", .keys = {}}},
      {{.name = "account", .keys = {kKey, kKey, kKey}}},
      {{.name = "account", .keys = {"secret!"}}},
      {{.name = "account", .keys = {kKey, "secret!"}}},
      {{.name = "account", .keys = {kKey}}, {.name = "account", .keys = {kOtherKey}}},
  };
  for (const auto& accounts : bad) {
    Result<AccountSet> set = AccountSet::Create(accounts);
    ASSERT_EQ(set.code(), Code::kInvalidArgument);
    EXPECT_THAT(set.status().message(), Not(HasSubstr("secret")));
    EXPECT_THAT(set.status().message(), Not(HasSubstr(kKey)));
  }
}

TEST(AccountsTest, EitherKeyOfAnAccountVerifiesAndNoOther) {
  Result<AccountSet> set = AccountSet::Create(
      {{.name = "two", .keys = {kKey, kOtherKey}}, {.name = "one", .keys = {kKey}}, DevelopmentAccount()});
  ASSERT_TRUE(set.ok());
  EXPECT_THAT(set->Names(), ElementsAre("devstoreaccount1", "one", "two"));
  const std::string second = SigningKey::FromBase64(kOtherKey)->Sign("text");
  EXPECT_TRUE(set->Find("two")->Verify("text", second));
  EXPECT_TRUE(set->Find("two")->Verify("text", set->Find("two")->Sign("text")));
  EXPECT_FALSE(set->Find("one")->Verify("text", second));
  EXPECT_FALSE(set->Find("devstoreaccount1")->Verify("text", second));
}

TEST(AccountsTest, AnUnknownAccountIsAStrangerWhomNoKeyVerifies) {
  Result<AccountSet> set = AccountSet::Create({{.name = "one", .keys = {kKey}}});
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->Find("unknown"), nullptr);
  const Account& stranger = set->FindOrStranger("unknown");
  EXPECT_TRUE(set->IsStranger(stranger));
  EXPECT_FALSE(set->IsStranger(set->FindOrStranger("one")));
  for (const char* key : {kKey, kOtherKey}) {
    EXPECT_FALSE(stranger.Verify("text", SigningKey::FromBase64(key)->Sign("text")));
  }
  EXPECT_FALSE(stranger.Verify("text", SigningKey("").Sign("text")));
}

}  // namespace
}  // namespace partita::http
