#include "api/http/cors.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

namespace partita::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ServiceProperties Rules() {
  ServiceProperties properties;
  properties.cors = {
      {.origins = {"http://a", "http://b"},
       .methods = {"GET", "PUT"},
       .allowed_headers = {"content-type", "x-ms-*"},
       .exposed_headers = {"ETag"},
       .max_age_seconds = 60},
      {.origins = {"http://b"}, .methods = {"DELETE"}, .allowed_headers = {"*"}, .max_age_seconds = 7},
      {.origins = {"*"}, .methods = {"HEAD"}},
  };
  return properties;
}

struct Asked {
  std::string_view origin, method, headers;
};

// The preflight's answer: the code of its refusal, or its headers.
std::string Preflight(const Asked& asked, const ServiceProperties* properties) {
  HttpRequest request;
  request.method = Method::kOptions;
  request.method_text = "OPTIONS";
  if (!asked.origin.empty()) request.headers.push_back({"Origin", asked.origin});
  if (!asked.method.empty()) request.headers.push_back({"Access-Control-Request-Method", asked.method});
  if (!asked.headers.empty()) request.headers.push_back({"Access-Control-Request-Headers", asked.headers});
  HttpResponse response;
  if (const auto refused = AnswerPreflight(request, properties, &response)) {
    return std::to_string(refused->status) + " " + std::string(ErrorCodeName(refused->code));
  }
  EXPECT_EQ(response.status, 200);
  return response.headers;
}

std::string Actual(std::string_view origin, std::string_view method, const ServiceProperties* properties) {
  HttpRequest request;
  request.method_text = method;
  if (!origin.empty()) request.headers.push_back({"Origin", origin});
  HttpResponse response;
  AddCorsHeaders(request, properties, &response);
  return response.headers;
}

TEST(CorsTest, APreflightThatARuleAllowsSaysWhatIsAllowed) {
  const ServiceProperties rules = Rules();
  EXPECT_EQ(
      Preflight({"http://a", "PUT", "Content-Type, X-MS-Date"}, &rules),
      "Access-Control-Allow-Origin: http://a\r\nAccess-Control-Allow-Credentials: true\r\nVary: Origin\r\n"
      "Access-Control-Allow-Methods: GET,PUT\r\n"
      "Access-Control-Allow-Headers: Content-Type, X-MS-Date\r\nAccess-Control-Max-Age: 60\r\n");
  EXPECT_THAT(Preflight({"http://b", "DELETE", "any,thing"}, &rules), HasSubstr("Max-Age: 7\r\n"));
  const std::string all = Preflight({"http://whoever", "HEAD", ""}, &rules);
  EXPECT_THAT(all, HasSubstr("Access-Control-Allow-Origin: *\r\n"));
  EXPECT_THAT(all, Not(HasSubstr("Credentials")));
  EXPECT_THAT(all, Not(HasSubstr("Vary")));
}

TEST(CorsTest, APreflightThatNoRuleAllowsFails) {
  const ServiceProperties rules = Rules();
  const ServiceProperties none;
  const std::string failure = "403 CorsPreflightFailure";
  EXPECT_EQ(Preflight({"http://A", "GET", ""}, &rules), failure);  // Case counts.
  EXPECT_EQ(Preflight({"http://a", "POST", ""}, &rules), failure);
  EXPECT_EQ(Preflight({"http://a", "GET", "x-other"}, &rules), failure);
  EXPECT_EQ(Preflight({"http://a", "GET", ""}, &none), failure);
  EXPECT_EQ(Preflight({"http://a", "GET", ""}, nullptr), failure);
}

// One that allows the headers further down does not help: the request itself would go by the first.
TEST(CorsTest, TheFirstRuleForAnOriginAndAMethodDecides) {
  ServiceProperties rules = Rules();
  rules.cors.push_back({.origins = {"*"}, .methods = {"GET"}, .allowed_headers = {"*"}});
  EXPECT_EQ(Preflight({"http://a", "GET", "x-other"}, &rules), "403 CorsPreflightFailure");
  EXPECT_THAT(Preflight({"http://c", "GET", "x-other"}, &rules), HasSubstr("Allow-Headers: x-other\r\n"));
}

TEST(CorsTest, APreflightWithoutItsHeadersIsMalformed) {
  const ServiceProperties rules = Rules();
  EXPECT_EQ(Preflight({"", "GET", ""}, &rules), "400 InvalidHeaderValue");
  EXPECT_EQ(Preflight({"http://a", "", ""}, &rules), "400 InvalidHeaderValue");
  EXPECT_EQ(Preflight({"", "", ""}, nullptr), "400 InvalidHeaderValue");
  EXPECT_EQ(Preflight({"http://b", "DELETE", "a\r\nb"}, &rules), "400 InvalidHeaderValue");
}

TEST(CorsTest, ActualRequestsGetWhatTheFirstMatchingRuleSays) {
  const ServiceProperties rules = Rules();
  EXPECT_EQ(
      Actual("http://a", "GET", &rules),
      "Access-Control-Allow-Origin: http://a\r\nAccess-Control-Allow-Credentials: true\r\nVary: Origin\r\n"
      "Access-Control-Expose-Headers: ETag\r\n");
  EXPECT_EQ(Actual("http://z", "HEAD", &rules), "Access-Control-Allow-Origin: *\r\n");
}

// A browser takes names, or "*" alone.
TEST(CorsTest, APrefixIsTheNamesOfThisAnswerThatBeginSo) {
  ServiceProperties rules;
  rules.cors.push_back({.origins = {"*"}, .methods = {"GET"}, .exposed_headers = {"ETag", "X-ms-c*"}});
  HttpRequest request;
  request.method_text = "GET";
  request.headers = {{"Origin", "http://a"}};
  HttpResponse response;
  response.AddHeader("x-ms-continuation-NextRowKey", "1");
  response.AddHeader("x-ms-version", "x-ms-c: 2");
  response.AddHeader("x-ms-client-request-id", "3");
  AddCorsHeaders(request, &rules, &response);
  EXPECT_THAT(response.headers, HasSubstr("Access-Control-Expose-Headers: "
                                          "ETag,x-ms-continuation-NextRowKey,x-ms-client-request-id\r\n"));
}

TEST(CorsTest, OnceThereAreRulesAnswersVaryByOrigin) {
  const ServiceProperties rules = Rules();
  const ServiceProperties none;
  EXPECT_EQ(Actual("http://z", "GET", &rules), "Vary: Origin\r\n");
  EXPECT_EQ(Actual("", "GET", &rules), "Vary: Origin\r\n");
  EXPECT_EQ(Actual("http://a", "GET", &none), "");
  EXPECT_EQ(Actual("http://a", "GET", nullptr), "");
}

}  // namespace
}  // namespace partita::http
