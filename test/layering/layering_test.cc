// Reads the #include lines of the whole tree and checks the architecture of README's folder table:
// arrows point downwards, siblings do not see each other, each package stays behind its files.
//
// A rule that a change must break is changed here, in the same commit, with the reason beside it.
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "test/support/paths.h"

namespace partita {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Include {
  std::string target;
  bool is_system = false;
};

struct SourceFile {
  std::string path;  // From the root, such as "wal/segment_writer.cc".
  std::vector<Include> includes;
};

// Each folder, and the folders whose headers its files may include besides their own.
const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"engine/base", {}},
    {"engine/io", {"engine/base"}},
    {"wal", {"engine/io", "engine/base"}},
    {"memtable", {"engine/base"}},
    {"sstable", {"engine/base"}},
    {"compaction", {"sstable", "engine/base"}},
    {"engine", {"compaction", "sstable", "memtable", "wal", "engine/io", "engine/base"}},
    {"api", {"engine", "engine/base"}},
    {"api/http", {"api", "engine", "engine/base", "engine/io"}},
    {"api/cli", {"api/http", "api", "engine", "engine/base"}},
};

// The lab lies in bench/, above everything, and yet is a command of the program: its main file, and no other,
// hands it to the command line.
constexpr const char* kMainFile = "api/cli/main/partita_main.cc";
constexpr const char* kLabHeader = "bench/lab/lab_command.h";

// Packages and kernel interfaces, and the only places that may include them. test/ and bench/ may
// include everything.
struct PackageRule {
  std::string header_pattern;
  std::vector<std::string> allowed;  // Folders, or single files.
};
const std::vector<PackageRule> kPackageRules = {
    {R"(liburing.*)", {"engine/io"}},
    {R"(lz4.*|zstd.*|zdict\.h)", {"sstable"}},
    {R"(xxh.*\.h)", {"engine/base/checksum.cc"}},
    {R"(simdjson.*)", {"api/cli", "api/http"}},
    {R"(CLI/.*|toml\+\+/.*)", {"api/cli"}},
    {R"(boost/.*|openssl/.*|expat.*)", {"api/http"}},
    {R"((rocksdb|leveldb)/.*|lmdb\.h|wiredtiger\.h|benchmark/.*|gtest/.*|gmock/.*|rapidcheck.*|seccomp\.h)",
     {}},
    // Pools are mapped, not malloced.
    {R"(sys/mman\.h)", {"engine/io", "engine/base/aligned_buffer.cc", "engine/base/large_memory.cc"}},
    // What talks to the kernel lies below the lower seam. The command line asks the terminal for its
    // width and catches signals; hazard slots pay with membarrier on the reclaiming side.
    {R"(sys/(?!mman\.h).*|linux/.*|asm/.*|unistd\.h|fcntl\.h|poll\.h|dirent\.h|sched\.h|aio\.h)",
     {"engine/io", "engine/hazard.cc", "api/http", "api/cli"}},
};

std::vector<Include> ParseIncludes(const std::string& text) {
  static const std::regex kLine(R"(^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"])", std::regex::multiline);
  std::vector<Include> includes;
  for (std::sregex_iterator it(text.begin(), text.end(), kLine), end; it != end; ++it) {
    includes.push_back({.target = (*it)[2], .is_system = (*it)[1] == "<"});
  }
  return includes;
}

// The row of the table that `path` belongs to: the longest folder that is a prefix of it. Empty for
// test/ and bench/, which may include everything.
std::string FolderOf(const std::string& path) {
  std::string best;
  for (const auto& [folder, unused] : kMayInclude) {
    if (path.starts_with(folder + "/") && folder.size() > best.size()) best = folder;
  }
  return best;
}

bool IsAllowedBy(const PackageRule& rule, const std::string& path) {
  return std::any_of(rule.allowed.begin(), rule.allowed.end(), [&](const std::string& place) {
    return path == place || path.starts_with(place + "/");
  });
}

// What is wrong with the include lines of one file; one sentence each.
std::vector<std::string> CheckFile(const SourceFile& file) {
  std::vector<std::string> complaints;
  const std::string folder = FolderOf(file.path);
  if (folder.empty()) return complaints;
  for (const Include& include : file.includes) {
    if (include.is_system) {
      for (const PackageRule& rule : kPackageRules) {
        if (std::regex_match(include.target, std::regex(rule.header_pattern)) &&
            !IsAllowedBy(rule, file.path)) {
          complaints.push_back(file.path + " includes <" + include.target +
                               ">, which stays behind other files");
        }
      }
      continue;
    }
    if (file.path == kMainFile && include.target == kLabHeader) continue;
    const std::string target = FolderOf(include.target);
    if (target.empty()) {
      complaints.push_back(file.path + " includes \"" + include.target +
                           "\", which is no path from the root to a header of the product");
    } else if (target != folder && !kMayInclude.at(folder).contains(target)) {
      complaints.push_back(file.path + " includes \"" + include.target + "\", but " + folder +
                           "/ does not see " + target + "/");
    }
  }
  return complaints;
}

std::string ReadFile(const fs::path& path) {
  std::ostringstream whole;
  whole << std::ifstream(path).rdbuf();
  return std::move(whole).str();
}

fs::path Root() { return kSourceDirectory; }

std::vector<SourceFile> ReadWholeTree() {
  std::vector<SourceFile> files;
  for (const char* top : {"engine", "wal", "memtable", "sstable", "compaction", "api", "test", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(Root() / top)) {
      const std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      files.push_back(
          {.path = fs::relative(entry.path(), Root()), .includes = ParseIncludes(ReadFile(entry.path()))});
    }
  }
  return files;
}

const std::vector<SourceFile>& ReadTree() {
  static const std::vector<SourceFile> files = ReadWholeTree();
  return files;
}

TEST(LayeringTest, EveryIncludePointsDownwards) {
  const std::vector<SourceFile>& files = ReadTree();
  ASSERT_GT(files.size(), 20u) << "the tree was not found at " << Root();
  for (const SourceFile& file : files) EXPECT_THAT(CheckFile(file), IsEmpty());
}

TEST(LayeringTest, EveryProjectIncludeExists) {
  for (const SourceFile& file : ReadTree()) {
    // Consumers are built from outside, against installed headers.
    if (file.path.starts_with("test/consumer/")) continue;
    for (const Include& include : file.includes) {
      if (!include.is_system) {
        EXPECT_TRUE(fs::exists(Root() / include.target)) << file.path << " includes " << include.target;
      }
    }
  }
}

// So each header with a .cc is known to compile alone; the target headers_alone compiles the others.
TEST(LayeringTest, EverySourceFileIncludesItsOwnHeaderFirst) {
  for (const SourceFile& file : ReadTree()) {
    if (!file.path.ends_with(".cc")) continue;
    const std::string header = fs::path(file.path).replace_extension(".h");
    if (!fs::exists(Root() / header)) continue;
    ASSERT_FALSE(file.includes.empty()) << file.path;
    EXPECT_EQ(file.includes.front().target, header)
        << "is the first thing that " << file.path << " must include";
  }
}

TEST(LayeringTest, NoFolderIsADrawer) {
  for (const SourceFile& file : ReadTree()) {
    for (const fs::path& part : fs::path(file.path).parent_path()) {
      EXPECT_FALSE(part == "util" || part == "utils" || part == "common" || part == "helpers" ||
                   part == "misc")
          << file.path << " lies in a folder that names no concept";
    }
  }
}

// The folders in the first column of README's folder table.
std::set<std::string> FoldersInReadme() {
  static const std::regex kRow(R"(^\| `([a-z/]+)/` \|)", std::regex::multiline);
  const std::string text = ReadFile(Root() / "README.md");
  std::set<std::string> folders;
  for (std::sregex_iterator it(text.begin(), text.end(), kRow), end; it != end; ++it)
    folders.insert((*it)[1]);
  return folders;
}

TEST(LayeringTest, TheFolderTableInReadmeNamesTheFoldersThatExist) {
  std::set<std::string> rows_with_code;
  for (const SourceFile& file : ReadTree()) {
    const std::string folder = FolderOf(file.path);
    rows_with_code.insert(folder.empty() ? file.path.substr(0, file.path.find('/')) : folder);
  }
  EXPECT_EQ(FoldersInReadme(), rows_with_code);
}

std::vector<std::string> Check(const std::string& path, const std::string& text) {
  return CheckFile({.path = path, .includes = ParseIncludes(text)});
}

TEST(LayeringCheckTest, AcceptsAnIncludeOfALowerFolder) {
  EXPECT_THAT(Check("wal/segment_writer.cc", "#include \"engine/io/file.h\"\n#include <vector>\n"),
              IsEmpty());
}

TEST(LayeringCheckTest, RefusesASibling) {
  EXPECT_THAT(Check("sstable/reader.cc", "#include \"memtable/memtable.h\"\n"),
              ElementsAre(HasSubstr("sstable/ does not see memtable/")));
}

TEST(LayeringCheckTest, RefusesAnUpwardArrow) {
  EXPECT_THAT(Check("engine/base/status.h", "# include \"engine/io/file.h\"\n"),
              ElementsAre(HasSubstr("engine/base/ does not see engine/io/")));
}

TEST(LayeringCheckTest, RefusesTheFilesOfTheStoreInTheCommandLine) {
  EXPECT_THAT(Check("api/cli/inspect_command.cc", "#include \"sstable/footer_format.h\"\n"),
              ElementsAre(HasSubstr("api/cli/ does not see sstable/")));
}

TEST(LayeringCheckTest, LetsTheMainFileAloneReachTheLab) {
  EXPECT_THAT(Check("api/cli/main/partita_main.cc", "#include \"bench/lab/lab_command.h\"\n"), IsEmpty());
  EXPECT_THAT(Check("api/cli/command_line.cc", "#include \"bench/lab/lab_command.h\"\n"),
              ElementsAre(HasSubstr("no path from the root")));
}

TEST(LayeringCheckTest, RefusesAPackageOutsideItsFiles) {
  EXPECT_THAT(Check("wal/frame.cc", "#include <xxhash.h>\n"), ElementsAre(HasSubstr("<xxhash.h>")));
  EXPECT_THAT(Check("engine/shard.cc", "#include <liburing.h>\n"), ElementsAre(HasSubstr("<liburing.h>")));
  EXPECT_THAT(Check("sstable/table.cc", "#include <fcntl.h>\n"), ElementsAre(HasSubstr("<fcntl.h>")));
  EXPECT_THAT(Check("engine/io/ring.cc", "#include <liburing.h>\n"), IsEmpty());
}

TEST(LayeringCheckTest, RefusesAnIncludeThatIsNotAPathFromTheRoot) {
  EXPECT_THAT(Check("wal/frame.cc", "#include \"frame.h\"\n"),
              ElementsAre(HasSubstr("no path from the root")));
}

}  // namespace
}  // namespace partita
