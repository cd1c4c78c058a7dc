#include "api/http/access_policies.h"

#include <gtest/gtest.h>

#include "api/date_time.h"
#include "api/http/xml_reader.h"

namespace partita::http {
namespace {

constexpr const char* kHead = "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>";

DateTime Time(std::string_view text) { return *ParseDateTime(text); }

std::string Answer(std::string_view xml, StoredPolicies* policies) {
  const auto refused = ReadAccessPolicies(xml, policies);
  if (!refused) return "ok";
  EXPECT_TRUE(refused->as_xml);
  return std::to_string(refused->status) + " " + std::string(ErrorCodeName(refused->code));
}
std::string Answer(std::string_view xml) {
  StoredPolicies policies;
  return Answer(xml, &policies);
}
std::string Identifier(const std::string& inside) {
  return "<SignedIdentifiers><SignedIdentifier>" + inside + "</SignedIdentifier></SignedIdentifiers>";
}

TEST(AccessPoliciesTest, TheDocumentOfTheReferenceIsReadAndGivenBackWithSevenDigits) {
  StoredPolicies policies;
  ASSERT_EQ(Answer(R"(<?xml version="1.0" encoding="utf-8"?>
<SignedIdentifiers>
  <SignedIdentifier>
    <Id>readers &amp; co</Id>
    <AccessPolicy>
      <Start>2011-10-11</Start>
      <Expiry>2030-01-01T00:00Z</Expiry>
      <Permission>r</Permission>
    </AccessPolicy>
  </SignedIdentifier>
  <SignedIdentifier><Id>bare</Id></SignedIdentifier>
  <SignedIdentifier><Id>empty</Id><AccessPolicy /></SignedIdentifier>
  <SignedIdentifier><AccessPolicy><Start/><Expiry>2030-01-01T01:02:03.45Z</Expiry></AccessPolicy><Id>ends</Id></SignedIdentifier>
</SignedIdentifiers>)",
                   &policies),
            "ok");
  ASSERT_EQ(policies.policies.size(), 4u);
  EXPECT_EQ(policies.Find("readers & co")->start, Time("2011-10-11T00:00Z"));
  EXPECT_EQ(policies.Find("readers & co")->expiry, Time("2030-01-01T00:00Z"));
  EXPECT_EQ(*policies.Find("empty"), StoredPolicy{.id = "empty"});
  EXPECT_EQ(policies.Find("Bare"), nullptr);
  EXPECT_EQ(WriteAccessPolicies(policies),
            std::string(kHead) +
                "<SignedIdentifiers>"
                "<SignedIdentifier><Id>readers &amp; co</Id><AccessPolicy><Start>2011-10-11T00:00:00.0000000Z"
                "</Start><Expiry>2030-01-01T00:00:00.0000000Z</Expiry><Permission>r</Permission>"
                "</AccessPolicy></SignedIdentifier>"
                "<SignedIdentifier><Id>bare</Id></SignedIdentifier>"
                "<SignedIdentifier><Id>empty</Id></SignedIdentifier>"
                "<SignedIdentifier><Id>ends</Id><AccessPolicy><Expiry>2030-01-01T01:02:03.4500000Z</Expiry>"
                "</AccessPolicy></SignedIdentifier></SignedIdentifiers>");
  StoredPolicies again;
  ASSERT_EQ(Answer(WriteAccessPolicies(policies), &again), "ok");
  EXPECT_EQ(again.policies, policies.policies);
}

TEST(AccessPoliciesTest, LineBreaksInANameComeBackAsTheyWere) {
  StoredPolicies policies, again;
  ASSERT_EQ(Answer(Identifier("<Id>a&#xD;b&#xA;c&#9;d</Id>"), &policies), "ok");
  ASSERT_NE(policies.Find("a\rb\nc\td"), nullptr);
  ASSERT_EQ(Answer(WriteAccessPolicies(policies), &again), "ok");
  EXPECT_EQ(again.policies, policies.policies);
}

TEST(AccessPoliciesTest, AnEmptyBodyOrListClears) {
  for (const char* xml : {"", "<SignedIdentifiers />", "<SignedIdentifiers></SignedIdentifiers>",
                          "<SignedIdentifiers xmlns=\"urn:x\"> <!-- none --> </SignedIdentifiers>"}) {
    StoredPolicies policies{{{.id = "old"}}};
    EXPECT_EQ(Answer(xml, &policies), "ok");
    EXPECT_TRUE(policies.policies.empty());
  }
  EXPECT_EQ(WriteAccessPolicies({}), std::string(kHead) + "<SignedIdentifiers />");
}

TEST(AccessPoliciesTest, FiveAreTakenAndSixAreNot) {
  std::string five;
  for (char c = 'a'; c < 'f'; ++c)
    five += std::string("<SignedIdentifier><Id>") + c + "</Id></SignedIdentifier>";
  EXPECT_EQ(Answer("<SignedIdentifiers>" + five + "</SignedIdentifiers>"), "ok");
  five += "<SignedIdentifier><Id>f</Id></SignedIdentifier>";
  EXPECT_EQ(Answer("<SignedIdentifiers>" + five + "</SignedIdentifiers>"), "400 InvalidXmlDocument");
}

TEST(AccessPoliciesTest, WhatBreaksTheRulesIsRefusedAndChangesNothing) {
  const std::string long_id(65, 'x');
  EXPECT_EQ(Answer(Identifier("<Id>" + long_id.substr(1) + "</Id>")), "ok");
  const std::string bad[] = {
      "<SignedIdentifiers>",
      "<Other />",
      "text",
      "<SignedIdentifiers>text</SignedIdentifiers>",
      "<SignedIdentifiers /><SignedIdentifiers />",
      "<SignedIdentifiers><Other /></SignedIdentifiers>",
      Identifier(""),
      Identifier("<Id></Id>"),
      Identifier("<Id>&#32;</Id>"),
      Identifier("<Id><![CDATA[ \t]]></Id>"),
      Identifier("<Id>" + long_id + "</Id>"),
      Identifier("<Id>a</Id><Id>b</Id>"),
      Identifier("<Id>a</Id><Other />"),
      Identifier("<Id><b>a</b></Id>"),
      Identifier("<Id>a&#1;</Id>"),
      Identifier("<Id>a&#xFFFE;</Id>"),
      Identifier("<Id>a&#xD800;</Id>"),
      Identifier("<Id>a&#0;b</Id>"),
      Identifier("<Id>a & b</Id>"),
      Identifier("<Id>a&other;b</Id>"),
      Identifier("<Id>a]]>b</Id>"),
      Identifier("<Id a=\"1\" a=\"2\">a</Id>"),
      Identifier("<Id a=\"<\">a</Id>"),
      "text " + Identifier("<Id>a</Id>"),
      Identifier("<Id>a</Id>") + " more",
      "<!-- --> text <SignedIdentifiers />",
      "<SignedIdentifiers><a><a><a><a><a><a /></a></a></a></a></a></SignedIdentifiers>",
      Identifier("<Id>a</Id><AccessPolicy><Start>2011-10-11T00:00:00.123456789Z</Start></AccessPolicy>"),
      Identifier("<Id>a</Id><AccessPolicy><Start>2011-10-11T00:00:00.123456789+02:00</Start></AccessPolicy>"),
      Identifier("<Id>a</Id><AccessPolicy><Start>2011-10-11T00:00:00</Start></AccessPolicy>"),
      Identifier("<Id>a</Id><AccessPolicy><Start>2011-10-11T00:00+2:00</Start></AccessPolicy>"),
      Identifier("<Id>a</Id><AccessPolicy><Start>2011-10-11+02:00</Start></AccessPolicy>"),
      Identifier("<Id>a</Id><AccessPolicy><Expiry>tomorrow</Expiry></AccessPolicy>"),
      Identifier("<Id>a</Id><AccessPolicy><Other>1</Other></AccessPolicy>"),
      Identifier("<Id>a</Id></SignedIdentifier><SignedIdentifier><Id>a</Id>"),
      "<!DOCTYPE x [<!ENTITY e \"a\">]>" + Identifier("<Id>a</Id>"),
      "<SignedIdentifiers>\xFF</SignedIdentifiers>",
      Identifier("<Id>a</Id>") + std::string(1, '\0'),
      Identifier("<Id>a</Id>") + std::string(kXmlBytesMax, ' '),
  };
  for (const std::string& xml : bad) {
    StoredPolicies policies{{{.id = "old"}}};
    EXPECT_EQ(Answer(xml, &policies), "400 InvalidXmlDocument") << xml.substr(0, 200);
    EXPECT_EQ(policies.policies.size(), 1u);
  }
}

TEST(AccessPoliciesTest, EachLetterOfAPermissionIsKeptOnce) {
  StoredPolicies policies;
  const std::string letters = std::string(20'000, 'r') + "dr" + std::string(20'000, 'a');
  ASSERT_EQ(
      Answer(Identifier("<Id>a</Id><AccessPolicy><Permission>" + letters + "</Permission></AccessPolicy>"),
             &policies),
      "ok");
  ASSERT_EQ(policies.policies.size(), 1u);
  EXPECT_EQ(policies.policies[0].permission, "rda");
}

TEST(AccessPoliciesTest, PermissionsAreKnownLetters) {
  const auto answer = [](const std::string& letters) {
    return Answer(
        Identifier("<Id>a</Id><AccessPolicy><Permission>" + letters + "</Permission></AccessPolicy>"));
  };
  for (const std::string letters : {"", "r", "raud", "dua", " rd "})
    EXPECT_EQ(answer(letters), "ok") << letters;
  for (const std::string letters : {"x", "rx", "rrx"}) {
    EXPECT_EQ(answer(letters), "400 InvalidXmlNodeValue") << letters;
  }
}

TEST(AccessPoliciesTest, TheFiveEntitiesOfXmlAreKnown) {
  StoredPolicies policies;
  ASSERT_EQ(Answer(Identifier("<Id>&lt;&gt;&amp;&quot;&apos;&#65;</Id>"), &policies), "ok");
  EXPECT_EQ(policies.policies[0].id, "<>&\"'A");
}

TEST(AccessPoliciesTest, DeepDocumentsAreRefusedWithoutRecursion) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "<a>";
  for (int i = 0; i < 10'000 && deep.size() + 4 < kXmlBytesMax - 50; ++i) deep += "</a>";
  EXPECT_EQ(Answer("<SignedIdentifiers>" + deep + "</SignedIdentifiers>"), "400 InvalidXmlDocument");
}

TEST(AccessPoliciesTest, OffsetsAreTakenAndGivenBackAsUtc) {
  StoredPolicies policies;
  ASSERT_EQ(Answer(Identifier("<Id>a</Id><AccessPolicy><Start>2029-12-31T20:30:15.5-03:30</Start>"
                              "<Expiry>2030-01-01T00:00+02:00</Expiry></AccessPolicy>"),
                   &policies),
            "ok");
  EXPECT_EQ(WriteAccessPolicies(policies),
            std::string(kHead) +
                "<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy>"
                "<Start>2030-01-01T00:00:15.5000000Z</Start><Expiry>2029-12-31T22:00:00.0000000Z</Expiry>"
                "</AccessPolicy></SignedIdentifier></SignedIdentifiers>");
}

TEST(AccessPoliciesTest, TimesComeInTheFormsOfTokens) {
  EXPECT_EQ(ParseSasTime("2024-05-06"), Time("2024-05-06T00:00:00Z"));
  EXPECT_EQ(ParseSasTime("2024-05-06T07:08Z"), Time("2024-05-06T07:08:00Z"));
  EXPECT_EQ(ParseSasTime("2024-05-06T07:08:09Z"), Time("2024-05-06T07:08:09Z"));
  EXPECT_EQ(ParseSasTime("2024-05-06T07:08:09.1234567Z"), Time("2024-05-06T07:08:09.1234567Z"));
  for (const char* text : {"", "2024", "2024-05-06T07:08", "2024-05-06T07:08+01:00", "2024-02-30",
                           "06/05/2024", "2024-05-06T07:08:09.12345678Z"}) {
    EXPECT_EQ(ParseSasTime(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace partita::http
