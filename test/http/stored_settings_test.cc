#include "api/http/stored_settings.h"

#include <gtest/gtest.h>

#include "api/partita.h"
#include "engine/io/sim_disk.h"
#include "engine/io/sim_runtime.h"

namespace partita::http {
namespace {

class StoredSettingsTest : public testing::Test {
 protected:
  StoredSettingsTest() { Open(); }
  ~StoredSettingsTest() override {
    settings_.reset();
    EXPECT_TRUE(database_->Close().ok());
  }

  void Open() {
    runtime_ = std::make_unique<SimRuntime>(SimOptions{.seed = 1, .shards = 1}, disk_);
    Options options;
    options.directory = "store";
    options.create_if_missing = true;
    options.memory_bytes = 64 << 20;
    options.shards = 1;
    database_ = std::move(Database::OpenOn(*runtime_, options)).value();
    settings_ = std::make_unique<StoredSettings>(AsyncDatabase(*database_));
  }
  void Reopen() {
    settings_.reset();
    EXPECT_TRUE(database_->Close().ok());
    database_.reset();
    runtime_.reset();
    Open();
  }

  Status SetPolicies(const std::string& table, StoredPolicies policies) {
    return runtime_->RunToEnd(settings_->SetPolicies("acct", table, std::move(policies)));
  }
  std::string Update(const std::string& inside) {
    const std::string xml = "<StorageServiceProperties>" + inside + "</StorageServiceProperties>";
    const auto refused = runtime_->RunToEnd(settings_->UpdateProperties("acct", xml));
    return refused ? std::string(ErrorCodeName(refused->code)) : "ok";
  }
  std::shared_ptr<const StoredPolicies> Policies(std::string_view account, std::string_view table) {
    return settings_->Policies(account, table).value();
  }
  Status MakeTable(const std::string& name) {
    return runtime_->RunToEnd(AsyncDatabase(*database_).CreateTable("acct", name));
  }

  SimDisk disk_{1};
  std::unique_ptr<SimRuntime> runtime_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<StoredSettings> settings_;
};

constexpr const char* kHourMetrics =
    "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>"
    "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>";
constexpr const char* kAnyOrigin =
    "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins><AllowedMethods>GET</AllowedMethods><AllowedHeaders/>"
    "<ExposedHeaders/><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>";

TEST_F(StoredSettingsTest, PoliciesFollowTheirLastChangeAndARestart) {
  EXPECT_EQ(SetPolicies("Things", {}).code(), Code::kNotFound);
  ASSERT_TRUE(MakeTable("Things").ok());
  EXPECT_EQ(Policies("acct", "things"), nullptr);
  ASSERT_TRUE(SetPolicies("things", {{{.id = "one", .permission = "r"}}}).ok());
  ASSERT_NE(Policies("acct", "THINGS"), nullptr);
  EXPECT_EQ(Policies("acct", "things")->policies[0].permission, "r");
  ASSERT_TRUE(SetPolicies("Things", {{{.id = "one", .permission = "ra"}}}).ok());
  EXPECT_EQ(Policies("acct", "things")->Find("one")->permission, "ra");
  EXPECT_EQ(Policies("acct", "things"), Policies("acct", "Things"));  // Parsed once.
  EXPECT_EQ(Policies("other", "things"), nullptr);
  Reopen();
  EXPECT_EQ(Policies("acct", "things")->Find("one")->permission, "ra");
  ASSERT_TRUE(SetPolicies("Things", {}).ok());
  EXPECT_EQ(Policies("acct", "things"), nullptr);
}

TEST_F(StoredSettingsTest, ANewTableOfTheNameHasNoPolicies) {
  ASSERT_TRUE(MakeTable("Things").ok());
  ASSERT_TRUE(SetPolicies("Things", {{{.id = "one"}}}).ok());
  ASSERT_TRUE(runtime_->RunToEnd(AsyncDatabase(*database_).DeleteTable("acct", "Things")).ok());
  EXPECT_EQ(Policies("acct", "Things"), nullptr);
  ASSERT_TRUE(MakeTable("Things").ok());
  EXPECT_EQ(Policies("acct", "Things"), nullptr);
}

TEST_F(StoredSettingsTest, PropertiesAreMergedIntoWhatIsStored) {
  EXPECT_EQ(settings_->Properties("acct"), nullptr);
  ASSERT_EQ(Update(kHourMetrics), "ok");
  ASSERT_EQ(Update(kAnyOrigin), "ok");
  Reopen();
  const auto properties = settings_->Properties("acct");
  ASSERT_NE(properties, nullptr);
  EXPECT_TRUE(properties->hour_metrics.include_apis);
  EXPECT_EQ(properties->cors.size(), 1u);
  EXPECT_EQ(settings_->Properties("acct"), properties);  // Parsed once.
  EXPECT_EQ(settings_->Properties("other"), nullptr);
  EXPECT_EQ(Update("<Cors>"), "InvalidXmlDocument");
  EXPECT_EQ(settings_->Properties("acct"), properties);
}

// A newer version may have written it. covers: F66 F80
TEST_F(StoredSettingsTest, WhatCannotBeReadIsNeitherNoneNorOverwritten) {
  ASSERT_TRUE(MakeTable("Things").ok());
  const std::string newer = "<Newer/>";
  AsyncDatabase database(*database_);
  ASSERT_TRUE(runtime_->RunToEnd(database.SetAccountAttributes("acct", newer)).ok());
  ASSERT_TRUE(runtime_->RunToEnd(database.SetTableAttributes("acct", "Things", newer)).ok());
  EXPECT_EQ(settings_->ReadProperties("acct").code(), Code::kCorruption);
  EXPECT_EQ(settings_->Properties("acct"), nullptr);
  EXPECT_EQ(Update(kHourMetrics), "InternalError");
  EXPECT_EQ(*database.AccountAttributes("acct"), newer);
  EXPECT_EQ(settings_->Policies("acct", "Things").code(), Code::kCorruption);
}

}  // namespace
}  // namespace partita::http
