// Section 12 of the reference, of the whole service, beside the vectors.
#include <gmock/gmock-matchers.h>

#include "test/http/service_client.h"

namespace partita::http {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kBatchType = "Content-Type: multipart/mixed; boundary=b\n";

// One part; lines end with CRLF.
std::string PartText(std::string_view request, std::string_view headers = "", std::string_view body = "") {
  std::string part = "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
  part.append(request).append(" HTTP/1.1\r\n");
  for (char c : headers) part.append(c == '\n' ? "\r\n" : std::string(1, c));
  part.append("\r\n").append(body).append("\r\n");
  return part;
}
std::string Insert(std::string_view partition, std::string_view row,
                   std::string_view headers = "Prefer: return-no-content\n") {
  return PartText(
      "POST /orders", headers,
      "{\"PartitionKey\":\"" + std::string(partition) + "\",\"RowKey\":\"" + std::string(row) + "\"}");
}
std::string Changeset(std::string_view parts) {
  return "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + std::string(parts) +
         "--c--\r\n--b--\r\n";
}
std::string Query(std::string_view target, std::string_view headers = "") {
  return "--b\r\nContent-Type: application/http\r\n\r\nGET " + std::string(target) + " HTTP/1.1\r\n" +
         std::string(headers) + "\r\n\r\n--b--\r\n";
}

class ServiceBatches : public ::testing::Test {
 protected:
  void SetUp() override { world.MakeTable("orders"); }
  Reply Send(std::string_view body, std::string_view headers = "") {
    return world.Post("/$batch", body, std::string(kBatchType) + std::string(headers));
  }
  std::string All() { return world.Get("/orders()").body; }

  ServiceWorld world;
};

TEST_F(ServiceBatches, TheAnswerHasTheBytesOfTheReference) {  // 12.3
  world.Insert("orders", "p", "2");
  const Reply reply = Send(
      Changeset(Insert("p", "1") + PartText("DELETE /orders(PartitionKey='p',RowKey='2')", "If-Match: *\n")));
  EXPECT_EQ(reply.status, 202);
  EXPECT_EQ(reply.Header("Cache-Control"), "no-cache");
  EXPECT_EQ(reply.Header("X-Content-Type-Options"), "nosniff");
  const std::string type = reply.Header("Content-Type");
  ASSERT_THAT(type, StartsWith("multipart/mixed; boundary=batchresponse_"));
  const std::string batch = type.substr(type.find('=') + 1);
  const std::string change = reply.Between("multipart/mixed; boundary=", "\r\n");
  ASSERT_THAT(change, StartsWith("changesetresponse_"));
  const std::string tag = world.Get("/orders(PartitionKey='p',RowKey='1')").Etag();
  const std::string url = "https://contoso.table.core.windows.net/orders(PartitionKey='p',RowKey='1')";
  const std::string part =
      "--" + change +
      "\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
      "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n";
  EXPECT_EQ(reply.body,
            "--" + batch + "\r\nContent-Type: multipart/mixed; boundary=" + change + "\r\n\r\n" + part +
                "Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\nLocation: " + url +
                "\r\nDataServiceId: " + url + "\r\nETag: " + tag + "\r\n\r\n\r\n" + part +
                "DataServiceVersion: 1.0;\r\n\r\n\r\n" + "--" + change + "--\r\n--" + batch + "--\r\n");
}

TEST_F(ServiceBatches, AFailureIsOnePartWithTheBytesOfTheReference) {  // 12.4
  world.Insert("orders", "p", "taken");
  const std::string before = All();
  const Reply reply =
      Send(Changeset(Insert("p", "1") + Insert("p", "2") + Insert("p", "3") + Insert("p", "taken")));
  EXPECT_EQ(reply.status, 202);
  EXPECT_THAT(PartsOf(reply), ElementsAre(409));
  const std::string change = reply.Between("multipart/mixed; boundary=", "\r\n");
  EXPECT_THAT(
      reply.body,
      HasSubstr(
          "HTTP/1.1 409 Conflict\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\n"
          "Preference-Applied: return-no-content\r\nDataServiceVersion: 3.0;\r\n"
          "Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8\r\n\r\n"
          "{\"odata.error\":{\"code\":\"EntityAlreadyExists\",\"message\":{\"lang\":\"en-US\",\"value\":"
          "\"3:The specified entity already exists.\\nRequestId:" +
          reply.Header("x-ms-request-id") + "\\nTime:"));
  EXPECT_THAT(reply.body, HasSubstr("\"}}}\r\n--" + change + "--\r\n"));
  EXPECT_EQ(All(), before);
}

TEST_F(ServiceBatches, EveryKindOfOperationWorksAndConditionsCount) {
  const std::string tag = world.Insert("orders", "p", "r", ",\"a\":1").Etag();
  const std::string row = "/orders(PartitionKey='p',RowKey='";
  for (std::string_view r : {"2", "3"}) world.Insert("orders", "p", r, ",\"a\":1");
  const Reply reply = Send(Changeset(
      Insert("p", "1", "") + PartText("MERGE " + row + "r')", "If-Match: " + tag + "\n", "{\"b\":1}") +
      PartText("PUT " + row + "2')", "If-Match: *\n", "{\"b\":1}") +
      PartText("PATCH " + row + "4')", "", "{\"b\":1}") + PartText("PUT " + row + "5')", "", "{\"b\":1}") +
      PartText("DELETE " + row + "3')", "If-Match: *\n")));
  EXPECT_THAT(PartsOf(reply), ElementsAre(201, 204, 204, 204, 204, 204)) << reply.body;
  EXPECT_THAT(world.Get(row + "r')").body, HasSubstr("\"a\":1,\"b\":1"));
  EXPECT_THAT(world.Get(row + "2')").body, Not(HasSubstr("\"a\":1")));
  EXPECT_EQ(world.Get(row + "3')").status, 404);
  EXPECT_EQ(world.Get(row + "4')").status, 200);
  EXPECT_EQ(world.Get(row + "5')").status, 200);
  const Reply stale =
      Send(Changeset(Insert("p", "6") + PartText("MERGE " + row + "r')", "If-Match: " + tag + "\n", "{}")));
  EXPECT_THAT(PartsOf(stale), ElementsAre(412));
  EXPECT_EQ(stale.Message(), "1:The update condition specified in the request was not satisfied.");
  EXPECT_EQ(world.Get(row + "6')").status, 404);
}

TEST_F(ServiceBatches, EveryVerbCanBeTunnelledInAPart) {  // 3, 12.2
  const std::string row = "/orders(PartitionKey='p',RowKey='";
  for (std::string_view r : {"1", "2", "3", "4"}) world.Insert("orders", "p", r, ",\"a\":1");
  const auto part = [&](std::string_view r, std::string_view verb, std::string_view body) {
    return PartText("POST " + row + std::string(r) + "')",
                    "X-HTTP-Method: " + std::string(verb) + "\nIf-Match: *\n", body);
  };
  const Reply reply = Send(Changeset(part("1", "MERGE", "{\"b\":1}") + part("2", "patch", "{\"b\":1}") +
                                     part("3", "PUT", "{\"b\":1}") + part("4", "DELETE", "")));
  EXPECT_THAT(PartsOf(reply), ElementsAre(204, 204, 204, 204)) << reply.body;
  EXPECT_THAT(world.Get(row + "1')").body, HasSubstr("\"a\":1,\"b\":1"));
  EXPECT_THAT(world.Get(row + "2')").body, HasSubstr("\"a\":1,\"b\":1"));
  EXPECT_THAT(world.Get(row + "3')").body, Not(HasSubstr("\"a\":1")));
  EXPECT_EQ(world.Get(row + "4')").status, 404);
  // Without a condition they are upserts here, too.
  EXPECT_THAT(PartsOf(Send(Changeset(PartText("POST " + row + "5')", "X-HTTP-Method: PUT\n", "{}")))),
              ElementsAre(204));
  EXPECT_EQ(world.Get(row + "5')").status, 200);
}

TEST_F(ServiceBatches, InnerHeadersDecideEachPart) {
  const Reply reply =
      Send(Changeset(Insert("p", "1", "Accept: application/json;odata=fullmetadata\nContent-ID: 7\n") +
                     Insert("p", "2", "Accept: application/json;odata=nometadata\n") +
                     Insert("p", "3", "Prefer: return-no-content\n")),
           "Accept: multipart/mixed\n");
  EXPECT_THAT(PartsOf(reply), ElementsAre(201, 201, 204));
  EXPECT_THAT(reply.body,
              HasSubstr("HTTP/1.1 201 Created\r\nContent-ID: 7\r\nX-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(reply.body, HasSubstr("odata=fullmetadata;streaming=true;charset=utf-8\r\n"));
  EXPECT_THAT(reply.body, HasSubstr("\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"Timestamp\":"));
  EXPECT_EQ(reply.body.find("\"RowKey\":\"3\""), std::string::npos);  // Never a body for who asked for none.
}

TEST_F(ServiceBatches, PartsThatRepeatAHeadAreAnsweredLikeThoseThatDoNot) {
  const std::string echo = "Prefer: return-content\nAccept: application/json;odata=nometadata\n";
  const std::string quiet = "Prefer: return-no-content\n";
  const Reply reply =
      Send(Changeset(Insert("p", "1", echo) + Insert("p", "2", echo) + Insert("p", "3", quiet) +
                     Insert("p", "4", quiet) + Insert("p", "5", echo)));
  EXPECT_THAT(PartsOf(reply), ElementsAre(201, 201, 204, 204, 201)) << reply.body;
  for (const std::string row : {"1", "2", "5"}) {
    EXPECT_THAT(reply.body, HasSubstr("\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"" + row + "\""));
  }
  EXPECT_THAT(reply.body, Not(HasSubstr("odata.metadata")));

  // What is wrong with a head is told of the first part that has it, and so is what only a repeat has.
  const std::string bad = "Content-Type: text/plain\n";
  const Reply refused =
      Send(Changeset(Insert("q", "1", quiet) + Insert("q", "2", bad) + Insert("q", "3", bad)));
  EXPECT_THAT(refused.body, HasSubstr("\"value\":\"1:")) << refused.body;
  const Reply twice = Send(Changeset(Insert("q", "1") + Insert("q", "2") + Insert("q", "1")));
  EXPECT_THAT(twice.body, HasSubstr("InvalidDuplicateRow")) << twice.body;
  EXPECT_THAT(twice.body, HasSubstr("\"value\":\"2:")) << twice.body;
}

TEST_F(ServiceBatches, ContentIdsComeBackOnFailures) {
  world.Insert("orders", "p", "1");
  EXPECT_THAT(Send(Changeset(Insert("p", "1", "Content-ID: 12\n"))).body,
              HasSubstr("HTTP/1.1 409 Conflict\r\nContent-ID: 12\r\n"));
}

TEST_F(ServiceBatches, AddressesOfPartsMayNameOtherHosts) {
  const std::string host = "Host: 127.0.0.1:10002\n";
  world.Post("/devstoreaccount1/Tables", "{\"TableName\":\"orders\"}", host);
  int row = 0;
  for (std::string_view url : {"https://other.example/orders", "http://127.0.0.1:1/devstoreaccount1/orders",
                               "/orders", "/devstoreaccount1/orders", "/devstoreaccount1/orders()?sv=x&sig=y",
                               "http://h/orders?$format=application/json", "orders"}) {
    const std::string part =
        PartText("POST " + std::string(url), "",
                 "{\"PartitionKey\":\"p\",\"RowKey\":\"" + std::to_string(++row) + "\"}");
    const Reply reply =
        world.Post("/devstoreaccount1/$batch", Changeset(part), host + std::string(kBatchType));
    EXPECT_THAT(PartsOf(reply), ElementsAre(201)) << url << reply.body;
    EXPECT_THAT(reply.body,
                HasSubstr("Location: https://127.0.0.1:10002/devstoreaccount1/orders(PartitionKey='p'"));
  }
}

TEST_F(ServiceBatches, FailuresOfPartsAreFoundInOrderAndApplyNothing) {
  const std::string before = All();
  const struct {
    std::string part;
    std::string message;
    std::string code;
  } cases[] = {
      {PartText("POST /orders", "", "{"), "1:One of the request inputs is not valid.", "InvalidInput"},
      {PartText("POST /orders", "", "{\"PartitionKey\":\"p\"}"), "1:The values are not specified",
       "PropertiesNeedValue"},
      {PartText("POST /orders", "", "{\"PartitionKey\":\"p\",\"RowKey\":\"a/b\"}"),
       "1:The 'RowKey' parameter of value 'a/b'", "OutOfRangeInput"},
      {PartText("PUT /orders(PartitionKey='p',RowKey='a%2Fb')", "", "{}"), "1:", "InvalidInput"},
      {PartText("PUT /orders(PartitionKey='p',RowKey='x')", "If-Match: bad\n", "{}"),
       "1:The etag value 'bad'", "InvalidInput"},
      {PartText("PUT /orders(PartitionKey='p',RowKey='x')", "", "{\"a-b\":1}"),
       "1:The property name is invalid.", "PropertyNameInvalid"},
      {PartText("DELETE /orders(PartitionKey='p',RowKey='x')"), "1:", "MissingRequiredHeader"},
      // As the C++ client sends it for its replace (19.5).
      {PartText("PATCH /orders(PartitionKey='p',RowKey='x')"), "1:", "InvalidInput"},
      {PartText("POST /Tables", "", "{\"TableName\":\"abc\"}"), "1:", "InvalidInput"},
      {PartText("GET /orders(PartitionKey='p',RowKey='x')"), "1:", "InvalidInput"},
      {PartText("POST /orders", "Content-Type: application/atom+xml\n", "<a/>"),
       "1:", "AtomFormatNotSupported"},
      {PartText("BREW /orders"), "1:", "UnsupportedHttpVerb"},
      {PartText("POST /$batch"), "1:", "InvalidInput"},
  };
  for (const auto& failing : cases) {
    SCOPED_TRACE(failing.part);
    const Reply reply =
        Send(Changeset(Insert("p", "1") + failing.part + PartText("POST /orders", "", "nonsense")));
    EXPECT_EQ(reply.status, 202);
    EXPECT_EQ(PartsOf(reply).size(), 1u) << reply.body;
    EXPECT_EQ(reply.Code(), failing.code);
    EXPECT_THAT(reply.Message(), StartsWith(failing.message));
    EXPECT_EQ(All(), before);
  }
}

TEST_F(ServiceBatches, TablesAreCheckedForTheWholeAtTheFirstPart) {
  const auto post = [](std::string_view table) {
    return PartText("POST /" + std::string(table), "", "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}");
  };
  const Reply missing = Send(Changeset(post("nosuch")));
  EXPECT_EQ(missing.Message(), "0:The table specified does not exist.");
  EXPECT_EQ(missing.body.find("Cache-Control"), std::string::npos);
  EXPECT_EQ(Send(Changeset(post("bad_name"))).Message(),
            "0:The specifed resource name contains invalid characters.");
  const std::string nonsense = PartText("POST /nosuch", "", "nonsense");
  EXPECT_EQ(Send(Changeset(post("nosuch") + nonsense)).Message(), "0:The table specified does not exist.");
  EXPECT_THAT(Send(Changeset(nonsense + post("nosuch"))).Message(),
              StartsWith("0:One of the request inputs"));
  EXPECT_EQ(Send(Changeset(post("ORDERS") + Insert("p", "2"))).status, 202);
  EXPECT_EQ(world.Get("/orders(PartitionKey='p',RowKey='2')").status, 200);  // One table in two cases.
}

TEST_F(ServiceBatches, ABrokenEntityIsToldBeforeALaterFailureAndABrokenDeleteIsNot) {
  const auto broken = [](std::string_view table) {
    return PartText("POST /" + std::string(table), "", "{\"PartitionKey\":\"p\",\"RowKey\":\"b\",\"a-b\":1}");
  };
  const std::string deletion =
      PartText("DELETE /orders(PartitionKey='p',RowKey='" + std::string(600, 'k') + "')", "If-Match: *\n");
  const std::string nonsense = PartText("POST /orders", "", "nonsense");
  const struct {
    std::string parts;
    std::string operation;
    std::string code;
  } cases[] = {
      {Insert("p", "1") + broken("orders") + nonsense, "1:", "PropertyNameInvalid"},
      {deletion + broken("orders") + nonsense, "1:", "PropertyNameInvalid"},
      {deletion + nonsense, "1:", "InvalidInput"},
      {Insert("p", "1") + deletion + broken("orders"), "1:", "ResourceNotFound"},
      {deletion + Insert("p", "1"), "0:", "ResourceNotFound"},
      {broken("nosuch"), "0:", "TableNotFound"},
      {broken("nosuch") + nonsense, "0:", "PropertyNameInvalid"},
  };
  const std::string before = All();
  for (const auto& failing : cases) {
    SCOPED_TRACE(failing.parts);
    const Reply reply = Send(Changeset(failing.parts));
    EXPECT_EQ(reply.status, 202);
    EXPECT_EQ(reply.Code(), failing.code);
    EXPECT_THAT(reply.Message(), StartsWith(failing.operation));
    EXPECT_EQ(All(), before);
  }
}

TEST_F(ServiceBatches, OfTooManyPartsNoneIsLookedAt) {
  for (const std::string& first :
       {Insert("p", "0"), PartText("PUT /orders(PartitionKey='a%2Fb',RowKey='c')", "", "{}"),
        PartText("POST /$batch", "", "{}"), PartText("BREW /orders"),
        PartText("POST /nosuch", "", "nonsense")}) {
    SCOPED_TRACE(first);
    std::string parts = first;
    for (int i = 1; i <= 100; ++i) parts += Insert("p", std::to_string(i));
    const Reply reply = Send(Changeset(parts));
    EXPECT_THAT(PartsOf(reply), ElementsAre(400));
    EXPECT_EQ(reply.Code(), "InvalidInput");
    EXPECT_EQ(reply.Message(),
              "99:The batch request operation exceeds the maximum 100 changes per change set.");
  }
  EXPECT_EQ(All().find("RowKey"), std::string::npos);
}

TEST_F(ServiceBatches, TheLastOfTooManyPartsEchoesItsPreference) {  // 12.4
  std::string parts;
  for (int i = 0; i <= 100; ++i) parts += Insert("p", std::to_string(i));
  EXPECT_THAT(Send(Changeset(parts)).body, HasSubstr("Preference-Applied: return-no-content\r\n"));
}

// No part's fault, and it ends by itself: the whole is refused, for clients to try it again.
TEST_F(ServiceBatches, OnATableInDoubtTheWholeIsRefused) {  // 17.2
  world.runtime().AddFault({.operations = SimOps(SimOp::kFlushDirectory), .path_prefix = "meta"});
  EXPECT_EQ(world.Delete("/Tables('orders')", "").Outcome(), "500 OperationTimedOut");
  const Reply refused = Send(Changeset(Insert("p", "1")));
  EXPECT_EQ(refused.Outcome(), "500 OperationTimedOut");
  EXPECT_THAT(PartsOf(refused), ElementsAre());
  world.runtime().ClearFaults();
}

TEST_F(ServiceBatches, AQueryStandsAlone) {
  world.Insert("orders", "p", "1", ",\"a\":1");
  const Reply get =
      Send(Query("/orders(PartitionKey='p',RowKey='1')", "Accept: application/json;odata=nometadata"));
  EXPECT_EQ(get.status, 202);
  EXPECT_EQ(get.body.find("changeset"), std::string::npos);
  EXPECT_THAT(get.body, HasSubstr("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(get.body, HasSubstr("ETag: W/\"datetime'"));
  EXPECT_THAT(
      get.body,
      HasSubstr("DataServiceVersion: 3.0;\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"Timestamp\":"));
  EXPECT_THAT(Send(Query("/orders()?$filter=a%20eq%201")).body, HasSubstr("\"value\":[{\"odata.etag\":"));
  const Reply absent = Send(Query("/orders(PartitionKey='p',RowKey='2')"));
  EXPECT_THAT(PartsOf(absent), ElementsAre(404));
  EXPECT_EQ(absent.Code(), "ResourceNotFound");
  EXPECT_THAT(PartsOf(Send(Query("/Tables"))), ElementsAre(400));
  EXPECT_THAT(PartsOf(Send(Query("/orders()?$filter=startswith(a,'x')"))), ElementsAre(501));
}

// Its text is held twice while it is made a part.
TEST_F(ServiceBatches, AQueryStopsWhenItsClientHasGone) {
  world.Insert("orders", "p", "1");
  const auto scanned = [this] { return world.service().counters().Sum().entities_scanned; };
  const uint64_t before = scanned();
  std::atomic<bool> gone{true};
  world.peer_gone = &gone;
  EXPECT_EQ(Send(Query("/orders()")).Outcome(), world.Get("/orders()").Outcome());
  EXPECT_EQ(scanned(), before);
  gone = false;
  EXPECT_THAT(PartsOf(Send(Query("/orders()"))), ElementsAre(200));
  EXPECT_EQ(scanned(), before + 1);
}

TEST_F(ServiceBatches, ALargeAnswerToAQueryIsCountedAndFindsRoomOrIsRefused) {  // 17.2
  std::string filler;
  for (const char* name : {"a", "b", "c", "d"}) {
    filler.append(",\"").append(name).append("\":\"").append(30'000, 'x').append("\"");
  }
  world.Insert("orders", "p", "1", filler);
  BufferBudget budget(512 << 10);
  BufferShare others(&budget);
  EXPECT_TRUE(others.Set(300 << 10));
  world.buffers = &budget;
  for (std::string_view target : {"/orders(PartitionKey='p',RowKey='1')", "/orders()"}) {
    EXPECT_EQ(world.Get(target).status, 200);
    EXPECT_EQ(Send(Query(target)).Outcome(), "503 ServerBusy");
    EXPECT_EQ(budget.held(), others.bytes());
    others.Set(0);
    const Reply reply = Send(Query(target));
    EXPECT_THAT(PartsOf(reply), ElementsAre(200));
    EXPECT_NE(reply.body.find(filler.substr(1)), std::string::npos);
    EXPECT_EQ(budget.held(), 0u) << "given back with the answer";
    others.Set(300 << 10);
  }
  world.buffers = nullptr;
}

TEST_F(ServiceBatches, AQueryTakesNoLongerThanTheWholeMay) {
  for (int i = 0; i < 300; ++i) {
    world.Insert("orders", "p", std::to_string(100 + i), ",\"a\":\"" + std::string(10'000, 'a') + "\"");
  }
  ASSERT_TRUE(world.database().Flush().ok());
  // Rows of a page from a disk that takes its time.
  const auto rows = [&](std::string_view outer, std::string_view inner) {
    world.Reopen();
    const size_t slow = world.runtime().AddFault(
        {.effect = SimEffect::kSlow, .operations = SimOps(SimOp::kRead), .delay_ns = 1'500'000'000});
    const Reply reply = world.Post("/$batch" + std::string(outer),
                                   Query("/orders()?$select=RowKey" + std::string(inner)), kBatchType);
    world.runtime().RemoveFault(slow);
    EXPECT_THAT(PartsOf(reply), ElementsAre(200));
    size_t count = 0;
    for (size_t at = 0; (at = reply.body.find("\"RowKey\":", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const size_t hurried = rows("", "&timeout=1");
  ASSERT_LT(hurried, rows("", ""));
  EXPECT_EQ(rows("?timeout=1", ""), hurried);
  EXPECT_EQ(rows("?timeout=1", "&timeout=20"), hurried);
  EXPECT_EQ(rows("?timeout=20", "&timeout=1"), hurried);
}

TEST_F(ServiceBatches, WhatRefusesTheWholeIsAPlainAnswer) {
  const std::string good = Changeset(Insert("p", "1"));
  const Reply wrong_key = Send(good, "Authorization: SharedKey contoso:AAAA\n");
  EXPECT_EQ(wrong_key.Outcome(), "403 AuthenticationFailed");
  EXPECT_EQ(wrong_key.Header("Content-Type"), "application/xml");
  EXPECT_EQ(world.Post("/$batch", good, "Content-Type: application/json\n").Outcome(), "400 InvalidInput");
  EXPECT_EQ(Send("garbage").Outcome(), "400 InvalidInput");
  EXPECT_EQ(Send(Changeset("")).Outcome(), "400 InvalidInput");
  EXPECT_EQ(Send(good.substr(0, good.size() - 20)).Outcome(), "400 InvalidInput");  // Breaks off.
  EXPECT_EQ(All().find("RowKey"), std::string::npos);
  const Reply secondary = Send(good, "Host: contoso-secondary.table.core.windows.net\n");
  EXPECT_EQ(secondary.Outcome(), "403 InsufficientAccountPermissions");
}

TEST_F(ServiceBatches, OthersGetTheirTurnBetweenTheParts) {
  // The last part fails, so that all are read, and nothing waits for the store.
  const auto steps_of = [&](int parts) {
    std::string text;
    for (int i = 0; i < parts; ++i) {
      text += PartText("POST /orders", "",
                       "{\"PartitionKey\":\"p\",\"RowKey\":\"" + std::to_string(i) + "\",\"a\":\"" +
                           std::string(20'000, 'a') + "\"}");
    }
    const uint64_t before = world.runtime().steps();
    EXPECT_EQ(Send(Changeset(text + Insert("p", "0"))).Code(), "InvalidDuplicateRow");
    return world.runtime().steps() - before;
  };
  EXPECT_GT(steps_of(99), steps_of(1) + 4);  // The simulator says one time in eight that a turn is over.
}

TEST_F(ServiceBatches, TextOfFourMebibytesIsTaken) {
  std::string parts;
  for (int i = 0; i < 100; ++i) {
    parts += PartText("POST /orders", "Prefer: return-no-content\n",
                      "{\"PartitionKey\":\"p\",\"RowKey\":\"" + std::to_string(i) + "\",\"a\":\"" +
                          std::string(30'000, 'x') + "\"}");
  }
  const Reply reply = Send(Changeset(parts));  // 3 MB of JSON, 6 MB by the formula.
  EXPECT_EQ(PartsOf(reply).size(), 100u) << reply.body.substr(0, 500);
}

}  // namespace
}  // namespace partita::http
