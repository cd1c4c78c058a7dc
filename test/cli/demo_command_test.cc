#include "test/cli/command_fixture.h"

namespace partita {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using DemoCommandTest = CommandTest;

// A package index of so many stanzas, all fields of one repeated Architecture case included.
std::string MakeIndex(int packages) {
  std::string index;
  for (int i = 0; i < packages; ++i) {
    const std::string name = "pack" + std::to_string(i);
    index += "Package: " + name + "\nVersion: 1:" + std::to_string(i % 7) +
             ".0\nInstalled-Size: " + std::to_string(i * 3) +
             "\nSection: " + (i % 50 == 0 ? "non-free/x" : "libs") +
             "\nArchitecture: amd64\nDescription: a package\n of several\n .\n lines\nMulti-Arch: same\n\n";
    if (i % 1000 == 0) {
      index += "Package: " + name + "\nVersion: 1:" + std::to_string(i % 7) +
               ".0\nSize: " + std::to_string(i * 1000) + "\nSection: libs\nArchitecture: all\n\n";
    }
  }
  return index;
}

TEST_F(DemoCommandTest, EveryStepGivesTheRightAnswer) {
  const std::string index = Write("index", MakeIndex(10'100));
  const CommandOutcome demo = Run({"demo", "--smoke", "--index", index});
  EXPECT_EQ(demo.code, ExitCode::kOk) << demo.out << demo.err;
  EXPECT_THAT(demo.out, AllOf(HasSubstr("smoke: ok"), HasSubstr("nothing missing, nothing extra"),
                              HasSubstr("field names changed"), HasSubstr("9 found, as expected"),
                              HasSubstr("15. verify")));
}

TEST_F(DemoCommandTest, StanzasThatCannotBeReadAreToldAndLeftOut) {
  const std::string index = "Package: nameless\nSection: libs\n\n" + MakeIndex(10'100) + "no colon here\n\n";
  const CommandOutcome demo = Run({"demo", "--smoke", "--index", Write("index", index)});
  EXPECT_EQ(demo.code, ExitCode::kOk) << demo.out << demo.err;
  EXPECT_THAT(demo.out, AllOf(HasSubstr("2 bad"), HasSubstr("smoke: ok")));
  EXPECT_THAT(demo.err, HasSubstr("stanza at line 1"));
}

TEST_F(DemoCommandTest, ASmallIndexIsRefusedBeforeAStoreIsMade) {
  const std::string index = Write("index", MakeIndex(500));
  const CommandOutcome demo = Run({"demo", "--smoke", "--index", index});
  EXPECT_EQ(demo.code, ExitCode::kFailed);
  EXPECT_THAT(demo.out, AllOf(HasSubstr("'" + index + "' has 501 records; 10,000 are needed"),
                              HasSubstr("smoke: FAILED")));
  EXPECT_FALSE(std::filesystem::exists(store_));
  EXPECT_THAT(RunAsGiven({"demo", "--help"}).out, HasSubstr("10,000 records or more"));
}

TEST_F(DemoCommandTest, LeavesAStoreThatSomebodyHasAlone) {
  ASSERT_EQ(Run({"create-table", "Orders"}).code, ExitCode::kOk);
  const CommandOutcome demo = Run({"demo", "--index", Write("index", MakeIndex(1))});
  EXPECT_EQ(demo.code, ExitCode::kUsage);
  EXPECT_THAT(demo.err, AllOf(HasSubstr("holds a store already"), HasSubstr("--data")));
  EXPECT_THAT(Run({"tables"}).out, Not(HasSubstr("Packages")));
}

}  // namespace
}  // namespace partita
