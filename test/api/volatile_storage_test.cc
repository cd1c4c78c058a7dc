#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "api/partita.h"
#include "test/support/hostile_world.h"
#include "test/support/scratch_directory.h"

// covers: F5: a store that may be written is not opened where `power` cannot be given, unless that was asked
// for by name; then the level in force is said.

namespace partita {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(VolatileStorageTest, AStoreInMemoryIsOpenedOnlyWhenThatIsAskedFor) {
  ScratchDirectory directory;
  TmpfsMount mount(directory.path(), 256);
  if (!mount.mounted()) GTEST_SKIP() << "mounting a tmpfs needs CAP_SYS_ADMIN";
  Options options;
  options.directory = directory.path() + "/store";
  options.create_if_missing = true;
  options.memory_bytes = 64u << 20;
  options.shards = 1;
  options.io_backend = IoBackend::kThreads;

  Result<std::unique_ptr<Database>> refused = Database::Open(options);
  EXPECT_EQ(UnmetOf(refused.status()), Unmet::kStableStorage);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("tmpfs"), HasSubstr("allow_volatile_storage"), HasSubstr("(F5)")));
  EXPECT_TRUE(std::filesystem::is_empty(options.directory));  // Nothing was made.

  options.allow_volatile_storage = true;
  {
    Result<std::unique_ptr<Database>> allowed = Database::Open(options);
    ASSERT_TRUE(allowed.ok()) << allowed.status().ToString();
    EXPECT_THAT((*allowed)->open_report().volatile_storage, HasSubstr("tmpfs"));
    EXPECT_EQ((*allowed)->Stats().durability, Durability::kPower);
    EXPECT_EQ((*allowed)->Stats().durability_in_force, Durability::kProcess);
    ASSERT_TRUE((*allowed)->CreateTable("Things").ok());
    EXPECT_TRUE((*allowed)->Close().ok());
  }
  // One that is there is refused likewise; reading promises nothing.
  options.allow_volatile_storage = false;
  options.create_if_missing = false;
  EXPECT_EQ(Database::Open(options).code(), Code::kUnsupported);
  options.read_only = true;
  Result<std::unique_ptr<Database>> reading = Database::Open(options);
  ASSERT_TRUE(reading.ok()) << reading.status().ToString();
  EXPECT_TRUE((*reading)->OpenTable("Things").ok());
}

}  // namespace
}  // namespace partita
