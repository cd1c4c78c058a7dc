#include "engine/io/written_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "test/support/scratch_directory.h"

// covers: F54

namespace partita {
namespace {

std::string ContentOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST(WrittenMappingTest, HasWhatTheFileHasAndTheFileGetsWhatIsStored) {
  ScratchDirectory directory;
  const std::string path = directory.path() + "/tail";
  std::ofstream(path) << std::string(8192, 'o');
  {
    auto mapping = WrittenMapping::Make(open(path.c_str(), O_RDWR | O_CLOEXEC), 8192, "tail");
    ASSERT_TRUE(mapping.ok()) << mapping.status().ToString();
    ASSERT_EQ((*mapping)->bytes().size(), 8192u);
    EXPECT_EQ((*mapping)->bytes()[8191], 'o');
    std::fill_n((*mapping)->bytes().data() + 4000, 500, 'n');
    std::fill_n((*mapping)->bytes().data() + 6000, 500, 'u');
    EXPECT_TRUE((*mapping)->Stored(4000, 500).ok());
    EXPECT_EQ(ContentOf(path), std::string(4000, 'o') + std::string(500, 'n') + std::string(3692, 'o'));
  }
  EXPECT_EQ(ContentOf(path), std::string(4000, 'o') + std::string(500, 'n') + std::string(3692, 'o'));
}

TEST(WrittenMappingTest, AFullDiskIsAnErrorAndSoIsAFileThatIsTooShort) {
  auto full = WrittenMapping::Make(open("/dev/full", O_RDWR | O_CLOEXEC), 4096, "tail");
  ASSERT_TRUE(full.ok()) << full.status().ToString();
  const Status stored = (*full)->Stored(0, 100);
  EXPECT_EQ(stored.code(), Code::kNoSpace) << stored.ToString();
  ScratchDirectory directory;
  const std::string path = directory.path() + "/tail";
  std::ofstream(path) << "short";
  EXPECT_EQ(WrittenMapping::Make(open(path.c_str(), O_RDWR | O_CLOEXEC), 4096, "tail").code(),
            Code::kIoError);
}

TEST(WrittenMappingTest, WhereBlocksAreWrittenOverItIsNotNeeded) {
  const int memory = memfd_create("tail", MFD_CLOEXEC);  // tmpfs.
  EXPECT_FALSE(StoresNeedSpace(memory));
  close(memory);
}

}  // namespace
}  // namespace partita
