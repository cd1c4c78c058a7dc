#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "engine/base/aligned_buffer.h"
#include "wal/frame_format.h"
#include "wal/segment_format.h"
#include "wal/tail_format.h"

namespace partita {
namespace {

const LogIdentity kOwner{StoreId{0x1122334455667788}, ShardId{5}};

std::string Hex(std::string_view bytes) {
  std::string out;
  char two[3];
  for (unsigned char c : bytes) {
    std::snprintf(two, sizeof two, "%02x", c);
    out += two;
  }
  return out;
}

SegmentHeader SampleHeader() {
  return {.flags = kSegmentContinues,
          .segment = SegmentId{7},
          .incarnation = Incarnation{3},
          .segment_size = 64 << 20,
          .first_position = LogPosition{100},
          .version_ceiling = Version{9000},
          .previous_segment = SegmentId{6},
          .previous_seal = 0xabcdef};
}

FrameHeader SampleFrame() {
  FrameHeader header;
  header.incarnation = Incarnation{3};
  header.segment = SegmentId{7};
  header.first_position = LogPosition{100};
  header.previous_seal = 0x42;
  header.durable_position = LogPosition{98};
  header.version_max = Version{8000};
  header.version_ceiling = Version{9000};
  return header;
}

// Two whole records, "hello" and "", in a frame at offset 8192.
AlignedBuffer SampleFrameBytes(uint64_t* seal) {
  AlignedBuffer page(kPageSize);
  std::memset(page.data(), 0xee, page.size());
  FrameHeader header = SampleFrame();
  header.piece_count = 2;
  header.payload_size = 2 * kPieceHeaderSize + 5;
  EncodePieceHeader(5, Version{7999}, page.data() + kFrameHeaderSize);
  std::memcpy(page.data() + kFrameHeaderSize + kPieceHeaderSize, "hello", 5);
  EncodePieceHeader(0, Version{8000}, page.data() + kFrameHeaderSize + kPieceHeaderSize + 5);
  *seal = SealFrame(kOwner, 8192, header, page.span());
  return page;
}

TEST(SegmentFormatTest, HeaderHasExactlyTheseBytes) {
  AlignedBuffer page(kSegmentHeaderSize);
  EncodeSegmentHeader(kOwner, SampleHeader(), page.span());
  EXPECT_EQ(Hex(page.view(0, 88)),
            "952831f346a9dbf150544c4f47534547"
            "01000100050000008877665544332211"
            "07000000000000000300000000000000"
            "00000004000000006400000000000000"
            "28230000000000000600000000000000"
            "efcdab0000000000");
  EXPECT_EQ(page.view(88, kSegmentHeaderSize - 88), std::string(kSegmentHeaderSize - 88, '\0'));
}

TEST(SegmentFormatTest, HeaderComesBackAsWritten) {
  AlignedBuffer page(kSegmentHeaderSize);
  const uint64_t seal = EncodeSegmentHeader(kOwner, SampleHeader(), page.span());
  auto decoded = DecodeSegmentHeader(page.view(0, kSegmentHeaderSize));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->seal, seal);
  EXPECT_EQ(decoded->owner.store, kOwner.store);
  EXPECT_EQ(decoded->owner.shard, kOwner.shard);
  EXPECT_EQ(decoded->header.segment, SegmentId{7});
  EXPECT_EQ(decoded->header.incarnation, Incarnation{3});
  EXPECT_EQ(decoded->header.segment_size, 64u << 20);
  EXPECT_EQ(decoded->header.first_position, LogPosition{100});
  EXPECT_EQ(decoded->header.version_ceiling, Version{9000});
  EXPECT_EQ(decoded->header.previous_segment, SegmentId{6});
  EXPECT_EQ(decoded->header.previous_seal, 0xabcdefu);
  EXPECT_TRUE(decoded->header.continues());
  EXPECT_FALSE(decoded->header.awaits_effect());
}

TEST(SegmentFormatTest, AnyFlippedByteOfTheHeaderIsFound) {
  AlignedBuffer page(kSegmentHeaderSize);
  EncodeSegmentHeader(kOwner, SampleHeader(), page.span());
  for (size_t i = 0; i < kSegmentHeaderSize; ++i) {
    page.data()[i] ^= 0x10;
    EXPECT_FALSE(DecodeSegmentHeader(page.view(0, kSegmentHeaderSize)).ok()) << "byte " << i;
    page.data()[i] ^= 0x10;
  }
}

// Who reads frames counts on room for one. covers: F77
TEST(SegmentFormatTest, ASegmentInUseIsLargerThanItsHeader) {
  AlignedBuffer page(kSegmentHeaderSize);
  for (const uint64_t size : {uint64_t{0}, kSegmentHeaderSize, 2 * kSegmentHeaderSize}) {
    SegmentHeader header = SampleHeader();
    header.segment_size = size;
    EncodeSegmentHeader(kOwner, header, page.span());
    const Code code = DecodeSegmentHeader(page.view(0, kSegmentHeaderSize)).code();
    EXPECT_EQ(code, size > kSegmentHeaderSize ? Code::kOk : Code::kCorruption) << size;
  }
}

TEST(SegmentFormatTest, ANewerFormatIsUnsupportedNotCorrupt) {
  AlignedBuffer page(kSegmentHeaderSize);
  EncodeSegmentHeader(kOwner, SampleHeader(), page.span());
  page.data()[16] = kLogFormat + 1;
  EXPECT_EQ(DecodeSegmentHeader(page.view(0, kSegmentHeaderSize)).code(), Code::kUnsupported);
}

TEST(FrameFormatTest, FrameHasExactlyTheseBytes) {
  uint64_t seal = 0;
  AlignedBuffer page = SampleFrameBytes(&seal);
  const size_t used = kFrameHeaderSize + 2 * kPieceHeaderSize + 5;
  EXPECT_EQ(Hex(page.view(0, used)),
            "05902a5a3d78eec850544c4600000000"
            "88776655443322110500000003000000"
            "07000000000000006400000000000000"
            "020000001d0000004200000000000000"
            "6200000000000000401f000000000000"
            "28230000000000000000000000000000"
            "00000000000000000000000000000000"
            "050000003f1f00000000000068656c6c"
            "6f00000000401f000000000000");
  EXPECT_EQ(page.view(used, kPageSize - used), std::string(kPageSize - used, '\0'));
}

TEST(FrameFormatTest, FrameComesBackAsWritten) {
  uint64_t seal = 0;
  AlignedBuffer page = SampleFrameBytes(&seal);
  ParsedFrame frame;
  ASSERT_EQ(ParseFrame(kOwner, 8192, page.view(0, kPageSize), &frame), FrameCheck::kValid);
  EXPECT_EQ(frame.seal, seal);
  EXPECT_EQ(frame.size, kPageSize);
  EXPECT_EQ(frame.header.durable_position, LogPosition{98});
  EXPECT_EQ(frame.header.next_position(), LogPosition{102});
  PieceReader pieces(frame.payload);
  FramePiece piece;
  ASSERT_TRUE(pieces.Next(&piece));
  EXPECT_EQ(piece.bytes, "hello");
  EXPECT_EQ(piece.version, Version{7999});
  ASSERT_TRUE(pieces.Next(&piece));
  EXPECT_EQ(piece.bytes, "");
  EXPECT_FALSE(pieces.Next(&piece));
  EXPECT_TRUE(pieces.ok());
}

TEST(FrameFormatTest, AFrameAtAnotherPlaceOrOfAnotherOwnerIsBad) {
  uint64_t seal = 0;
  AlignedBuffer page = SampleFrameBytes(&seal);
  ParsedFrame frame;
  EXPECT_EQ(ParseFrame(kOwner, 4096, page.view(0, kPageSize), &frame), FrameCheck::kBad);
  const LogIdentity other_store{StoreId{1}, kOwner.shard};
  EXPECT_EQ(ParseFrame(other_store, 8192, page.view(0, kPageSize), &frame), FrameCheck::kBad);
  const LogIdentity other_shard{kOwner.store, ShardId{6}};
  EXPECT_EQ(ParseFrame(other_shard, 8192, page.view(0, kPageSize), &frame), FrameCheck::kBad);
  page.data()[28]++;  // The incarnation it claims.
  EXPECT_EQ(ParseFrame(kOwner, 8192, page.view(0, kPageSize), &frame), FrameCheck::kBad);
}

TEST(FrameFormatTest, AnyFlippedByteThatCountsIsFound) {
  uint64_t seal = 0;
  AlignedBuffer page = SampleFrameBytes(&seal);
  ParsedFrame frame;
  for (size_t i = 0; i < kFrameHeaderSize + 2 * kPieceHeaderSize + 5; ++i) {
    page.data()[i] ^= 0x01;
    EXPECT_NE(ParseFrame(kOwner, 8192, page.view(0, kPageSize), &frame), FrameCheck::kValid) << "byte " << i;
    page.data()[i] ^= 0x01;
  }
}

TEST(FrameFormatTest, AHugePayloadSizeIsBadAndALargeOneAsksForMore) {
  uint64_t seal = 0;
  AlignedBuffer page = SampleFrameBytes(&seal);
  ParsedFrame frame;
  const uint32_t huge = 0xffff'fff0, large = 20'000;
  std::memcpy(page.data() + 52, &huge, 4);
  EXPECT_EQ(ParseFrame(kOwner, 8192, page.view(0, kPageSize), &frame), FrameCheck::kBad);
  std::memcpy(page.data() + 52, &large, 4);
  EXPECT_EQ(ParseFrame(kOwner, 8192, page.view(0, kPageSize), &frame), FrameCheck::kShort);
  EXPECT_EQ(frame.size, FrameSize(large));
}

TEST(FrameFormatTest, PiecesThatPassTheEndAreRefused) {
  PieceReader short_header("12345678901");
  FramePiece piece;
  EXPECT_FALSE(short_header.Next(&piece));
  EXPECT_FALSE(short_header.ok());
  std::string too_long(kPieceHeaderSize + 3, '\0');
  too_long[0] = 4;
  PieceReader reader(too_long);
  EXPECT_FALSE(reader.Next(&piece));
  EXPECT_FALSE(reader.ok());
}

TEST(TailFormatTest, RecordHasExactlyTheseBytesAndComesBack) {
  std::string bytes(TailRecordSize(5), '\x7f');
  const TailRecord record{LogPosition{12}, Version{34}, "hello"};
  EncodeTailRecord(kOwner, Incarnation{3}, 64, record,
                   {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()});
  EXPECT_EQ(Hex(std::string_view(bytes).substr(0, 45)),
            "8804017680ed4b3c50544c5405000000"
            "0c000000000000002200000000000000"
            "030000000500000068656c6c6f");
  TailRecord back;
  ASSERT_TRUE(DecodeTailRecord(kOwner, Incarnation{3}, 64, bytes, &back));
  EXPECT_EQ(back.position, record.position);
  EXPECT_EQ(back.version, record.version);
  EXPECT_EQ(back.payload, "hello");
  EXPECT_FALSE(DecodeTailRecord(kOwner, Incarnation{2}, 64, bytes, &back));
  EXPECT_FALSE(DecodeTailRecord(kOwner, Incarnation{3}, 72, bytes, &back));
  for (size_t size = 0; size < 45; ++size) {
    EXPECT_FALSE(
        DecodeTailRecord(kOwner, Incarnation{3}, 64, std::string_view(bytes).substr(0, size), &back));
  }
}

}  // namespace
}  // namespace partita
