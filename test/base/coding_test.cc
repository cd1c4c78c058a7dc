#include "engine/base/coding.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace partita {
namespace {

std::string Bytes(std::initializer_list<int> bytes) {
  std::string text;
  for (int byte : bytes) text.push_back(static_cast<char>(byte));
  return text;
}

std::string Varint(uint64_t value) {
  std::string out;
  AppendVarint(&out, value);
  return out;
}

TEST(CodingTest, FixedIntegersHaveTheirByteOrderAtAnyAlignment) {
  char memory[16] = {};
  StoreLe16(memory + 1, 0x1234);
  EXPECT_EQ(std::string(memory + 1, 2), Bytes({0x34, 0x12}));
  EXPECT_EQ(LoadLe16(memory + 1), 0x1234);
  StoreLe32(memory + 1, 0x12345678);
  EXPECT_EQ(std::string(memory + 1, 4), Bytes({0x78, 0x56, 0x34, 0x12}));
  EXPECT_EQ(LoadLe32(memory + 1), 0x12345678u);
  StoreLe64(memory + 3, 0x0102030405060708);
  EXPECT_EQ(std::string(memory + 3, 8), Bytes({8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(LoadLe64(memory + 3), 0x0102030405060708u);
  StoreBe32(memory + 1, 0x12345678);
  EXPECT_EQ(std::string(memory + 1, 4), Bytes({0x12, 0x34, 0x56, 0x78}));
  EXPECT_EQ(LoadBe32(memory + 1), 0x12345678u);
  StoreBe64(memory + 3, 0x0102030405060708);
  EXPECT_EQ(std::string(memory + 3, 8), Bytes({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(LoadBe64(memory + 3), 0x0102030405060708u);
}

TEST(CodingTest, AppendedIntegersAreLittleEndian) {
  std::string out;
  AppendLe16(&out, 0x0102);
  AppendLe32(&out, 0x03040506);
  AppendLe64(&out, 0x0708090A0B0C0D0E);
  EXPECT_EQ(out, Bytes({2, 1, 6, 5, 4, 3, 0x0E, 0x0D, 0x0C, 0x0B, 0x0A, 9, 8, 7}));
}

TEST(CodingTest, VarintsHaveTheseBytes) {
  EXPECT_EQ(Varint(0), Bytes({0}));
  EXPECT_EQ(Varint(127), Bytes({0x7F}));
  EXPECT_EQ(Varint(128), Bytes({0x80, 0x01}));
  EXPECT_EQ(Varint(300), Bytes({0xAC, 0x02}));
  EXPECT_EQ(Varint(UINT64_MAX).size(), 10u);
  EXPECT_EQ(Varint(UINT64_MAX).back(), '\x01');
}

TEST(CodingTest, EveryWidthOfVarintIsReadBack) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    for (uint64_t near : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
      const uint64_t value = (uint64_t{1} << bits) + near;
      const std::string encoded = Varint(value);
      ByteReader reader(encoded);
      EXPECT_EQ(reader.ReadVarint(), value);
      EXPECT_TRUE(reader.AtCleanEnd());
    }
  }
}

TEST(ByteReaderTest, ReadsFieldsInTheOrderTheyWereAppended) {
  std::string out;
  out.push_back('\x07');
  AppendLe16(&out, 300);
  AppendLe32(&out, 70'000);
  AppendLe64(&out, uint64_t{1} << 40);
  AppendVarint(&out, 1'000'000);
  AppendBytes(&out, "hello");
  AppendBytes(&out, "");
  out.append("raw");
  ByteReader reader(out);
  EXPECT_EQ(reader.ReadU8(), 7);
  EXPECT_EQ(reader.ReadLe16(), 300);
  EXPECT_EQ(reader.ReadLe32(), 70'000u);
  EXPECT_EQ(reader.ReadLe64(), uint64_t{1} << 40);
  EXPECT_EQ(reader.ReadVarint(), 1'000'000u);
  EXPECT_EQ(reader.ReadBytes(), "hello");
  EXPECT_EQ(reader.ReadBytes(), "");
  EXPECT_EQ(reader.remaining(), 3u);
  EXPECT_FALSE(reader.AtCleanEnd());
  EXPECT_EQ(reader.ReadRaw(3), "raw");
  EXPECT_TRUE(reader.AtCleanEnd());
}

TEST(ByteReaderTest, AFailedReadSpoilsAllLaterOnes) {
  ByteReader reader("abc");
  EXPECT_EQ(reader.ReadLe32(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.ReadU8(), 0);
  EXPECT_EQ(reader.ReadRaw(1), "");
  EXPECT_EQ(reader.ReadBytes(), "");
  EXPECT_EQ(reader.ReadVarint(), 0u);
  EXPECT_FALSE(reader.AtCleanEnd());
}

TEST(ByteReaderTest, ALengthBeyondTheBytesIsRefusedWithoutTouchingThem) {
  for (uint64_t length : {uint64_t{4}, uint64_t{1} << 32, UINT64_MAX}) {
    std::string out;
    AppendVarint(&out, length);
    out.append("abc");
    ByteReader reader(out);
    EXPECT_EQ(reader.ReadBytes(), "");
    EXPECT_FALSE(reader.ok());
  }
}

TEST(ByteReaderTest, VarintsThatAreTruncatedOrTooLongAreRefused) {
  for (const std::string& bytes :
       {Bytes({}), Bytes({0x80}), Bytes({0xFF, 0xFF}), std::string(10, '\xFF'),
        std::string(9, '\xFF') + Bytes({0x02}), std::string(10, '\x80') + Bytes({0x01})}) {
    ByteReader reader(bytes);
    EXPECT_EQ(reader.ReadVarint(), 0u);
    EXPECT_FALSE(reader.ok()) << bytes.size();
  }
}

}  // namespace
}  // namespace partita
