#include "api/http/media_type.h"

#include <gtest/gtest.h>

#include "test/api/vector_file.h"

namespace partita::http {
namespace {

// The Content-Type of the answer, or the code of the refusal.
std::string Chosen(std::optional<std::string_view> format, std::optional<std::string_view> accept) {
  MetadataLevel level = MetadataLevel::kNone;
  if (const std::optional<ServiceError> error = ChooseMetadataLevel(format, accept, &level)) {
    EXPECT_EQ(error->status, 415);
    EXPECT_TRUE(error->as_xml);
    return std::string(ErrorCodeName(error->code));
  }
  return std::string(JsonContentType(level));
}

std::string Json(std::string_view level) {
  return "application/json;odata=" + std::string(level) + ";streaming=true;charset=utf-8";
}

TEST(MediaTypeVectorTest, EveryAcceptGetsItsContentType) {
  int cases = 0;
  const JsonValue vectors = LoadVectors("json-values.json");
  for (const JsonValue& vector : vectors["accept"].items) {
    SCOPED_TRACE(vector["accept"].text);
    ++cases;
    std::optional<std::string_view> accept;
    if (vector["accept"].kind == JsonValue::Kind::kString) accept = vector["accept"].text;
    const std::string expected = vector["content_type"].text;
    EXPECT_EQ(Chosen(std::nullopt, accept),
              expected == "(415 AtomFormatNotSupported)" ? "AtomFormatNotSupported" : expected);
  }
  EXPECT_EQ(cases, 7);
}

TEST(MediaTypeTest, TheFirstJsonTypeOfTheListCounts) {
  EXPECT_EQ(Chosen({}, "application/atom+xml,application/json;odata=nometadata;q=0.5, */*"),
            Json("nometadata"));
  EXPECT_EQ(Chosen({}, "application/json;odata=fullmetadata,application/json;odata=nometadata"),
            Json("fullmetadata"));
  EXPECT_EQ(Chosen({}, "text/html, */*;q=0.1"), Json("minimalmetadata"));
  EXPECT_EQ(Chosen({}, "application/*"), Json("minimalmetadata"));
}

TEST(MediaTypeTest, CaseSpacesQuotesAndOtherParametersDoNotMatter) {
  EXPECT_EQ(Chosen({}, " Application/JSON ; streaming=true ; ODATA = \"NoMetadata\" ; charset=utf-8"),
            Json("nometadata"));
  EXPECT_EQ(Chosen({}, "application/json;odata=\"nometadata\""), Json("nometadata"));
  EXPECT_EQ(Chosen({}, ""), Json("minimalmetadata"));
}

TEST(MediaTypeTest, TheFormatParameterOverridesAccept) {
  EXPECT_EQ(Chosen("application/json;odata=fullmetadata", "application/atom+xml"), Json("fullmetadata"));
  EXPECT_EQ(Chosen("json", "text/html"), Json("minimalmetadata"));
  EXPECT_EQ(Chosen("atom", "application/json"), "AtomFormatNotSupported");
  EXPECT_EQ(Chosen("", "application/json;odata=nometadata"), Json("nometadata"));
}

TEST(MediaTypeTest, WhatIsNotJsonIsRefused) {
  EXPECT_EQ(Chosen({}, "text/html"), "AtomFormatNotSupported");
  EXPECT_EQ(Chosen({}, "application/xml"), "AtomFormatNotSupported");
  EXPECT_EQ(Chosen({}, "application/json;odata=verbose"), "JsonFormatNotSupported");
  EXPECT_EQ(Chosen({}, "application/json;odata=verbose,application/json"), Json("minimalmetadata"));
}

TEST(MediaTypeTest, BodiesAreJsonOrUntyped) {
  for (const std::string_view type : {"application/json", "Application/Json; odata=nometadata", ""}) {
    EXPECT_FALSE(CheckJsonContentType(type).has_value()) << type;
  }
  EXPECT_FALSE(CheckJsonContentType(std::nullopt).has_value());
  for (const std::string_view type : {"application/atom+xml", "text/plain", "application/jsonx"}) {
    EXPECT_EQ(CheckJsonContentType(type)->code, ErrorCode::kAtomFormatNotSupported) << type;
  }
}

TEST(MediaTypeTest, ParametersAreFoundByName) {
  EXPECT_EQ(MediaTypeParameter("multipart/mixed; boundary=batch_1", "boundary"), "batch_1");
  EXPECT_EQ(MediaTypeParameter("multipart/mixed;x=\"a;boundary=b\"; Boundary=\"c d\"", "boundary"), "c d");
  EXPECT_EQ(MediaTypeParameter("multipart/mixed", "boundary"), std::nullopt);
  EXPECT_EQ(MediaTypeName(" multipart/mixed ; boundary=b"), "multipart/mixed");
}

}  // namespace
}  // namespace partita::http
