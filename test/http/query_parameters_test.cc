#include "api/http/query_parameters.h"

#include <gtest/gtest.h>

namespace partita::http {
namespace {

QueryParameters Parsed(std::string_view query) {
  QueryParameters parameters;
  EXPECT_FALSE(parameters.Parse(query).has_value()) << query;
  return parameters;
}

std::string_view QueryRefusal(std::string_view query) {
  QueryParameters parameters;
  const std::optional<ServiceError> error = parameters.Parse(query);
  if (!error) return "";
  EXPECT_EQ(error->status, 400);
  EXPECT_TRUE(error->early);
  return ErrorCodeName(error->code);
}

TEST(QueryParametersTest, NamesAndValuesAreDecodedOnce) {
  const QueryParameters parameters =
      Parsed("%24filter=PartitionKey%20eq+'p%27%27q'&$select=a%2Cb&NextPartitionKey=1%218%21%252B&x=%2B");
  EXPECT_EQ(parameters.Get("$filter"), "PartitionKey eq 'p''q'");
  EXPECT_EQ(parameters.Get("$select"), "a,b");
  EXPECT_EQ(parameters.Get("NextPartitionKey"), "1!8!%2B");
  EXPECT_EQ(parameters.Get("x"), "+");
  EXPECT_EQ(parameters.size(), 4u);
  EXPECT_EQ(parameters.name(0), "$filter");
  EXPECT_EQ(parameters.value(3), "+");
}

TEST(QueryParametersTest, AbsentEmptyAndBareNamesDiffer) {
  const QueryParameters parameters = Parsed("&a=&b&&c=1=2&");
  EXPECT_EQ(parameters.Find("a"), "");
  EXPECT_EQ(parameters.Find("b"), "");
  EXPECT_EQ(parameters.Find("c"), "1=2");
  EXPECT_EQ(parameters.Find("d"), std::nullopt);
  EXPECT_EQ(parameters.size(), 3u);
  EXPECT_EQ(Parsed("").size(), 0u);
}

TEST(QueryParametersTest, NamesAreComparedExactly) {
  const QueryParameters parameters = Parsed("$Top=5&COMP=acl");
  EXPECT_FALSE(parameters.Has("$top"));
  EXPECT_FALSE(parameters.Has("comp"));
  EXPECT_EQ(parameters.raw_comp(), std::nullopt);
}

TEST(QueryParametersTest, CompIsKeptAsSentForTheSignature) {
  const QueryParameters parameters = Parsed("restype=service&comp=%61cl");
  EXPECT_EQ(parameters.Get("comp"), "acl");
  EXPECT_EQ(parameters.raw_comp(), "%61cl");
}

TEST(QueryParametersTest, NoTwoMeaningsOfAKnownName) {
  EXPECT_EQ(QueryRefusal("sig=a&sig=b"), "InvalidQueryParameterValue");
  EXPECT_EQ(QueryRefusal("$top=1&%24top=2"), "InvalidQueryParameterValue");
  EXPECT_EQ(Parsed("sig=a&sig=a").size(), 1u);
  EXPECT_EQ(Parsed("what=a&what=b").Get("what"), "a");
}

TEST(QueryParametersTest, ValuesSurviveAMove) {
  QueryParameters parameters = Parsed("a=b");
  const QueryParameters moved = std::move(parameters);
  EXPECT_EQ(moved.Get("a"), "b");
}

TEST(QueryParametersTest, BadTextAndTooMuchAreRefused) {
  EXPECT_EQ(QueryRefusal("a=%"), "InvalidUri");
  EXPECT_EQ(QueryRefusal("a%4g=1"), "InvalidUri");
  EXPECT_EQ(QueryRefusal("a=%FF"), "InvalidInput");
  EXPECT_EQ(QueryRefusal("a=%ED%A0%80"), "InvalidInput");
  EXPECT_EQ(QueryRefusal("a=" + std::string(kQueryBytesMax - 2, 'x')), "");
  EXPECT_EQ(QueryRefusal("a=" + std::string(kQueryBytesMax - 1, 'x')), "InvalidUri");
  std::string many;
  for (size_t i = 0; i < kQueryParametersMax; ++i) many += "n" + std::to_string(i) + "=1&";
  EXPECT_EQ(QueryRefusal(many), "");
  EXPECT_EQ(QueryRefusal(many + "last=1"), "InvalidUri");
}

TEST(QueryParametersTest, TheTimeoutIsANumberAndCapped) {
  uint32_t seconds = 0;
  for (const auto& [query, expected] :
       std::initializer_list<std::pair<std::string_view, uint32_t>>{{"", 30},
                                                                    {"timeout=", 30},
                                                                    {"timeout=0", 30},
                                                                    {"timeout=7", 7},
                                                                    {"timeout=31", 30},
                                                                    {"timeout=99999999999999999999", 30}}) {
    EXPECT_FALSE(Parsed(query).Timeout(&seconds).has_value()) << query;
    EXPECT_EQ(seconds, expected) << query;
  }
  for (const std::string_view query : {"timeout=x", "timeout=-1", "timeout=1.5", "timeout=5s"}) {
    EXPECT_EQ(Parsed(query).Timeout(&seconds)->code, ErrorCode::kInvalidQueryParameterValue) << query;
  }
}

TEST(QueryParametersTest, OptionsThatTablesLackAreNotImplemented) {
  for (const std::string_view name : {"$orderby", "$skip", "$inlinecount", "%24expand"}) {
    EXPECT_EQ(Parsed(std::string(name) + "=x").CheckSupported()->status, 501) << name;
  }
  EXPECT_FALSE(Parsed("$filter=x&If-Match=&unknown=1").CheckSupported().has_value());
}

}  // namespace
}  // namespace partita::http
