#include "bench/lab/server_text.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "bench/lab/json_text.h"
#include "engine/base/text.h"

namespace partita::lab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ServerTextTest, WhatIsInnocentStays) {
  EXPECT_EQ(ServerText("{\"code\": \"TableBeingDeleted\", \"message\": \"Später\"}", ""),
            "{\"code\": \"TableBeingDeleted\", \"message\": \"Später\"}");
  EXPECT_EQ(ServerText("a signature; design=new", ""), "a signature; design=new");
}

TEST(ServerTextTest, NoFormOfTheSignatureIsShown) {
  const std::string sas = "sv=2019-02-02&sig=aB%2Bc%2Fd%3D&se=2030";
  for (const std::string& said :
       {"no: http://x/T?" + sas, std::string("no: /T?sv=1&amp;sig=aB+c/d=&se=1"),
        std::string("signed aB+c/d= was expected"), std::string("aB%2Bc%2Fd%3D is wrong"),
        std::string("{\"u\":\"T?sv=1\\u0026sig\\u003daB+c/d\\u003d\"}"),
        std::string("to=T%3Fsv%3D1%26sig%3DaB%252Bc%26se"), std::string("SIG=aB+c is old")}) {
    EXPECT_THAT(ServerText(said, sas), AllOf(Not(HasSubstr("aB")), HasSubstr("(hidden)"))) << said;
  }
  EXPECT_EQ(ServerText("/T?sig=other&se=1", ""), "/T?sig=(hidden)&se=1") << "anyone's";
}

TEST(ServerTextTest, IsShortSoundAndWithoutControls) {
  EXPECT_EQ(ServerText("a\x1b[31m\r\nb\x7f\xc2\x9b", ""), "a [31m  b  ");
  EXPECT_EQ(ServerText("a\xff\xc3", ""), "a\xEF\xBF\xBD\xEF\xBF\xBD");
  std::string longer(299, 'x');
  longer += "äöü";
  EXPECT_EQ(ServerText(longer, ""), std::string(299, 'x')) << "cut between characters";
  std::string hides(295, 'x');
  hides += "&sig=secret";
  EXPECT_THAT(ServerText(hides, ""), Not(HasSubstr("secret")));
}

TEST(JsonTextTest, WhateverBytesItIsGivenItIsSound) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every.push_back(static_cast<char>(byte));
  for (const std::string& text : {every, std::string("\xf0\x9f"), std::string("ä\xed\xa0\x80ö")}) {
    JsonText json;
    json.BeginObject().Member("first_error", text).EndObject();
    EXPECT_TRUE(IsValidUtf8(json.text()));
    simdjson::dom::parser parser;
    EXPECT_EQ(parser.parse(json.text()).error(), simdjson::SUCCESS);
  }
  JsonText json;
  json.BeginArray().Value("a\xff\xe2\x82\xac\"").EndArray();
  EXPECT_THAT(json.text(), HasSubstr("\"a\xEF\xBF\xBD\xe2\x82\xac\\\"\""));
}

}  // namespace
}  // namespace partita::lab
