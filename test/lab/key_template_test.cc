#include "bench/lab/key_template.h"

#include <gtest/gtest.h>

#include "bench/lab/record_generator.h"
#include "engine/base/checksum.h"
#include "test/lab/experiments.h"

namespace partita::lab {
namespace {

class KeyTemplateTest : public ::testing::Test {
 protected:
  std::string Of(const std::string& text) {
    const Result<KeyTemplate> parsed = KeyTemplate::Parse(text, experiment_.fields);
    if (!parsed.ok()) return parsed.status().message();
    return parsed->Of(record_);
  }
  KeyTemplateTest() {
    const RecordGenerator generator(experiment_);
    generator.Make(361, &record_);  // One hour and ten seconds after the start.
    device_ = *record_.values[0].if_string();
  }

  const Experiment experiment_ = ParseSound(ReadingsText(kDeviceLayout));
  Record record_;
  std::string device_;
};

TEST_F(KeyTemplateTest, WritesFieldsTimesAndNumbers) {
  EXPECT_EQ(Of("all"), "all");
  EXPECT_EQ(Of("{device}"), device_);
  EXPECT_EQ(Of("{ts:%Y-%m-%d}_{ts:%H%M%S.%f}"), "2026-01-01_010010.0000000");
  EXPECT_EQ(Of("{{x}}"), "{x}");
  EXPECT_EQ(Of("{(2 + 3 * 4) % 6:03}"), "002");
  EXPECT_EQ(Of("{255:04x}"), "00ff");
  EXPECT_EQ(Of("{7 / 0}"), "0");
  EXPECT_EQ(Of("{salt(10)}"), "1");
  EXPECT_EQ(Of("{concat('a', lower('BC'))}"), "abc");
  EXPECT_EQ(Of("{hash(device) % 16:02x}").size(), 2u);
  EXPECT_EQ(Of("{bucket(device, 7)}"), std::to_string((Hash64(device_) >> 1) % 7));
}

TEST_F(KeyTemplateTest, DescendingTicksFallAsTimeRises) {
  const std::string up = Of("{ticks(ts)}"), down = Of("{desc_ticks(ts)}");
  EXPECT_EQ(up.size(), 19u);
  EXPECT_EQ(down.size(), 19u);
  EXPECT_EQ(std::stoull(up) + std::stoull(down), kDateTimeTicksMax);
}

TEST_F(KeyTemplateTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(Of("{devise}"), "character 2: no field 'devise'; did you mean device?");
  EXPECT_EQ(Of("x{"), "character 2: '{' without '}'; a brace is written {{");
  EXPECT_EQ(Of("{hsah(device)}"), "character 2: no function 'hsah'; did you mean hash?");
  EXPECT_EQ(Of("{device + 1}"), "character 12: '+' takes whole numbers");
  EXPECT_EQ(Of("{ticks(device)}"), "character 15: ticks takes a time");
  EXPECT_EQ(Of("{value:02}"), "character 8: only times and whole numbers have a format");
}

}  // namespace
}  // namespace partita::lab
