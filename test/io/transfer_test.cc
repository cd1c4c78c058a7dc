#include "engine/io/transfer.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "engine/base/aligned_buffer.h"

// covers: F24
namespace partita {
namespace {

using testing::HasSubstr;
using Kind = Transfer::Kind;

TEST(TransferTest, AShortPieceIsContinuedFromWhereItStopped) {
  const FileHandle file{-1, false, "a"};
  std::vector<uint8_t> bytes(100);
  Transfer transfer(file, Kind::kWrite, 1000, bytes);
  transfer.Take(30);
  EXPECT_FALSE(transfer.finished());
  EXPECT_EQ(transfer.offset(), 1030u);
  EXPECT_EQ(transfer.data(), bytes.data() + 30);
  EXPECT_EQ(transfer.size(), 70u);
  transfer.Take(70);
  EXPECT_TRUE(transfer.finished());
  EXPECT_TRUE(transfer.complete());
  EXPECT_TRUE(transfer.status().ok());
}

TEST(TransferTest, ADirectPieceThatStoppedInsideAPageIsContinuedFromThePagesStart) {
  const FileHandle file{-1, true, "a"};
  AlignedBuffer pages(4 * kPageSize);
  Transfer transfer(file, Kind::kWrite, kPageSize, pages.span());
  transfer.Take(kPageSize + 512);
  EXPECT_EQ(transfer.offset(), 2 * kPageSize);
  EXPECT_EQ(transfer.data(), pages.data() + kPageSize);
  EXPECT_EQ(transfer.size(), 3 * kPageSize);
  transfer.Take(3 * kPageSize);
  EXPECT_TRUE(transfer.complete());
}

TEST(TransferTest, AWriteWithoutProgressIsAnError) {
  const FileHandle file{-1, true, "a"};
  AlignedBuffer pages(2 * kPageSize);
  Transfer transfer(file, Kind::kWrite, 0, pages.span());
  transfer.Take(512);
  EXPECT_FALSE(transfer.finished());
  transfer.Take(512);  // The same half page again.
  ASSERT_TRUE(transfer.finished());
  EXPECT_EQ(transfer.status().code(), Code::kIoError);
  EXPECT_THAT(transfer.status().message(), HasSubstr("\"a\""));
}

TEST(TransferTest, AReadWithoutProgressIsTheEndOfTheFile) {
  const FileHandle file{-1, true, "a"};
  AlignedBuffer pages(2 * kPageSize);
  Transfer transfer(file, Kind::kRead, 0, pages.span());
  transfer.Take(kPageSize + 100);
  EXPECT_FALSE(transfer.finished());
  transfer.Take(100);
  ASSERT_TRUE(transfer.finished());
  EXPECT_TRUE(transfer.status().ok());
  EXPECT_EQ(transfer.done(), kPageSize + 100);
  EXPECT_FALSE(transfer.complete());
  EXPECT_THAT(transfer.PastEnd().message(), HasSubstr("ends at offset 4196"));
}

TEST(TransferTest, InterruptionsAreRetriedABoundedNumberOfTimes) {
  const FileHandle file{-1, false, "a"};
  std::vector<uint8_t> bytes(10);
  for (int error : {EINTR, EAGAIN}) {
    Transfer patient(file, Kind::kRead, 0, bytes);
    for (int i = 0; i < 50; ++i) patient.Take(-error);
    EXPECT_FALSE(patient.finished());
    patient.Take(10);
    EXPECT_TRUE(patient.complete());

    Transfer hopeless(file, Kind::kRead, 0, bytes);
    int tries = 0;
    while (!hopeless.finished() && tries < 100'000) {
      hopeless.Take(-error);
      ++tries;
    }
    EXPECT_TRUE(hopeless.finished());
    EXPECT_EQ(hopeless.status().code(), Code::kIoError);
  }
}

TEST(TransferTest, AnErrorBehindAShortPieceFailsTheWhole) {
  const FileHandle file{-1, false, "a"};
  std::vector<uint8_t> bytes(100);
  Transfer transfer(file, Kind::kWrite, 0, bytes);
  transfer.Take(30);
  transfer.Take(-ENOSPC);
  ASSERT_TRUE(transfer.finished());
  EXPECT_EQ(transfer.status().code(), Code::kNoSpace);
  EXPECT_THAT(transfer.status().message(), HasSubstr("offset 30"));
}

TEST(TransferTest, NothingToMoveIsDoneAtOnce) {
  const FileHandle file{-1, false, "a"};
  Transfer transfer(file, Kind::kWrite, 0, {});
  EXPECT_TRUE(transfer.finished());
  EXPECT_TRUE(transfer.complete());
}

}  // namespace
}  // namespace partita
