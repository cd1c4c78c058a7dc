// What the engine's refusals are to clients; sections 13.1, 4.2 and 10.9 of the reference: forms of error
// bodies, their headers, and which of several errors is told.
#include <gmock/gmock-matchers.h>

#include "api/date_time.h"
#include "api/http/answer.h"
#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kOrder = "/orders(PartitionKey='p',RowKey='r')";

class ErrorForms : public ::testing::Test {
 protected:
  void SetUp() override {
    world.MakeTable("orders");
    ASSERT_EQ(world.Insert("orders", "p", "r", ",\"a\":1").status, 201);
  }

  ServiceWorld world;
};

// ---- What the engine says, as its client is told.

TEST(ErrorOfStatusTest, EveryStatusOfTheEngineHasItsAnswer) {
  const auto outcome = [](Status status, bool for_table = false) {
    const ServiceError error = ErrorOfStatus(status, for_table);
    return std::to_string(error.status) + " " + std::string(ErrorCodeName(error.code));
  };
  EXPECT_EQ(outcome(Status::NotFound("")), "404 ResourceNotFound");
  EXPECT_EQ(outcome(Status::AlreadyExists("")), "409 EntityAlreadyExists");
  EXPECT_EQ(outcome(Status::AlreadyExists(""), true), "409 TableAlreadyExists");
  EXPECT_EQ(outcome(Status::Busy(""), true), "409 TableBeingDeleted");
  EXPECT_EQ(outcome(Status::PreconditionFailed("")), "412 UpdateConditionNotSatisfied");
  for (const Status& status :
       {Status::Busy(""), Status::NoSpace(""), Status::Throttled("", 5), Status::ResourceExhausted(""),
        Status::Closed(""), Status::Moved(""), Status::Cancelled("")}) {
    EXPECT_EQ(outcome(status), "503 ServerBusy") << status.ToString();
    EXPECT_GT(ErrorOfStatus(status, false).retry_after_us, 0u) << status.ToString();
  }
  EXPECT_EQ(ErrorOfStatus(Status::Throttled("", 2'500'000), false).retry_after_us, 2'500'000u);
  EXPECT_EQ(outcome(Status::Unknown("")), "500 OperationTimedOut");
  EXPECT_EQ(outcome(Status::DeadlineExceeded("")), "500 OperationTimedOut");
  EXPECT_EQ(outcome(Status::IoError("/secret/path")), "500 InternalError");
  EXPECT_EQ(outcome(Status::Corruption("")), "500 InternalError");
  EXPECT_EQ(ErrorOfStatus(Status::IoError("/secret/path"), false).message.find("secret"), std::string::npos);
}

TEST(ErrorOfStatusTest, NoCodeHasAnEmptyNameOrText) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::kXMethodNotUsingPost); ++code) {
    const ServiceError error(static_cast<ErrorCode>(code));
    EXPECT_NE(ErrorCodeName(error.code), "");
    EXPECT_NE(error.message, "") << ErrorCodeName(error.code);
    EXPECT_GE(error.status, 400) << ErrorCodeName(error.code);
  }
}

TEST(AnswerErrorTest, ThrottledClientsAreToldWhenToComeBack) {  // 22.15
  const HttpRequest http;
  const ServiceRequest request(http);
  HttpResponse response;
  AnswerError(request, ErrorOfStatus(Status::Throttled("", 1'000'001), false), {"id", 0}, &response);
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.headers, HasSubstr("\r\nRetry-After: 2\r\nx-ms-retry-after-ms: 1001\r\n"));
  EXPECT_THAT(response.body,
              HasSubstr("\"value\":\"The server is currently unable to receive requests. Please retry "
                        "your request.\\nRequestId:id\\nTime:1601-01-01T00:00:00.0000000Z\""));
}

// ---- Forms of the bodies (13.1) and headers of errors (4.2).

TEST_F(ErrorForms, JsonBodiesHaveTheDocumentedBytes) {
  const Reply reply = world.Get("/nosuch()");
  EXPECT_EQ(reply.Header("Content-Type"),
            "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
  EXPECT_EQ(reply.Header("x-ms-error-code"), "TableNotFound");
  const std::string time = reply.Between("Time:", "\"");
  ASSERT_EQ(time.size(), std::string_view("2025-01-15T10:20:30.1234567Z").size());
  EXPECT_TRUE(ParseDateTime(time).ok()) << time;
  EXPECT_EQ(
      reply.body,
      "{\"odata.error\":{\"code\":\"TableNotFound\",\"message\":{\"lang\":\"en-US\",\"value\":\"The table "
      "specified does not exist.\\nRequestId:" +
          reply.Header("x-ms-request-id") + "\\nTime:" + time + "\"}}}");
}

TEST_F(ErrorForms, TheLevelAskedForStandsInTheContentType) {
  EXPECT_EQ(world.Get("/nosuch()", "Accept: application/json;odata=fullmetadata\n").Header("Content-Type"),
            "application/json;odata=fullmetadata;streaming=true;charset=utf-8");
  EXPECT_EQ(world.Get("/nosuch()", "Accept: */*\n").Header("Content-Type"),
            "application/json;odata=minimalmetadata;streaming=true;charset=utf-8");
}

TEST_F(ErrorForms, XmlBodiesOfDataResourcesHaveTheDocumentedForm) {
  const Reply reply = world.Get("/Tables", "Accept: application/atom+xml\n");
  EXPECT_EQ(reply.Header("Content-Type"), "application/xml;charset=utf-8");
  EXPECT_THAT(reply.body,
              HasSubstr("<error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\">"
                        "<code>AtomFormatNotSupported</code><message xml:lang=\"en-US\">"));
}

TEST_F(ErrorForms, OnlyThePreferenceThatWasSentIsEchoed) {
  const std::string prefer = "Prefer: return-no-content\n";
  const std::string body = "{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}";
  EXPECT_EQ(world.Post("/orders", body, prefer).Header("Preference-Applied"), "return-no-content");  // 409.
  EXPECT_EQ(world.Post("/bad_name", body, prefer).Header("Preference-Applied"), "return-no-content");
  EXPECT_EQ(world.Post("/Tables", "{\"TableName\":\"ab\"}", prefer).Header("Preference-Applied"),
            "return-no-content");  // Too short.
  EXPECT_EQ(world.Post("/orders", "{}", prefer).Header("Preference-Applied"), "return-no-content");
  EXPECT_EQ(world.Post("/Tables", "{\"TableName\":\"orders\"}", prefer).Header("Preference-Applied"),
            "return-no-content");
  const std::string forbidden = "{\"PartitionKey\":\"p\",\"RowKey\":\"a/b\"}";
  EXPECT_FALSE(world.Post("/orders", forbidden, prefer).Has("Preference-Applied"));
  const std::string too_old =
      "{\"PartitionKey\":\"p\",\"RowKey\":\"o\",\"d\":\"1600-12-31T23:59:59Z\","
      "\"d@odata.type\":\"Edm.DateTime\"}";
  const Reply out_of_range = world.Post("/orders", too_old, prefer);
  EXPECT_EQ(out_of_range.Code(), "OutOfRangeInput");
  EXPECT_EQ(out_of_range.Header("Preference-Applied"), "return-no-content");
  EXPECT_FALSE(world.Post("/orders", body).Has("Preference-Applied"));
  EXPECT_FALSE(world.Put(kOrder, "{}", prefer).Has("Preference-Applied"));
}

// ---- Order of checks (10.9).

TEST_F(ErrorForms, ChecksComeInTheOrderOfTheReference) {
  const std::string bad_key = "Authorization: SharedKey contoso:AAAA\n";
  // 1 address, 2 version, 3 authentication, 5 method, 6 headers, 7 media type, 8 body, 9 table, 10 entity.
  EXPECT_EQ(world.Get("/orders(x)", "x-ms-version: bad\n" + bad_key).status, 400);
  EXPECT_EQ(world.Get("/orders(x)", "x-ms-version: bad\n" + bad_key).Code(), "InvalidInput");
  EXPECT_EQ(world.Get("/orders", "x-ms-version: bad\n" + bad_key).Code(), "InvalidHeaderValue");
  EXPECT_EQ(world.Plain("BREW", "/orders", bad_key, "").Code(), "AuthenticationFailed");
  EXPECT_EQ(world.Plain("BREW", "/orders", "If-Match: bad\n", "").Code(), "UnsupportedHttpVerb");
  EXPECT_EQ(world.Put(kOrder, "x", "If-Match: bad\nAccept: text/html\n").Code(), "InvalidInput");
  EXPECT_EQ(world.Put(kOrder, "x", "Accept: text/html\n").Code(), "AtomFormatNotSupported");
  EXPECT_EQ(world.Put("/bad_name(PartitionKey='p',RowKey='r')", "x").Code(), "InvalidInput");
  EXPECT_EQ(world.Put("/nosuch(PartitionKey='p',RowKey='r')", "{\"a-b\":1}").Code(), "PropertyNameInvalid");
  EXPECT_EQ(world.Put("/nosuch(PartitionKey='p',RowKey='r')", "{}", "If-Match: W/\"x\"\n").Code(),
            "TableNotFound");
  EXPECT_EQ(world.Put("/orders(PartitionKey='p',RowKey='x')", "{}", "If-Match: W/\"x\"\n").Code(),
            "ResourceNotFound");
}

}  // namespace
}  // namespace partita::http
