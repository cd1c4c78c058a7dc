#include "api/cli/serve_settings.h"

#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "api/cli/settings_file.h"

namespace partita {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kSomeKey[] = "c29tZSBrZXkgb2Ygc29tZW9uZQ==";
constexpr char kOtherKey[] = "YW5vdGhlciBrZXk=";

class ServeSettingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "partita-settings-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    store_.directory = directory_ + "/store";
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& text) {
    const std::string path = directory_ + "/settings.toml";
    std::ofstream(path) << text;
    return path;
  }
  std::string Refusal(const ServeFlags& flags, std::string_view azurite_accounts = "") {
    const Result<ServeSettings> settings = ResolveServeSettings(store_, flags, azurite_accounts);
    return settings.ok() ? "accepted" : settings.status().message();
  }
  std::vector<std::string> AccountNames(const ServeFlags& flags, std::string_view azurite_accounts = "") {
    const Result<ServeSettings> settings = ResolveServeSettings(store_, flags, azurite_accounts);
    std::vector<std::string> names;
    if (!settings.ok()) return {settings.status().message()};
    for (const http::AccountSettings& account : settings->accounts) names.push_back(account.name);
    return names;
  }

  std::string directory_;
  StoreFlags store_;
};

TEST_F(ServeSettingsTest, NothingGivenIsTheDevelopmentAccountOnTheCustomaryPort) {
  const Result<ServeSettings> settings = ResolveServeSettings(store_, {}, "");
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  ASSERT_EQ(settings->listen.size(), 1u);
  EXPECT_EQ(settings->listen[0].address, "127.0.0.1:10002");
  EXPECT_FALSE(settings->listen[0].tls);
  EXPECT_EQ(ConnectionString(settings->accounts[0], settings->listen[0]),
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" +
                std::string(http::kDevelopmentKey) +
                ";TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;");
}

TEST_F(ServeSettingsTest, AnAddressThatOthersReachNeedsAnAccount) {
  for (const char* address : {"0.0.0.0:10002", "[::]:10002", "192.168.0.1:10002"}) {
    EXPECT_THAT(Refusal({.listen = {address}}), HasSubstr("no account is configured")) << address;
    EXPECT_EQ(Refusal({.listen = {address}, .accounts = {"contoso"}, .keys = {kSomeKey}}), "accepted");
  }
  EXPECT_THAT(Refusal({.listen = {"127.0.0.1:0", "0.0.0.0:0"}}), HasSubstr("no account is configured"));
  EXPECT_EQ(Refusal({.listen = {"127.0.0.1:0", "[::1]:0", "localhost:0"}}), "accepted");
}

TEST_F(ServeSettingsTest, TheCommandLineWinsOverTheEnvironmentAndThatOverTheFile) {
  const std::string file = Write("listen = \"127.0.0.1:7\"\n[[account]]\nname = \"infile\"\nkeys = [\"" +
                                 std::string(kSomeKey) + "\"]\n");
  const std::string environment = "inenv:" + std::string(kSomeKey);
  EXPECT_THAT(AccountNames({.settings_file = file}), ElementsAre("infile"));
  EXPECT_THAT(AccountNames({.settings_file = file}, environment), ElementsAre("inenv"));
  EXPECT_THAT(AccountNames({.accounts = {"online"}, .keys = {kSomeKey}, .settings_file = file}, environment),
              ElementsAre("online"));
  const Result<ServeSettings> moved =
      ResolveServeSettings(store_, {.listen = {"127.0.0.1:8"}, .settings_file = file}, "");
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(moved->listen[0].address, "127.0.0.1:8");
}

TEST_F(ServeSettingsTest, AKeyMayBeTwo) {
  const Result<ServeSettings> settings = ResolveServeSettings(
      store_, {.accounts = {"contoso"}, .keys = {std::string(kSomeKey) + ":" + kOtherKey}}, "");
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->accounts[0].keys, ElementsAre(kSomeKey, kOtherKey));
}

TEST_F(ServeSettingsTest, AccountsAndKeysThatDoNotFitAreRefused) {
  EXPECT_THAT(Refusal({.accounts = {"contoso"}}), HasSubstr("needs a --key"));
  EXPECT_THAT(Refusal({.accounts = {"contoso"}, .keys = {"no base64!"}}), HasSubstr("account"));
  EXPECT_THAT(Refusal({.accounts = {"Con_toso"}, .keys = {kSomeKey}}), HasSubstr("account"));
  EXPECT_THAT(Refusal({}, "rubbish"), HasSubstr("AZURITE_ACCOUNTS"));
}

TEST_F(ServeSettingsTest, NoRefusalShowsAKey) {
  for (const std::string& text :
       {Refusal({.accounts = {"contoso"}, .keys = {"c2VjcmV0!"}}), Refusal({}, "contoso:c2VjcmV0!")}) {
    EXPECT_NE(text, "accepted");
    EXPECT_EQ(text.find("c2VjcmV0"), std::string::npos) << text;
  }
}

TEST_F(ServeSettingsTest, TheFileSaysWhatTheCommandLineDoesNot) {
  const std::string file = Write(
      "memory = \"256M\"\nio = \"threads\"\nshards = 3\ndurability = \"process\"\ncreate = "
      "false\nallow-volatile-storage = true\n"
      "admin = \"127.0.0.1:9\"\naccess-log = \"-\"\nconnections-max = 10\n");
  const Result<ServeSettings> settings = ResolveServeSettings(store_, {.settings_file = file}, "");
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings->store.memory_bytes, 256u << 20);
  EXPECT_EQ(settings->store.io_backend, IoBackend::kThreads);
  EXPECT_EQ(settings->store.shards, 3u);
  EXPECT_EQ(settings->store.durability, Durability::kProcess);
  EXPECT_FALSE(settings->create_store);
  EXPECT_TRUE(settings->store.allow_volatile_storage);
  EXPECT_EQ(settings->admin->address, "127.0.0.1:9");
  EXPECT_EQ(settings->access_log, "-");
  EXPECT_EQ(settings->connections_max, 10u);

  store_.memory_bytes = 64u << 20;
  const Result<ServeSettings> given =
      ResolveServeSettings(store_, {.settings_file = file, .memory_given = true, .io_given = true}, "");
  EXPECT_EQ(given->store.memory_bytes, 64u << 20);
  EXPECT_EQ(given->store.io_backend, IoBackend::kUring);
}

TEST_F(ServeSettingsTest, ThroughputTargetsAreReadAndTheCommandLineWins) {
  const std::string file = Write(
      "throughput = \"storage\"\n[[throughput-rule]]\naccount = \"contoso\"\ntable = \"Orders\"\n"
      "partition-prefix = \"eu-\"\npartition-rate = 500\n[[throughput-rule]]\naccount = \"contoso\"\n"
      "account-rate = 0\n[[throughput-rule]]\ntable = \"Lines\"\ntotal-rate = 800\n");
  const Result<ThroughputTargets> read = ResolveThroughput({.settings_file = file}, {{.name = "contoso"}});
  ASSERT_TRUE(read.ok()) << read.status().message();
  ThroughputTargets expected = ThroughputTargets::Storage();
  expected.rules = {
      {.account = "contoso", .table = "Orders", .partition_prefix = "eu-", .partition_rate = 500},
      {.account = "contoso", .account_rate = 0},
      {.table = "Lines", .total_rate = 800}};
  EXPECT_EQ(*read, expected);
  EXPECT_EQ(ResolveServeSettings(store_, {.settings_file = file}, "contoso:a2V5")->throughput, expected);

  expected.partition_rate = 7;
  expected.account_rate = 0;
  EXPECT_EQ(
      ResolveThroughput({.settings_file = file, .throughput = "partition=7"}, {{.name = "contoso"}}).value(),
      expected);
  EXPECT_TRUE(ResolveThroughput({}, {})->IsOff());
}

TEST_F(ServeSettingsTest, BadThroughputTargetsAreRefused) {
  EXPECT_THAT(Refusal({.throughput = "fast"}), HasSubstr("off, storage, partition=N,account=N"));
  const auto refusal = [this](const std::string& text) { return Refusal({.settings_file = Write(text)}); };
  EXPECT_THAT(refusal("throughput = 5\n"), HasSubstr("throughput takes a text"));
  EXPECT_THAT(refusal("throughput-rule = 5\n"), HasSubstr("[[throughput-rule]]"));
  EXPECT_THAT(refusal("[[throughput-rule]]\ntable = \"T\"\n"), HasSubstr("rule 1: it sets neither"));
  EXPECT_THAT(refusal("[[throughput-rule]]\npartition-rate = -1\n"), HasSubstr(":1: a rate is 0"));
  EXPECT_THAT(refusal("[[throughput-rule]]\npartition-rate = 20000000\n"), HasSubstr("to 10000000"));
  EXPECT_THAT(refusal("[[throughput-rule]]\npartition_rate = 1\n"), HasSubstr("mean partition-rate?"));
  // No table and no account can be called so: it would limit nothing.
  EXPECT_THAT(refusal("[[throughput-rule]]\ntable = \"Ord*\"\npartition-rate = 1\n"),
              AllOf(HasSubstr("rule 1"), HasSubstr("table name \"Ord*\""), HasSubstr("at byte 3")));
  EXPECT_THAT(refusal("[[throughput-rule]]\naccount = \"Contoso\"\npartition-rate = 1\n"),
              HasSubstr("rule 1: account \"Contoso\" is no account name"));
}

TEST_F(ServeSettingsTest, ThroughputRulesAreForAccountsThatSomethingNames) {
  const std::string file = Write(
      "[[throughput-rule]]\npartition-rate = 5\n"
      "[[throughput-rule]]\naccount = \"contso\"\naccount-rate = 5\n");
  const std::string refusal =
      "throughput rule 2: account 'contso' is none of those that are served or stand in the settings file: "
      "contoso, fabrikam. Accounts are read at the start only";
  EXPECT_EQ(Refusal({.settings_file = file}, "contoso:a2V5;fabrikam:a2V5"), refusal);
  EXPECT_EQ(ResolveThroughput({.settings_file = file}, {{.name = "contoso"}, {.name = "fabrikam"}})
                .status()
                .message(),
            refusal)
      << "as a reload asks";
  EXPECT_EQ(Refusal({.settings_file = file}, "contso:a2V5"), "accepted");
  EXPECT_THAT(Refusal({.settings_file = file}), HasSubstr("settings file: devstoreaccount1"));

  const std::string named = Write(
      "[[account]]\nname = \"contso\"\nkeys = [\"a2V5\"]\n"
      "[[throughput-rule]]\naccount = \"contso\"\naccount-rate = 5\n");
  EXPECT_TRUE(ResolveServeSettings(store_, {.settings_file = named}, "contoso:a2V5").ok())
      << "the environment has other accounts this time";
  EXPECT_TRUE(ResolveThroughput({.settings_file = named}, {{.name = "contoso"}}).ok())
      << "the file got it since the start";
}

TEST_F(ServeSettingsTest, UnknownSettingsAreRefusedWithLineAndNearestName) {
  const std::string file = Write("memory = \"1G\"\nlissten = \"127.0.0.1:1\"\n");
  EXPECT_THAT(Refusal({.settings_file = file}),
              HasSubstr(file + ":2: unknown setting 'lissten'; did you mean listen?"));
  EXPECT_THAT(Refusal({.settings_file = Write("[[account]]\nname = \"abc\"\nkey = \"x\"\n")}),
              HasSubstr("unknown setting 'key' of an account; did you mean keys?"));
}

TEST_F(ServeSettingsTest, ValuesOfTheWrongKindAreRefused) {
  EXPECT_THAT(Refusal({.settings_file = Write("memory = 5\n")}), HasSubstr(":1: memory takes a text"));
  EXPECT_THAT(Refusal({.settings_file = Write("shards = \"two\"\n")}), HasSubstr("shards takes a whole"));
  EXPECT_THAT(Refusal({.settings_file = Write("shards = 0\n")}), HasSubstr("shards is 1 to 256"));
  EXPECT_THAT(Refusal({.settings_file = Write("listen = [1]\n")}), HasSubstr("listen takes texts"));
  EXPECT_THAT(Refusal({.settings_file = Write("account = \"a\"\n")}), HasSubstr("[[account]]"));
  EXPECT_THAT(Refusal({.settings_file = Write("this is no TOML\n")}), HasSubstr(":1: "));
  EXPECT_THAT(Refusal({.settings_file = directory_ + "/missing"}), HasSubstr("No such file"));
}

TEST_F(ServeSettingsTest, AFileThatCannotBeReadIsToldAndAnEmptyOneSaysNothing) {
  EXPECT_EQ(Refusal({.settings_file = directory_}), "settings file " + directory_ + ": Is a directory");
  EXPECT_EQ(ResolveServeSettings(store_, {.settings_file = directory_}, "").code(), Code::kIoError);
  EXPECT_EQ(ResolveThroughput({.settings_file = directory_}, {}).code(), Code::kIoError)
      << "as a reload asks";
  EXPECT_EQ(Refusal({.settings_file = Write("")}), "accepted");
}

TEST_F(ServeSettingsTest, TlsNeedsBothFilesAndIsSpokenWhereItIsAskedFor) {
  EXPECT_THAT(Refusal({.certificate_file = "c"}), HasSubstr("both --cert and --key-file"));
  EXPECT_THAT(Refusal({.listen = {"https://127.0.0.1:1"}}), HasSubstr("needs --cert"));
  const Result<ServeSettings> settings =
      ResolveServeSettings(store_,
                           {.listen = {"127.0.0.1:1", "http://127.0.0.1:2", "https://127.0.0.1:3"},
                            .certificate_file = "c",
                            .key_file = "k"},
                           "");
  ASSERT_TRUE(settings.ok());
  EXPECT_TRUE(settings->listen[0].tls);
  EXPECT_FALSE(settings->listen[1].tls);
  EXPECT_TRUE(settings->listen[2].tls);
}

TEST_F(ServeSettingsTest, TheAdminAddressStaysOnThisMachineUnlessAsked) {
  EXPECT_THAT(Refusal({.admin = "0.0.0.0:9"}), HasSubstr("--admin-public"));
  EXPECT_EQ(Refusal({.admin = "0.0.0.0:9", .admin_public = true}), "accepted");
  EXPECT_EQ(Refusal({.admin = "127.0.0.1:9"}), "accepted");
}

TEST(ListenAddressTest, AddressesThatAreNoneAreRefused) {
  for (const char* text : {"", "10002", "127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:1x",
                           "example.com:80", "::1:80", "ftp://127.0.0.1:80", "127.0.0.1:80/path"}) {
    EXPECT_FALSE(ParseListenAddress(text, false).ok()) << text;
  }
}

TEST(ListenAddressTest, AnyAddressIsShownAsOneToConnectTo) {
  const http::AccountSettings account{.name = "abc", .keys = {kSomeKey}};
  EXPECT_THAT(ConnectionString(account, *ParseListenAddress("0.0.0.0:5", false)),
              HasSubstr("TableEndpoint=http://127.0.0.1:5/abc;"));
  EXPECT_THAT(ConnectionString(account, *ParseListenAddress("[::]:5", true)),
              HasSubstr("TableEndpoint=https://[::1]:5/abc;"));
}

TEST(ShareDescriptorsTest, ConnectionsLeaveTheStoreItsFiles) {
  for (const uint64_t descriptors : {4'096, 8'192, 20'000, 65'536, 1'048'576}) {
    for (const size_t addresses : {1, 2, 16}) {
      const ConnectionShare share = ShareDescriptors(descriptors, addresses, 16'384);
      EXPECT_LE(addresses * (share.connections + share.refused) + 2'048 + 2 * kAdminConnectionsMax,
                descriptors)
          << descriptors << ", " << addresses;
      EXPECT_GE(share.connections, 64u);
    }
  }
  EXPECT_EQ(ShareDescriptors(20'000, 1, 16'384).connections, 16'384u);
  EXPECT_EQ(ShareDescriptors(20'000, 1, 100).connections, 100u);
  EXPECT_EQ(ShareDescriptors(1'048'576, 16, 16'384).connections, 16'384u);
  EXPECT_LT(ShareDescriptors(20'000, 2, 16'384).connections, 10'000u);
  // Of fewer than the store needs some are given all the same.
  EXPECT_EQ(ShareDescriptors(1'024, 1, 16'384).connections, 64u);
}

}  // namespace
}  // namespace partita
