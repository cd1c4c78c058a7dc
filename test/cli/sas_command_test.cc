#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include "test/cli/command_fixture.h"

namespace partita {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SasCommandTest : public CommandTest {};

// The worked example of the reference, section 22.14.
TEST_F(SasCommandTest, ATokenForOnePartitionIsSignedAsTheReferenceSays) {
  const CommandOutcome outcome = RunAsGiven(
      {"sas", "--account", "contoso", "--key",
       "cW/v/E7TrIw7LD13KgOQmnbqDmWdreuqsZ339o+SMYKWm4zU0Idg56iJd7PMMQK5om4fbk8ujMkdrz/WmXNC5A==", "--table",
       "orders", "--permissions", "r", "--expiry", "2030-01-01T00:00:00Z", "--partition", "p1"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(outcome.out,
            "sv=2019-02-02&tn=orders&sp=r&se=2030-01-01T00%3A00%3A00Z&spk=p1&epk=p1&"
            "sig=SGP9IYMkMmRdfFCMIUWAjJUeFtwsLdx7AdyB3GN%2F%2FhI%3D\n");
}

TEST_F(SasCommandTest, ATokenWithoutTableIsForTheAccount) {
  const CommandOutcome outcome = RunAsGiven({"sas", "--expiry", "2d"});
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("sv=2019-02-02&ss=t&srt=sco&sp=rl&se="));
}

TEST_F(SasCommandTest, AnAccountInFrontOfTheCommandIsTheOneToo) {
  const std::vector<std::string> rest = {"--key", "a2V5", "--expiry", "2030-01-01T00:00:00Z"};
  std::vector<std::string> before = {"--account", "contoso", "sas"}, behind = {"sas", "--account", "contoso"};
  before.insert(before.end(), rest.begin(), rest.end());
  behind.insert(behind.end(), rest.begin(), rest.end());
  const CommandOutcome first = RunAsGiven(before);
  EXPECT_EQ(first.code, ExitCode::kOk) << first.err;
  EXPECT_EQ(first.out, RunAsGiven(behind).out);
}

// A variable of a script that is not set would widen what the token is for.
TEST_F(SasCommandTest, AnEmptyValueIsNoChoice) {
  for (const char* option : {"--table", "--key", "--expiry", "--account", "--partition", "--permissions"}) {
    const CommandOutcome outcome = RunAsGiven({"sas", option, ""});
    EXPECT_EQ(outcome.code, ExitCode::kUsage) << option;
    EXPECT_THAT(outcome.err, HasSubstr(option));
  }
}

TEST_F(SasCommandTest, AKeyMayStandBehindAnEqualsSignAndEndWithOne) {
  const std::vector<std::string> rest = {"--account", "contoso", "--expiry", "2030-01-01T00:00:00Z"};
  std::vector<std::string> joined = {"sas", "--key=c2VjcmV0Cg=="}, apart = {"sas", "--key", "c2VjcmV0Cg=="};
  joined.insert(joined.end(), rest.begin(), rest.end());
  apart.insert(apart.end(), rest.begin(), rest.end());
  const CommandOutcome outcome = RunAsGiven(joined);
  EXPECT_EQ(outcome.code, ExitCode::kOk) << outcome.err;
  EXPECT_EQ(outcome.out, RunAsGiven(apart).out);
  const CommandOutcome empty = RunAsGiven({"sas", "--key="});
  EXPECT_EQ(empty.code, ExitCode::kUsage);
  EXPECT_EQ(empty.err, "partita: --key has an empty value\n");
}

TEST_F(SasCommandTest, PermissionsAreBroughtIntoOrder) {
  const CommandOutcome outcome = RunAsGiven({"sas", "--table", "orders", "--permissions", "dar"});
  EXPECT_THAT(outcome.out, HasSubstr("&sp=rad&"));
}

TEST_F(SasCommandTest, WhatMakesNoTokenIsRefused) {
  EXPECT_THAT(RunAsGiven({"sas", "--table", "orders", "--permissions", "x"}).err, HasSubstr("none of raud"));
  EXPECT_THAT(RunAsGiven({"sas", "--table", "a-b"}).err, HasSubstr("a-b"));
  EXPECT_THAT(RunAsGiven({"sas", "--expiry", "soon"}).err, HasSubstr("--expiry takes"));
  EXPECT_THAT(RunAsGiven({"sas", "--account", "contoso"}).err, HasSubstr("which key"));
  EXPECT_EQ(RunAsGiven({"sas", "--account", "contoso"}).code, ExitCode::kUsage);
  EXPECT_THAT(RunAsGiven({"sas", "--partition", "p"}).err, HasSubstr("needs --table"));
}

TEST_F(SasCommandTest, ATokenThatNobodyCouldUseIsRefused) {
  for (const char* expiry : {"2020-01-01T00:00:00Z", "0m"}) {
    const CommandOutcome past = RunAsGiven({"sas", "--expiry", expiry});
    EXPECT_EQ(past.code, ExitCode::kUsage) << expiry;
    EXPECT_THAT(past.err, HasSubstr(std::string("--expiry ") + expiry + " is not in the future"));
    EXPECT_EQ(past.out, "");
  }
  const CommandOutcome key = RunAsGiven({"sas", "--table", "orders", "--partition", "a/b"});
  EXPECT_EQ(key.code, ExitCode::kUsage);
  EXPECT_THAT(key.err, HasSubstr("PartitionKey"));
}

TEST_F(SasCommandTest, AnExpiryBehindTheLastTimeIsRefusedWithTheMostThereIs) {
  const CommandOutcome late = RunAsGiven({"sas", "--table", "orders", "--expiry", "9999999d"});
  EXPECT_EQ(late.code, ExitCode::kUsage);
  EXPECT_THAT(late.err, HasSubstr("--expiry 9999999d ends after the year 9999"));
  const std::string said = "the most is ";
  const size_t at = late.err.find(said);
  ASSERT_NE(at, std::string::npos) << late.err;
  const int days = std::atoi(late.err.c_str() + at + said.size());
  // A day off, lest midnight comes in between.
  const CommandOutcome last = RunAsGiven({"sas", "--expiry", std::to_string(days - 1) + "d"});
  EXPECT_EQ(last.code, ExitCode::kOk) << last.err;
  EXPECT_THAT(last.out, HasSubstr("&se=9999-12-"));
  EXPECT_EQ(RunAsGiven({"sas", "--expiry", std::to_string(days + 1) + "d"}).code, ExitCode::kUsage);
}

TEST_F(SasCommandTest, TheVersionIsTold) {
  EXPECT_THAT(RunAsGiven({"--version"}).out, StartsWith("partita "));
}

}  // namespace
}  // namespace partita
