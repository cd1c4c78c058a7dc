#include "api/http/batch_reader.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "api/http/batch_writer.h"
#include "api/http/response_writer.h"
#include "engine/base/clock.h"
#include "engine/io/system_clock.h"
#include "test/support/slowdown.h"

namespace partita::http {
namespace {

using ::testing::ElementsAre;

constexpr std::string_view kType = "multipart/mixed; boundary=b";

// The bodies of the parts, or "refused".
std::vector<std::string> BodiesOf(std::string_view text, std::string_view type = kType) {
  Batch batch;
  if (ReadBatch(type, text, &batch)) return {"refused"};
  std::vector<std::string> bodies;
  for (const Batch::Part& part : batch.parts) bodies.emplace_back(part.body);
  return bodies;
}

std::string Part(std::string_view body, std::string_view headers = "") {
  return "--c\nContent-Type: application/http\n\nPOST /t HTTP/1.1\n" + std::string(headers) + "\n" +
         std::string(body);
}

const std::string kStart = "--b\nContent-Type: multipart/mixed; boundary=c\n\n";
const std::string kEnd = "--c--\n--b--\n";

TEST(BatchReaderTest, MethodTargetAndHeadersOfAPartAreRead) {
  Batch batch;
  const std::string text =
      "--b\r\ncontent-type: multipart/mixed; boundary=c\r\n\r\n\r\n--c\r\n"
      "content-type: application/http\r\ncontent-id: 7\r\n\r\n\r\n"
      "DELETE https://h/t(PartitionKey='a b',RowKey='c')?x=1 HTTP/1.1\r\nIf-Match:  *  \r\n"
      "Content-ID: 8\r\n\r\n\r\n--c--\r\n--b--\r\n";
  ASSERT_FALSE(ReadBatch(kType, text, &batch).has_value());
  ASSERT_EQ(batch.parts.size(), 1u);
  const HttpRequest& part = batch.RequestOf(0);
  EXPECT_FALSE(batch.query);
  EXPECT_EQ(part.method, Method::kDelete);
  EXPECT_EQ(part.target, "https://h/t(PartitionKey='a b',RowKey='c')?x=1");
  EXPECT_EQ(part.Header("if-match"), "*");
  EXPECT_EQ(part.Header("Content-ID"), "8");
  EXPECT_EQ(part.body, "");
  EXPECT_FALSE(part.has_body);
}

TEST(BatchReaderTest, ABodyEndsWithItsJsonWhateverStandsInIt) {
  const std::string json = "{\"a\":\"--c\\n--c--\",\"b\":{\"}\":\"\\\"}\"}}";
  EXPECT_THAT(BodiesOf(kStart + Part(json) + "--c\n" + "\n" + kEnd), ElementsAre(json));
  EXPECT_THAT(BodiesOf(kStart + Part(json) + "\n" + kEnd), ElementsAre(json));
  EXPECT_THAT(BodiesOf(kStart + Part(json) + Part(json) + kEnd), ElementsAre(json, json));
}

TEST(BatchReaderTest, ABodyThatIsNoJsonGoesToTheNextDelimiter) {
  EXPECT_THAT(BodiesOf(kStart + Part("hello {\n--cc\nx\n") + kEnd), ElementsAre("hello {\n--cc\nx"));
  EXPECT_THAT(BodiesOf(kStart + Part("{\"a\":1} x\n") + kEnd), ElementsAre("{\"a\":1} x"));
  EXPECT_THAT(BodiesOf(kStart + Part("{\"a\":\"b\n") + Part("{}\n") + kEnd), ElementsAre("{\"a\":\"b", "{}"));
  EXPECT_THAT(BodiesOf(kStart + Part("{\"a\":\n") + Part("{}\n") + kEnd), ElementsAre("{\"a\":", "{}"));
}

TEST(BatchReaderTest, AHeaderBlockMayEndAtADelimiter) {
  const std::string part = "--c\nContent-Type: application/http\n\nDELETE /t HTTP/1.1\nIf-Match: *\n";
  EXPECT_THAT(BodiesOf(kStart + part + part + kEnd), ElementsAre("", ""));
}

TEST(BatchReaderTest, TheOuterEndMayBeMissingInEveryWay) {
  const std::string text = kStart + Part("{}\n") + "--c--";
  for (std::string_view end :
       {"", "\n", "\n--b", "\n--b\n", "\n--b--", "\n--b--\n", "\r\n\r\n--b--\r\nepilogue"}) {
    EXPECT_THAT(BodiesOf(text + std::string(end)), ElementsAre("{}")) << end;
  }
}

TEST(BatchReaderTest, AChangesetMayEndAtTheOuterDelimiterButNotBreakOff) {
  EXPECT_THAT(BodiesOf(kStart + Part("{}\n") + "--b--\n"), ElementsAre("{}"));
  EXPECT_THAT(BodiesOf(kStart + Part("{}\n") + "--c\n--b--\n"), ElementsAre("{}"));
  EXPECT_THAT(BodiesOf(kStart + Part("{}\n")), ElementsAre("refused"));
  EXPECT_THAT(BodiesOf(kStart + Part("{\"a\":")), ElementsAre("refused"));
}

TEST(BatchReaderTest, PreamblesAreSkipped) {
  EXPECT_THAT(BodiesOf("pre\n--bb\n" + kStart + "inner pre\n" + Part("{}\n") + kEnd), ElementsAre("{}"));
}

TEST(BatchReaderTest, OneBoundaryMayBeginWithTheOther) {
  const std::string text =
      "--b\nContent-Type: multipart/mixed; boundary=b1\n\n--b1\nA: b\n\nPOST /t HTTP/1.1\n\n{}\n"
      "--b1--\n--b--\n";
  EXPECT_THAT(BodiesOf(text), ElementsAre("{}"));
}

TEST(BatchReaderTest, BoundariesMayBeQuoted) {
  EXPECT_EQ(BoundaryOf("multipart/mixed; boundary=\"a b\""), "a b");
  EXPECT_EQ(BoundaryOf("Multipart/Mixed;charset=x; BOUNDARY=b_1 "), "b_1");
  EXPECT_EQ(BoundaryOf("multipart/mixed"), std::nullopt);
  EXPECT_EQ(BoundaryOf("multipart/mixed; boundary="), std::nullopt);
  EXPECT_EQ(BoundaryOf("multipart/form-data; boundary=b"), std::nullopt);
  EXPECT_EQ(BoundaryOf("multipart/mixed; boundary=" + std::string(71, 'x')), std::nullopt);
}

TEST(BatchReaderTest, AQueryStandsAlone) {
  Batch batch;
  const std::string get = "--b\nContent-Type: application/http\n\nGET /t() HTTP/1.1\nAccept: */*\n\n";
  const std::string alone = get + "--b--";
  ASSERT_FALSE(ReadBatch(kType, alone, &batch).has_value());
  EXPECT_TRUE(batch.query);
  EXPECT_EQ(batch.RequestOf(0).target, "/t()");
  EXPECT_THAT(BodiesOf(get + get + "--b--"), ElementsAre("refused"));
  EXPECT_THAT(BodiesOf(get + kStart + Part("{}\n") + kEnd), ElementsAre("refused"));
  EXPECT_THAT(BodiesOf(kStart + Part("{}\n") + "--c--\n" + get + "--b--"), ElementsAre("refused"));
}

TEST(BatchReaderTest, WhatIsNoBatchIsRefused) {
  const std::string good = kStart + Part("{}\n") + kEnd;
  EXPECT_THAT(BodiesOf(good), ElementsAre("{}"));
  EXPECT_THAT(BodiesOf(good, "application/json"), ElementsAre("refused"));
  for (std::string_view text :
       {"", "--b", "--b--", "--b\n", "--other\n\n--other--", "--b\n\n--b--", "--b\nnonsense\n\n--b--",
        "--b\nContent-Type: multipart/mixed; boundary=b\n\n--b\nA: b\n\nPOST /t HTTP/1.1\n\n{}\n--b--",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n--b--",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nA: b\n\nnonsense\n--c--\n--b--",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nA: b\n\nPOST /t HTTP/1.1\nbad "
        "header\n\n--c--\n--b--",
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nPOST /t HTTP/1.1\na: "
        "\x01\n\n--c--\n--b--"}) {
    EXPECT_THAT(BodiesOf(text), ElementsAre("refused")) << text;
  }
}

TEST(BatchReaderTest, PartsAndHeadersAreBounded) {
  std::string text = kStart;
  for (int i = 0; i < 100; ++i) text += Part("{}\n");
  Batch hundred;
  ASSERT_FALSE(ReadBatch(kType, text + kEnd, &hundred).has_value());
  EXPECT_EQ(hundred.parts.size(), 100u);
  EXPECT_FALSE(hundred.too_many_parts);
  Batch more;
  ASSERT_FALSE(ReadBatch(kType, text + Part("{}\n") + kEnd, &more).has_value());
  EXPECT_EQ(more.parts.size(), 100u);
  EXPECT_TRUE(more.too_many_parts);

  std::string headers;
  for (size_t i = 0; i < kBatchPartHeadersMax; ++i) headers += "a: b\n";
  EXPECT_THAT(BodiesOf(kStart + Part("{}\n", headers) + kEnd), ElementsAre("{}"));
  EXPECT_THAT(BodiesOf(kStart + Part("{}\n", headers + "a: b\n") + kEnd), ElementsAre("refused"));
}

// What a head of a part may look like; some are the begin of another one.
const std::vector<std::string> kHeads = {
    "POST /t HTTP/1.1\nPrefer: x\n\n",
    "POST /t HTTP/1.1\nPrefer: x\r\n\r\n",
    "POST /t HTTP/1.1\nPrefer: x\nA: b\n\n",
    "POST /t HTTP/1.1\n\n",
    "PUT /t(PartitionKey='a',RowKey='b') HTTP/1.1\r\nIf-Match: *\r\n\r\n",
    "PUT /t(PartitionKey='a',RowKey='c') HTTP/1.1\r\nIf-Match: *\r\n\r\n",
};
const std::vector<std::string> kMimes = {"Content-Type: application/http\n\n", "A: b\r\n\r\n"};

TEST(BatchReaderTest, APartThatRepeatsTheHeadOfTheOneBeforeIsReadAsItIsAlone) {
  const uint64_t seed = 20261120;
  std::mt19937_64 random(seed);
  int repeated = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string parts;
    std::vector<std::string> alone;
    std::vector<size_t> heads;
    const size_t count = 1 + random() % 5;
    for (size_t i = 0; i < count; ++i) {
      heads.push_back(random() % 2 == 0 && i > 0 ? heads.back() : random() % kHeads.size());
      const std::string body = random() % 4 == 0 ? "" : "{\"n\":" + std::to_string(i) + "}";
      alone.push_back("--c\n" + kMimes[random() % kMimes.size()] + kHeads[heads.back()] + body + "\n");
      parts += alone.back();
    }
    Batch batch;
    const std::string text = kStart + parts + kEnd;
    ASSERT_FALSE(ReadBatch(kType, text, &batch).has_value()) << text;
    ASSERT_EQ(batch.parts.size(), count);
    for (size_t i = 0; i < count; ++i) {
      Batch one;
      const std::string one_text = kStart + alone[i] + kEnd;
      ASSERT_FALSE(ReadBatch(kType, one_text, &one).has_value());
      const HttpRequest& part = batch.RequestOf(i);
      const HttpRequest& expected = one.RequestOf(0);
      EXPECT_EQ(batch.IsFirstOfHead(i), i == 0 || heads[i] != heads[i - 1]) << text;
      repeated += batch.IsFirstOfHead(i) ? 0 : 1;
      EXPECT_EQ(part.method, expected.method);
      EXPECT_EQ(part.target, expected.target);
      EXPECT_EQ(part.body, expected.body);
      EXPECT_EQ(part.has_body, expected.has_body);
      ASSERT_EQ(part.headers.size(), expected.headers.size());
      for (size_t h = 0; h < part.headers.size(); ++h) {
        EXPECT_EQ(part.headers[h].name, expected.headers[h].name);
        EXPECT_EQ(part.headers[h].value, expected.headers[h].value);
      }
    }
  }
  EXPECT_GT(repeated, 500);
}

TEST(BatchReaderTest, AHeadThatEndsAtADelimiterRepeatsNothing) {
  Batch batch;
  const std::string open = "--c\nContent-Type: application/http\n\nDELETE /t HTTP/1.1\nIf-Match: *\n";
  const std::string text = kStart + open + open + Part("{}\n") + Part("{}\n") + kEnd;
  ASSERT_FALSE(ReadBatch(kType, text, &batch).has_value());
  std::vector<size_t> heads;
  for (const Batch::Part& part : batch.parts) heads.push_back(part.head);
  EXPECT_THAT(heads, ElementsAre(0, 1, 2, 2));
  EXPECT_EQ(batch.heads.size(), 3u);
}

TEST(BatchReaderTest, AStringMayBreakOffOrEndAnywhere) {
  for (size_t before = 0; before < 70; ++before) {
    const std::string plain(before, 'x');
    for (const std::string tail : {"", "\\\"y", "\\\\", "\xC3\xA9", "}--c"}) {
      const std::string json = "{\"a\":\"" + plain + tail + "\"}";
      EXPECT_THAT(BodiesOf(kStart + Part(json + "\n") + kEnd), ElementsAre(json)) << before;
    }
    for (const char control : {'\n', '\x01', '\x1F', '\t'}) {
      const std::string broken = "{\"a\":\"" + plain + control + "z";
      EXPECT_THAT(BodiesOf(kStart + Part(broken + "\n") + Part("{}\n") + kEnd), ElementsAre(broken, "{}"));
    }
  }
}

TEST(BatchReaderTest, AControlCharacterRefusesAHeaderWhereverItStands) {
  for (size_t before = 0; before < 70; ++before) {
    const std::string value(before, 'x');
    for (const char control : {'\x01', '\x1F', '\x7F'}) {
      EXPECT_THAT(BodiesOf(kStart + Part("{}\n", "A: b" + value + control + "z\n") + kEnd),
                  ElementsAre("refused"));
    }
    EXPECT_THAT(BodiesOf(kStart + Part("{}\n", "A: b" + value + "\t\x80z\n") + kEnd), ElementsAre("{}"));
  }
}

TEST(BatchReaderTest, NoTextTakesMoreThanLinearTime) {
  constexpr size_t kSize = (4 << 20) / kSlowdown;
  SystemClock clock;
  const uint64_t begin = clock.ThreadCpuNanos();
  for (std::string_view piece : {"\n", "--b\n", "--b", "--c\n", "{", "{\n", "\"", "--b \t", "a: b\n",
                                 "--c\nA: b\n\nPOST / HTTP/1.1\n\n{\n"}) {
    std::string text = kStart + "--c\nA: b\n\nPOST / HTTP/1.1\n\n";
    while (text.size() < kSize) text += piece;
    BodiesOf(text);
    BodiesOf(text.substr(kStart.size()));
  }
  // Some 80 MiB, or 8; quadratic time would be hours, or minutes.
  EXPECT_LT(clock.ThreadCpuNanos() - begin, 60 * kNanosPerSecond);
}

TEST(BatchWriterTest, TheBytesAreThoseOfTheService) {
  std::string body;
  BatchWriter writer(&body, "5b4a", "77ce");
  EXPECT_EQ(writer.content_type(), "multipart/mixed; boundary=batchresponse_5b4a");
  writer.BeginChangeset();
  writer.AddPart(204, "A: b\r\n", "");
  writer.AddPart(409, "C: d\r\n", "{}");
  writer.End();
  EXPECT_EQ(body,
            "--batchresponse_5b4a\r\n"
            "Content-Type: multipart/mixed; boundary=changesetresponse_77ce\r\n\r\n"
            "--changesetresponse_77ce\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: "
            "binary\r\n\r\n"
            "HTTP/1.1 204 No Content\r\nA: b\r\n\r\n\r\n"
            "--changesetresponse_77ce\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: "
            "binary\r\n\r\n"
            "HTTP/1.1 409 Conflict\r\nC: d\r\n\r\n{}\r\n"
            "--changesetresponse_77ce--\r\n--batchresponse_5b4a--\r\n");
}

TEST(BatchWriterTest, AQueryHasNoChangeset) {
  std::string body;
  BatchWriter writer(&body, "1", "");
  writer.AddPart(200, "", "{}");
  writer.End();
  EXPECT_EQ(body,
            "--batchresponse_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
            "HTTP/1.1 200 OK\r\n\r\n{}\r\n--batchresponse_1--\r\n");
}

TEST(BatchWriterTest, EveryStatusOfTheServiceHasAReason) {
  for (int status : {200, 201, 202, 204, 400, 401, 403, 404, 405, 409, 411, 412, 413, 415, 500, 501, 503}) {
    EXPECT_NE(StatusReason(status), "") << status;
  }
}

}  // namespace
}  // namespace partita::http
