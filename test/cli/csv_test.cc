#include "api/cli/csv.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <random>

#include "api/names.h"
#include "test/cli/random_entity.h"

namespace partita {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<CsvReader> OpenCsv(std::string_view text, size_t step = SIZE_MAX,
                                   size_t max = kRecordBytesMax) {
  Result<std::unique_ptr<CsvReader>> reader =
      CsvReader::Open(std::make_unique<MemorySource>(text, step), max);
  EXPECT_TRUE(reader.ok()) << reader.status().ToString();
  return reader.ok() ? std::move(reader).value() : nullptr;
}

std::string HeaderError(std::string_view text) {
  return CsvReader::Open(std::make_unique<MemorySource>(text)).status().message();
}

TEST(CsvTest, TypesComeFromTheirColumnsAndNothingIsGuessed) {
  const auto reader = OpenCsv(
      "Age@type,PartitionKey,Name,RowKey,Age,Timestamp,odata.etag\n"
      "Edm.Int32,p,\"Doe, \"\"J.\"\"\",r1,42,ignored,x\r\n"
      ",p,,r2,42,,\n"
      "Edm.String,,\"\",r3,,,\n");
  const Entity first = reader->Next()->value();
  EXPECT_EQ(first, Entity("p", "r1").Set("Age", 42).Set("Name", "Doe, \"J.\""));
  EXPECT_EQ(reader->Next()->value(), Entity("p", "r2").Set("Age", "42"));
  EXPECT_EQ(reader->Next()->value(), Entity("", "r3").Set("Age", "").Set("Name", ""));
  EXPECT_FALSE(reader->Next().has_value());
}

TEST(CsvTest, AQuotedFieldHoldsLineEnds) {
  const auto reader = OpenCsv("PartitionKey,RowKey,T\np,r,\"one\r\ntwo\n\nthree\"\np,s,x", 1);
  EXPECT_EQ(*reader->Next()->value().GetString("T"), "one\r\ntwo\n\nthree");
  EXPECT_EQ(reader->line_number(), 2u);
  EXPECT_EQ(*reader->Next()->value().GetString("T"), "x");
  EXPECT_EQ(reader->line_number(), 6u);
  EXPECT_FALSE(reader->Next().has_value());
}

TEST(CsvTest, HeadersThatBreakARuleAreRefused) {
  EXPECT_EQ(HeaderError(""), "header: the input is empty");
  EXPECT_EQ(HeaderError("PartitionKey,a\n"), "header: column RowKey is missing");
  EXPECT_EQ(HeaderError("RowKey,a\n"), "header: column PartitionKey is missing");
  EXPECT_EQ(HeaderError("PartitionKey,RowKey,a,a\n"), "header: column \"a\" stands twice");
  EXPECT_EQ(HeaderError("PartitionKey,RowKey,a@type\n"), "header: column \"a@type\" stands without \"a\"");
  EXPECT_THAT(HeaderError("PartitionKey,RowKey,a-b\n"), HasSubstr("header: property name \"a-b\" holds '-'"));
  EXPECT_THAT(HeaderError("PartitionKey,\"RowKey\n"),
              HasSubstr("header: line 1: a quote is opened and never closed"));
}

TEST(CsvTest, EachBadRecordIsToldAndTheStreamGoesOn) {
  const auto reader = OpenCsv(
      "PartitionKey,RowKey,n,n@type\n"
      "p,r,1\n"
      "p,r,x,Edm.Int32\n"
      "p,r,1,Edm.Number\n"
      "p,a\"b,1,Edm.Int32\n"
      "p,\"a\"b,1,Edm.Int32\n"
      "p,a/b,1,Edm.Int32\n"
      "p,r,7,Edm.Int32\n");
  const char* messages[] = {
      "line 2: the record has 3 fields, the header 4",
      "line 3: property \"n\": \"x\" is no Edm.Int32",
      "line 4: property \"n\": unknown type \"Edm.Number\"",
      "line 5: column 4: a quote within a field that does not begin with one",
      "line 6: column 6: text after a field's closing quote",
      "line 7: RowKey \"a/b\" holds '/' (U+002F) at byte 1; forbidden are / \\ # ? and control characters"};
  for (const char* message : messages) {
    const Result<Entity> record = *reader->Next();
    ASSERT_FALSE(record.ok());
    EXPECT_EQ(record.status().message(), message);
    EXPECT_NE(ViolationOf(record.status()), Violation::kNone);
  }
  EXPECT_EQ(*reader->Next()->value().GetInt32("n"), 7);
  EXPECT_FALSE(reader->Next().has_value());
}

// covers: F77
TEST(CsvTest, NothingWithinQuotesIsEverARecord) {
  const std::string decoys = "p,decoy,1\np,decoy,2\n";
  // Too large: over lines, and within one line, with the limit at every place.
  for (size_t max = 30; max < 60; ++max) {
    std::string input = "PartitionKey,RowKey,n\np,r0,0\np,big,\"" + std::string(70, 'x') + "\n" + decoys;
    input += std::string(70, 'y') + "\"\np,after,9\n";
    const auto reader = OpenCsv(input, 11, max);
    EXPECT_EQ(reader->Next()->value().row_key(), "r0");
    EXPECT_THAT(reader->Next()->status().message(), HasSubstr("line 3: the record has 170 bytes"));
    EXPECT_EQ(reader->Next()->value().row_key(), "after");
    EXPECT_EQ(reader->line_number(), 7u);
    EXPECT_FALSE(reader->Next().has_value());
  }
  const auto reader = OpenCsv("PartitionKey,RowKey,n\np,r0,\"open\n" + decoys);
  EXPECT_THAT(reader->Next()->status().message(), HasSubstr("line 2: a quote is opened and never closed"));
  EXPECT_FALSE(reader->Next().has_value());
}

// covers: F77
TEST(CsvTest, FieldsTakeNoMoreMemoryThanARecord) {
  // Before and behind the quotes; as lines of a record, as one that is too large, and as a header.
  const std::string separators(kRecordBytesMax / 2 - 100, ',');
  const std::string record = separators + "\"\np,decoy,1\n\"" + separators + "\n";
  const std::string input = "PartitionKey,RowKey,n\n" + record + separators + record + "p,after,9\n";
  CsvRecords records(std::make_unique<MemorySource>(input));
  ASSERT_TRUE(records.Next()->ok());
  EXPECT_THAT(records.Next()->message(), HasSubstr("line 2: the record has more than "));
  EXPECT_LE(records.fields().capacity() * sizeof(CsvRecordParser::Field), 2 * kRecordBytesMax);
  EXPECT_THAT(records.Next()->message(), HasSubstr("line 5: the record has 12582"));
  EXPECT_LE(records.fields().capacity() * sizeof(CsvRecordParser::Field), 2 * kRecordBytesMax);
  ASSERT_TRUE(records.Next()->ok());
  EXPECT_EQ(records.fields().size(), 3u);
  EXPECT_FALSE(records.Next().has_value());
  EXPECT_THAT(HeaderError("PartitionKey,RowKey" + separators + "\np,r\n"),
              HasSubstr("header: line 1: the record has more than "));
}

TEST(CsvTest, ALongLineWithAStrayQuoteCostsOneRecord) {
  const std::string input = "PartitionKey,RowKey,n\np,r,a\"" + std::string(500, ',') + "\np,s,1\n";
  const auto reader = OpenCsv(input, 9, 100);
  EXPECT_THAT(reader->Next()->status().message(), HasSubstr("line 2: column 6: a quote within a field"));
  EXPECT_EQ(reader->Next()->value().row_key(), "s");
  EXPECT_FALSE(reader->Next().has_value());
}

TEST(CsvTest, RandomEntitiesRoundTrip) {
  const uint64_t seed = 8;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<Entity> entities;
    CsvColumns columns;
    for (uint64_t i = 1 + random() % 20; i > 0; --i) {
      entities.push_back(RandomEntity(&random));
      columns.Observe(entities.back());
    }
    std::string text = columns.HeaderLine();
    for (const Entity& entity : entities) ASSERT_TRUE(AppendCsvRecord(&text, columns, entity).ok());

    const auto reader = OpenCsv(text, 1 + random() % 50);
    for (const Entity& entity : entities) {
      const std::optional<Result<Entity>> read = reader->Next();
      ASSERT_TRUE(read.has_value());
      ASSERT_TRUE(read->ok()) << read->status().ToString() << text;
      // A table's columns have one order for all, so compare without it.
      ASSERT_EQ(read->value().property_count(), entity.property_count());
      ASSERT_EQ(read->value().partition_key(), entity.partition_key());
      ASSERT_EQ(read->value().row_key(), entity.row_key());
      for (const Property& property : entity.properties()) {
        ASSERT_NE(read->value().Get(property.name), nullptr);
        ASSERT_EQ(*read->value().Get(property.name), property.value) << property.name;
      }
    }
    ASSERT_FALSE(reader->Next().has_value());
  }
}

TEST(CsvTest, AnEntityThatWasNotObservedIsRefusedWhole) {
  CsvColumns columns;
  columns.Observe(Entity("p", "r").Set("a", "text"));
  EXPECT_EQ(columns.HeaderLine(), "PartitionKey,RowKey,a\r\n");
  std::string out;
  EXPECT_EQ(AppendCsvRecord(&out, columns, Entity("p", "r").Set("b", "text")).code(), Code::kInvalidArgument);
  EXPECT_EQ(AppendCsvRecord(&out, columns, Entity("p", "r").Set("a", 5)).code(), Code::kInvalidArgument);
  EXPECT_EQ(out, "");
  EXPECT_TRUE(AppendCsvRecord(&out, columns, Entity("p", "r")).ok());
  EXPECT_EQ(out, "p,r,\r\n");
}

TEST(CsvTest, ReadingResumesAfterTheHeader) {
  std::string input = "PartitionKey,RowKey,n\n";
  for (int i = 0; i < 30; ++i) input += "p," + std::to_string(i) + ",\"a\nb\"\n";
  for (int stop = 1; stop < 30; ++stop) {
    const auto first = OpenCsv(input);
    for (int i = 0; i < stop; ++i) ASSERT_TRUE(first->Next()->ok());
    const auto second = OpenCsv(input, 5);
    ASSERT_TRUE(second->SkipTo(first->resume_offset(), first->resume_line()).ok());
    ASSERT_EQ(second->Next()->value().row_key(), std::to_string(stop));
    ASSERT_EQ(second->line_number(), 2u + 2u * static_cast<unsigned>(stop));
  }
}

}  // namespace
}  // namespace partita
