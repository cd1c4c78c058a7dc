#include "engine/io/device_probe.h"

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/statfs.h>

// covers: F5: where a flush is known not to survive a loss of power.

namespace partita {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

DeviceReport On(std::string file_system, std::string mount_options, std::optional<bool> volatile_cache) {
  DeviceReport report;
  report.file_system = std::move(file_system);
  report.mount_options = std::move(mount_options);
  report.volatile_cache = volatile_cache;
  return report;
}

TEST(DeviceProbeTest, FileSystemsAndDisksInMemoryLoseFlushes) {
  EXPECT_THAT(WhyFlushesAreLost(On("tmpfs", "rw", std::nullopt)), HasSubstr("tmpfs"));
  EXPECT_THAT(WhyFlushesAreLost(On("ramfs", "rw", std::nullopt)), HasSubstr("in memory"));
  DeviceReport disk = On("ext4", "rw", false);
  disk.block_device = "zram0";
  EXPECT_THAT(WhyFlushesAreLost(disk), HasSubstr("zram0"));
}

TEST(DeviceProbeTest, MountOptionsThatLeaveFlushesOutLoseThem) {
  EXPECT_THAT(WhyFlushesAreLost(On("overlay", "rw,upperdir=/u,volatile", std::nullopt)),
              HasSubstr("volatile"));
  EXPECT_THAT(WhyFlushesAreLost(On("ext4", "rw,nobarrier", true)), HasSubstr("nobarrier"));
  EXPECT_THAT(WhyFlushesAreLost(On("ext3", "barrier=0", std::nullopt)), HasSubstr("barrier=0"));
  // Without a cache there is nothing to flush.
  EXPECT_THAT(WhyFlushesAreLost(On("ext4", "rw,nobarrier", false)), IsEmpty());
}

TEST(DeviceProbeTest, NothingIsHeldAgainstOrdinaryPlaces) {
  EXPECT_THAT(WhyFlushesAreLost(On("ext4", "rw,errors=remount-ro", true)), IsEmpty());
  EXPECT_THAT(WhyFlushesAreLost(On("xfs", "rw,attr2,inode64", std::nullopt)), IsEmpty());
  EXPECT_THAT(WhyFlushesAreLost(On("overlay", "rw,lowerdir=/volatile,upperdir=/u", std::nullopt)), IsEmpty());
  EXPECT_THAT(WhyFlushesAreLost(On("unknown", "", std::nullopt)), IsEmpty());
}

TEST(DeviceProbeTest, ADirectoryIsAskedForItsOwnFileSystem) {
  EXPECT_EQ(WhyFlushesAreLost(std::string("/no/such/place")).code(), Code::kNotFound);
  struct statfs shared {};
  ASSERT_EQ(statfs("/dev/shm", &shared), 0);
  const Result<std::string> why = WhyFlushesAreLost(std::string("/dev/shm"));
  ASSERT_TRUE(why.ok()) << why.status().ToString();
  if (shared.f_type == TMPFS_MAGIC) EXPECT_THAT(*why, HasSubstr("tmpfs"));  // As nearly everywhere.
}

}  // namespace
}  // namespace partita
