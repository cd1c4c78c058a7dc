#include "api/http/service_properties.h"

#include <gtest/gtest.h>

#include "api/date_time.h"
#include "api/http/service_stats.h"

namespace partita::http {
namespace {

const std::string kXmlHead = "\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?>";

std::string Update(const std::string& inside, ServiceProperties* properties) {
  const auto refused = UpdateServiceProperties(
      "<StorageServiceProperties>" + inside + "</StorageServiceProperties>", properties);
  if (!refused) return "ok";
  EXPECT_EQ(refused->status, 400);
  EXPECT_TRUE(refused->as_xml);
  return std::string(ErrorCodeName(refused->code));
}
std::string Update(const std::string& inside) {
  ServiceProperties properties;
  return Update(inside, &properties);
}

std::string Rule(const std::string& origins = "http://a", const std::string& methods = "GET",
                 const std::string& allowed = "", const std::string& exposed = "",
                 const std::string& age = "5") {
  return "<CorsRule><AllowedOrigins>" + origins + "</AllowedOrigins><AllowedMethods>" + methods +
         "</AllowedMethods><AllowedHeaders>" + allowed + "</AllowedHeaders><ExposedHeaders>" + exposed +
         "</ExposedHeaders><MaxAgeInSeconds>" + age + "</MaxAgeInSeconds></CorsRule>";
}
std::string Cors(const std::string& rules) { return "<Cors>" + rules + "</Cors>"; }

TEST(ServicePropertiesTest, DefaultsAreWrittenAsTheReferenceShowsThem) {
  EXPECT_EQ(
      WriteServiceProperties({}),
      kXmlHead +
          "<StorageServiceProperties><Logging><Version>1.0</Version><Read>false</Read><Write>false</Write>"
          "<Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></Logging>"
          "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false"
          "</Enabled></RetentionPolicy></HourMetrics>"
          "<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false"
          "</Enabled></RetentionPolicy></MinuteMetrics><Cors /></StorageServiceProperties>");
}

TEST(ServicePropertiesTest, ChildrenComeInAnyOrderAndGoBackInOne) {
  ServiceProperties properties;
  // As the client from Python writes them.
  ASSERT_EQ(
      Update("<Logging><Version>1.0</Version><Delete>true</Delete><Read>false</Read><Write>true</Write>"
             "<RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy></Logging>"
             "<MinuteMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
             "<RetentionPolicy><Enabled>true</Enabled><Days>1</Days></RetentionPolicy></MinuteMetrics>" +
                 Cors(Rule("http://a, http://b", "PUT,GET", "x-ms-meta*,abc", "x-*,ETag")),
             &properties),
      "ok");
  EXPECT_TRUE(properties.logging.remove && properties.logging.write && !properties.logging.read);
  EXPECT_EQ(properties.logging.retention.days, 365u);
  const std::string xml = WriteServiceProperties(properties);
  EXPECT_NE(xml.find("<Read>false</Read><Write>true</Write><Delete>true</Delete>"), xml.npos);
  EXPECT_NE(xml.find("<Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy>"), xml.npos);
  EXPECT_NE(
      xml.find("<Cors><CorsRule><AllowedMethods>PUT,GET</AllowedMethods>"
               "<AllowedOrigins>http://a,http://b</AllowedOrigins>"
               "<AllowedHeaders>abc,x-ms-meta*</AllowedHeaders><ExposedHeaders>ETag,x-*</ExposedHeaders>"
               "<MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>"),
      xml.npos);
  ServiceProperties again;
  ASSERT_FALSE(UpdateServiceProperties(xml, &again));
  EXPECT_EQ(again, properties);
}

TEST(ServicePropertiesTest, WhatADocumentLeavesOutKeepsItsSetting) {
  ServiceProperties properties;
  properties.logging.read = true;
  properties.hour_metrics.enabled = true;
  ASSERT_EQ(Update(Cors(Rule()), &properties), "ok");
  EXPECT_TRUE(properties.logging.read && properties.hour_metrics.enabled);
  EXPECT_EQ(properties.cors.size(), 1u);
  ASSERT_EQ(Update("", &properties), "ok");
  EXPECT_EQ(properties.cors.size(), 1u);
  ASSERT_EQ(Update("<Cors />", &properties), "ok");
  EXPECT_TRUE(properties.cors.empty() && properties.logging.read);
}

TEST(ServicePropertiesTest, WhatBreaksTheRulesIsRefusedAndChangesNothing) {
  const auto logging = [](const std::string& retention) {
    return "<Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>false</Delete>" +
           retention + "</Logging>";
  };
  std::string names;
  for (int i = 0; i < 65; ++i) names += "h" + std::to_string(i) + ",";
  const std::pair<std::string, std::string> bad[] = {
      {logging("<RetentionPolicy><Enabled>true</Enabled><Days>366</Days></RetentionPolicy>"),
       "InvalidXmlDocument"},
      {logging("<RetentionPolicy><Enabled>true</Enabled><Days>4294967296</Days></RetentionPolicy>"),
       "InvalidXmlDocument"},
      {logging("<RetentionPolicy><Enabled>true</Enabled><Days>4294967296x</Days></RetentionPolicy>"),
       "InvalidXmlNodeValue"},
      {logging("<RetentionPolicy><Enabled>true</Enabled><Days>0</Days></RetentionPolicy>"),
       "InvalidXmlDocument"},
      {logging("<RetentionPolicy><Enabled>true</Enabled><Days>x</Days></RetentionPolicy>"),
       "InvalidXmlNodeValue"},
      {logging("<RetentionPolicy><Enabled>true</Enabled></RetentionPolicy>"), "MissingRequiredXmlNode"},
      {logging("<RetentionPolicy><Enabled>maybe</Enabled></RetentionPolicy>"), "InvalidXmlNodeValue"},
      {logging(""), "MissingRequiredXmlNode"},
      {"<HourMetrics><Version>1.0</Version><Enabled>true</Enabled></HourMetrics>", "MissingRequiredXmlNode"},
      {"<HourMetrics><Version>7</Version><Enabled>false</Enabled></HourMetrics>", "InvalidXmlNodeValue"},
      {"<Cors /><Cors />", "InvalidXmlDocument"},
      {"<Other />", "InvalidXmlDocument"},
      {"text", "InvalidXmlDocument"},
      {Cors(Rule() + Rule() + Rule() + Rule() + Rule() + Rule()), "InvalidXmlDocument"},
      {Cors(Rule(std::string(257, 'o'))), "InvalidXmlDocument"},
      {Cors(Rule("http://a", "GET", names)), "InvalidXmlDocument"},
      {Cors(Rule("http://a", "GET", "a*,b*,c*")), "InvalidXmlDocument"},
      {Cors(Rule("http://a", "GET", std::string(2048, 'h'))), "InvalidXmlDocument"},
      {Cors(Rule("", "GET")), "InvalidXmlNodeValue"},
      {Cors(Rule("http://a", "TRACE")), "InvalidXmlNodeValue"},
      {Cors(Rule("http://a&#10;b")), "InvalidXmlNodeValue"},
      {Cors(Rule("http://a", "GET", "", "", "-1")), "InvalidXmlNodeValue"},
      {Cors(Rule("http://a", "GET", "", "", "4294967296")), "InvalidXmlNodeValue"},
      {Cors("<CorsRule><AllowedOrigins>*</AllowedOrigins></CorsRule>"), "MissingRequiredXmlNode"},
  };
  ServiceProperties before;
  ASSERT_EQ(Update(Cors(Rule()), &before), "ok");
  for (const auto& [inside, code] : bad) {
    ServiceProperties properties = before;
    EXPECT_EQ(Update(inside, &properties), code) << inside.substr(0, 200);
    EXPECT_EQ(properties, before);
  }
  ServiceProperties properties;
  EXPECT_TRUE(UpdateServiceProperties("", &properties).has_value());
  EXPECT_TRUE(UpdateServiceProperties("<!DOCTYPE a><StorageServiceProperties/>", &properties).has_value());
  EXPECT_EQ(Update(Cors(Rule("http://a", "GET", "a*,b*"))), "ok");
}

TEST(ServiceStatsTest, TheBodySaysThatTheSecondaryIsLiveAndInStep) {
  EXPECT_EQ(
      WriteServiceStats(*ParseDateTime("2025-01-15T10:20:30.9Z")),
      kXmlHead +
          "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Wed, 15 Jan 2025 10:20:30 "
          "GMT</LastSyncTime></GeoReplication></StorageServiceStats>");
}

}  // namespace
}  // namespace partita::http
