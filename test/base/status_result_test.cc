#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "engine/base/result.h"
#include "engine/base/status.h"

namespace partita {
namespace {

TEST(StatusTest, DefaultIsOkWithoutAMessage) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.ToString(), "Ok");
  EXPECT_EQ(status.retry_after_us(), 0u);
}

TEST(StatusTest, EachCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(Code::kMoved); ++code) {
    names.insert(CodeName(static_cast<Code>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Code::kMoved) + 1);
  EXPECT_FALSE(names.contains("?"));
}

TEST(StatusTest, FactoriesGiveTheirCodes) {
  EXPECT_EQ(Status::NotFound("m").code(), Code::kNotFound);
  EXPECT_EQ(Status::AlreadyExists("m").code(), Code::kAlreadyExists);
  EXPECT_EQ(Status::PreconditionFailed("m").code(), Code::kPreconditionFailed);
  EXPECT_EQ(Status::InvalidArgument("m").code(), Code::kInvalidArgument);
  EXPECT_EQ(Status::Throttled("m", 1).code(), Code::kThrottled);
  EXPECT_EQ(Status::Busy("m").code(), Code::kBusy);
  EXPECT_EQ(Status::NoSpace("m").code(), Code::kNoSpace);
  EXPECT_EQ(Status::ResourceExhausted("m").code(), Code::kResourceExhausted);
  EXPECT_EQ(Status::Unknown("m").code(), Code::kUnknown);
  EXPECT_EQ(Status::DeadlineExceeded("m").code(), Code::kDeadlineExceeded);
  EXPECT_EQ(Status::Cancelled("m").code(), Code::kCancelled);
  EXPECT_EQ(Status::Closed("m").code(), Code::kClosed);
  EXPECT_EQ(Status::Locked("m").code(), Code::kLocked);
  EXPECT_EQ(Status::Unsupported("m").code(), Code::kUnsupported);
  EXPECT_EQ(Status::IoError("m").code(), Code::kIoError);
  EXPECT_EQ(Status::Corruption("m").code(), Code::kCorruption);
  EXPECT_EQ(Status::Moved("m").code(), Code::kMoved);
}

TEST(StatusTest, ContextIsPutBeforeTheMessageAndKeepsTheRest) {
  const Status status = Status::Throttled("account over its target", 2500).WithContext("table orders");
  EXPECT_EQ(status.code(), Code::kThrottled);
  EXPECT_EQ(status.retry_after_us(), 2500u);
  EXPECT_EQ(status.ToString(), "Throttled: table orders: account over its target");
  EXPECT_TRUE(Status().WithContext("anything").ok());
}

TEST(ResultTest, HoldsAValueOrAStatus) {
  Result<std::string> good = std::string("value");
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, "value");
  EXPECT_EQ(good->size(), 5u);
  EXPECT_EQ(good.code(), Code::kOk);
  Result<std::string> bad = Status::NotFound("no such table");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.code(), Code::kNotFound);
  EXPECT_EQ(bad.status().message(), "no such table");
}

TEST(ResultTest, MovesValuesThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

Status Fails(bool fails) { return fails ? Status::Busy("full") : Status(); }
Result<int> Twice(Result<int> input) {
  PARTITA_ASSIGN(const int value, std::move(input));
  return value * 2;
}
Status Chain(bool first, bool second, int* reached) {
  PARTITA_TRY(Fails(first));
  *reached = 1;
  PARTITA_TRY(Twice(second ? Result<int>(Status::IoError("disk")) : Result<int>(1)));
  *reached = 2;
  return Status();
}

TEST(ResultTest, TheMacrosReturnTheFirstFailureAndNothingElse) {
  int reached = 0;
  EXPECT_EQ(Chain(true, true, &reached).code(), Code::kBusy);
  EXPECT_EQ(reached, 0);
  EXPECT_EQ(Chain(false, true, &reached).code(), Code::kIoError);
  EXPECT_EQ(reached, 1);
  EXPECT_TRUE(Chain(false, false, &reached).ok());
  EXPECT_EQ(reached, 2);
  EXPECT_EQ(*Twice(21), 42);
}

using ResultDeathTest = ::testing::Test;

TEST(ResultDeathTest, TheValueOfAFailureEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  Result<int> bad = Status::NotFound("no such thing");
  EXPECT_DEATH((void)bad.value(), "broken invariant at .*ok\\(\\); it is NotFound: no such thing");
}

TEST(ResultDeathTest, AnOkStatusIsNoResult) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH((void)Result<int>(Status()), "status_.ok()");
}

}  // namespace
}  // namespace partita
