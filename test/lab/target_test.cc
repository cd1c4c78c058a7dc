#include "bench/lab/target.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "test/lab/experiments.h"
#include "test/lab/fake_store.h"

namespace partita::lab {
namespace {

// Says of all that it is not there.
class EmptyStore final : public FakeStore {
  Status Serve() override { return Status::NotFound("no such thing"); }
};

TEST(TargetTest, OnlyWhatIsAboutARecordCanFindItMissing) {
  std::string text = ReadingsText(kDeviceLayout);
  text.replace(text.find("[arrival]"), 9,
               "[[op]]\nname = \"put\"\nkind = \"upsert\"\n[[op]]\nname = \"change\"\nkind = \"merge\"\n"
               "set = [\"value\"]\n[[op]]\nname = \"drop\"\nkind = \"delete\"\n[arrival]");
  Experiment experiment = ParseSound(text);
  experiment.records = 0;
  const RecordGenerator generator(experiment);
  const std::atomic<bool> stop{false};
  const auto target = Target::Make(std::make_unique<EmptyStore>(), experiment.layouts[0], generator, stop,
                                   [](double) { return true; });
  ASSERT_TRUE(target.ok());
  for (size_t op = 0; op < experiment.ops.size(); ++op) {
    const Outcome outcome = (*target)->Execute({.op = op, .records = 1});
    const std::string& name = experiment.ops[op].name;
    const bool is_of_one = name == "read" || name == "change" || name == "drop";
    EXPECT_EQ(outcome.missing, is_of_one) << name;
    EXPECT_EQ(outcome.status.code(), is_of_one ? Code::kOk : Code::kNotFound) << name;
  }
}

}  // namespace
}  // namespace partita::lab
