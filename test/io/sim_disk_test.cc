#include "engine/io/sim_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string>

#include "engine/io/sim_runtime.h"
#include "test/support/bytes.h"

namespace partita {
namespace {

constexpr uint64_t kSeeds = 2000;

// A process whose calls are done at once (blocking mode); every answer must be ok.
class Process {
 public:
  explicit Process(SimDisk& disk) : runtime_({.seed = 1}, disk) {}

  std::unique_ptr<File> Open(std::string_view path, FileIo io = FileIo::kBuffered) {
    auto file = RunBlocking(runtime_.files().Open(path, OpenMode::kCreateOrOpen, io));
    EXPECT_TRUE(file.ok()) << file.status().ToString();
    return std::move(file).value();
  }
  void Write(File& file, uint64_t offset, std::string_view text) {
    Expect(RunBlocking(file.WriteAt(offset, AsBytes(text))));
  }
  void Flush(File& file) { Expect(RunBlocking(file.Flush())); }
  void Truncate(File& file, uint64_t size) { Expect(RunBlocking(file.Truncate(size))); }
  void FlushDirectory(std::string_view path = "") { Expect(RunBlocking(files().FlushDirectory(path))); }
  void Rename(std::string_view from, std::string_view to) { Expect(RunBlocking(files().Rename(from, to))); }
  void Remove(std::string_view path) { Expect(RunBlocking(files().Remove(path))); }
  void CreateDirectory(std::string_view path) { Expect(RunBlocking(files().CreateDirectory(path))); }
  FileSystem& files() { return runtime_.files(); }
  SimRuntime& runtime() { return runtime_; }

 private:
  void Expect(const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); }
  SimRuntime runtime_;
};

// Runs `before` in a process on a fresh disk for each seed, cuts the power, and counts what
// `observe` says.
std::map<std::string, uint64_t> AfterPowerCuts(const std::function<void(SimDisk&)>& prepare,
                                               const std::function<void(Process&)>& work,
                                               const std::function<std::string(SimDisk&)>& observe) {
  std::map<std::string, uint64_t> seen;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    prepare(disk);
    {
      Process process(disk);
      work(process);
    }
    disk.CrashPower();
    ++seen[observe(disk)];
  }
  return seen;
}

std::string Keys(const std::map<std::string, uint64_t>& seen) {
  std::string text;
  for (const auto& [key, count] : seen)
    text.append(key).append(": ").append(std::to_string(count)).append("\n");
  return text;
}

// One letter for each sector: its byte if all of it is the same, '0' for zeros, '?' else.
std::string SectorLetters(const std::string& content) {
  std::string letters;
  for (size_t begin = 0; begin < content.size(); begin += kSimSectorSize) {
    const std::string sector = content.substr(begin, kSimSectorSize);
    const bool same = sector.find_first_not_of(sector[0]) == std::string::npos;
    letters.push_back(!same ? '?' : sector[0] == 0 ? '0' : sector[0]);
  }
  return letters;
}

std::string LettersOf(SimDisk& disk, std::string_view path) {
  const auto content = disk.ReadFile(path);
  return content.ok() ? SectorLetters(*content) : "absent";
}

TEST(SimDiskTest, AnUnflushedWriteIsSeenWholeAbsentAndTornInEveryWay) {
  for (const FileIo io : {FileIo::kBuffered, FileIo::kDirect}) {
    alignas(kPageSize) char page[kPageSize];
    std::fill_n(page, kPageSize, 'n');
    const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(kPageSize, 'o')); },
                                     [&](Process& process) {
                                       const auto file = process.Open("f", io);
                                       process.Write(*file, 0, {page, kPageSize});
                                     },
                                     [](SimDisk& disk) { return LettersOf(disk, "f"); });
    EXPECT_GT(seen.at("nnnnnnnn"), kSeeds / 10) << Keys(seen);
    EXPECT_GT(seen.at("oooooooo"), kSeeds / 10) << Keys(seen);
    EXPECT_GT(seen.size(), 100u) << Keys(seen);  // Of 256 ways to tear eight sectors.
    for (const auto& [letters, count] : seen) EXPECT_EQ(letters.find_first_not_of("no"), std::string::npos);
  }
}

TEST(SimDiskTest, AnUnflushedFourSectorWriteIsSeenInAllSixteenWays) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(2048, 'o')); },
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.Write(*file, 0, std::string(2048, 'n'));
                                   },
                                   [](SimDisk& disk) { return LettersOf(disk, "f"); });
  EXPECT_EQ(seen.size(), 16u) << Keys(seen);
}

TEST(SimDiskTest, ALargeWriteIsAlsoTornIntoWholePages) {
  bool torn_in_pages = false;
  const auto seen =
      AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(4 * kPageSize, 'o')); },
                     [](Process& process) {
                       const auto file = process.Open("f");
                       process.Write(*file, 0, std::string(4 * kPageSize, 'n'));
                     },
                     [](SimDisk& disk) { return LettersOf(disk, "f"); });
  for (const auto& [letters, count] : seen) {
    torn_in_pages = torn_in_pages || letters == "nnnnnnnnoooooooonnnnnnnnoooooooo";
  }
  EXPECT_TRUE(torn_in_pages);
  EXPECT_GT(seen.at(std::string(32, 'n')), 0u);
  EXPECT_GT(seen.at(std::string(32, 'o')), 0u);
}

TEST(SimDiskTest, FlushedBytesAndSizesAlwaysSurvive) {
  const auto seen = AfterPowerCuts([](SimDisk&) {},
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.FlushDirectory();
                                     process.Write(*file, 0, std::string(20'000, 'a'));
                                     process.Write(*file, 1024, std::string(512, 'b'));
                                     process.Flush(*file);
                                   },
                                   [](SimDisk& disk) { return LettersOf(disk, "f"); });
  std::string expected(40, 'a');
  expected[2] = 'b';
  ASSERT_EQ(seen.size(), 1u) << Keys(seen);
  EXPECT_EQ(seen.begin()->first, expected);
}

TEST(SimDiskTest, AnOverwrittenSectorShowsAnyOfItsContentsSinceTheFlush) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(512, 'a')); },
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.Write(*file, 0, std::string(512, 'b'));
                                     process.Flush(*file);
                                     process.Write(*file, 0, std::string(512, 'c'));
                                     process.Write(*file, 0, std::string(512, 'd'));
                                     process.Write(*file, 0, std::string(512, 'e'));
                                   },
                                   [](SimDisk& disk) { return LettersOf(disk, "f"); });
  std::set<std::string> states;
  for (const auto& [state, count] : seen) states.insert(state);
  EXPECT_EQ(states, (std::set<std::string>{"b", "c", "d", "e"})) << Keys(seen);
}

TEST(SimDiskTest, WritesSurviveInAnyOrder) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(8192, 'o')); },
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.Write(*file, 0, std::string(512, '1'));
                                     process.Write(*file, 4096, std::string(512, '2'));
                                   },
                                   [](SimDisk& disk) {
                                     const std::string letters = LettersOf(disk, "f");
                                     return std::string{letters[0], letters[8]};
                                   });
  for (const char* state : {"oo", "1o", "o2", "12"}) EXPECT_TRUE(seen.contains(state)) << state;
}

TEST(SimDiskTest, AGrownFileKeepsItsOldSizeOrShowsDataOrZeroOrStaleBytes) {
  const auto seen = AfterPowerCuts(
      [](SimDisk& disk) {
        disk.WriteFile("other", std::string(64 * 1024, 's'));
        disk.WriteFile("f", std::string(512, 'a'));
      },
      [](Process& process) {
        const auto file = process.Open("f");
        process.Write(*file, 512, std::string(512, 'b'));
      },
      [](SimDisk& disk) { return LettersOf(disk, "f"); });
  for (const char* state : {"a", "ab", "a0", "as"})
    EXPECT_TRUE(seen.contains(state)) << state << "\n" << Keys(seen);
}

TEST(SimDiskTest, BytesBeyondASizeThatDidNotSurviveNeverComeBack) {
  uint64_t cut = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("f", std::string(512, 'a'));
    {
      Process process(disk);
      const auto file = process.Open("f");
      process.Write(*file, 512, std::string(8192, 'b'));
    }
    disk.CrashPower();
    if (disk.ReadFile("f").value().size() > 512) continue;
    ++cut;
    EXPECT_EQ(disk.used_bytes(), kPageSize) << "seed " << seed;
    disk.TruncateFile("f", 8192);
    EXPECT_EQ(LettersOf(disk, "f"), "a" + std::string(15, '0')) << "seed " << seed;
  }
  EXPECT_GT(cut, 100u);
}

TEST(SimDiskTest, AFlushCoversOnlyTheFileItIsFor) {
  const auto seen = AfterPowerCuts(
      [](SimDisk& disk) {
        disk.WriteFile("f", std::string(512, 'o'));
        disk.WriteFile("g", std::string(512, 'o'));
      },
      [](Process& process) {
        const auto f = process.Open("f");
        const auto g = process.Open("g");
        process.Write(*f, 0, std::string(512, 'n'));
        process.Write(*g, 0, std::string(512, 'n'));
        process.Flush(*g);
      },
      [](SimDisk& disk) { return LettersOf(disk, "f") + LettersOf(disk, "g"); });
  EXPECT_EQ(seen.size(), 2u) << Keys(seen);
  EXPECT_TRUE(seen.contains("on") && seen.contains("nn")) << Keys(seen);
}

TEST(SimDiskTest, ATruncationSurvivesOrTheOldBytesDo) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(8192, 'o')); },
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.Truncate(*file, 1024);
                                   },
                                   [](SimDisk& disk) { return LettersOf(disk, "f"); });
  EXPECT_EQ(seen.size(), 2u) << Keys(seen);
  EXPECT_TRUE(seen.contains("oo") && seen.contains(std::string(16, 'o'))) << Keys(seen);
}

TEST(SimDiskTest, ATruncatedAndFlushedFileReadsZeroWhereItGrowsAgain) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", std::string(8192, 'o')); },
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.Truncate(*file, 700);
                                     process.Truncate(*file, 2048);
                                     process.Flush(*file);
                                   },
                                   [](SimDisk& disk) { return LettersOf(disk, "f"); });
  ASSERT_EQ(seen.size(), 1u) << Keys(seen);
  EXPECT_EQ(seen.begin()->first, "o?00");
}

TEST(SimDiskTest, ACreatedNameIsGoneOrThereWithoutADirectoryFlush) {
  const auto work = [](Process& process) {
    const auto file = process.Open("f");
    process.Write(*file, 0, std::string(512, 'a'));
    process.Flush(*file);  // Flushing the file does not keep its name.
  };
  const auto seen = AfterPowerCuts([](SimDisk&) {}, work, [](SimDisk& disk) { return LettersOf(disk, "f"); });
  EXPECT_EQ(seen.size(), 2u) << Keys(seen);
  EXPECT_TRUE(seen.contains("absent") && seen.contains("a")) << Keys(seen);
}

TEST(SimDiskTest, ANameThatSurvivedWithoutItsDataHasNoneOrZeros) {
  const auto seen = AfterPowerCuts([](SimDisk&) {},
                                   [](Process& process) {
                                     const auto file = process.Open("f");
                                     process.FlushDirectory();
                                     process.Write(*file, 0, std::string(512, 'a'));
                                   },
                                   [](SimDisk& disk) { return LettersOf(disk, "f"); });
  for (const char* state : {"", "0", "a"}) EXPECT_TRUE(seen.contains(state)) << state << "\n" << Keys(seen);
  EXPECT_FALSE(seen.contains("absent"));
}

TEST(SimDiskTest, ARenameIsSeenBothWaysUntilTheDirectoryIsFlushed) {
  for (const bool flushed : {false, true}) {
    const auto seen = AfterPowerCuts(
        [](SimDisk& disk) {
          disk.WriteFile("d/current", "old");
          disk.WriteFile("d/next", "new");
        },
        [flushed](Process& process) {
          process.Rename("d/next", "d/current");
          if (flushed) process.FlushDirectory("d");
        },
        [](SimDisk& disk) {
          const auto next = disk.ReadFile("d/next");
          return disk.ReadFile("d/current").value() + (next.ok() ? " " + *next : "");
        });
    if (flushed) {
      EXPECT_EQ(seen.size(), 1u) << Keys(seen);
      EXPECT_TRUE(seen.contains("new")) << Keys(seen);
    } else {
      EXPECT_EQ(seen.size(), 2u) << Keys(seen);  // Atomic: nothing in between.
      EXPECT_TRUE(seen.contains("new") && seen.contains("old new")) << Keys(seen);
    }
  }
}

TEST(SimDiskTest, ARenameNeedsTheFlushOfBothDirectories) {
  const auto work = [](int flushes) {
    return [flushes](Process& process) {
      process.Rename("a/f", "b/f");
      if ((flushes & 1) != 0) process.FlushDirectory("a");
      if ((flushes & 2) != 0) process.FlushDirectory("b");
    };
  };
  for (int flushes = 0; flushes < 4; ++flushes) {
    const auto seen = AfterPowerCuts(
        [](SimDisk& disk) {
          disk.WriteFile("a/f", "x");
          disk.WriteFile("b/g", "y");
        },
        work(flushes),
        [](SimDisk& disk) {
          return std::string(disk.FileExists("a/f") ? "a" : "") + (disk.FileExists("b/f") ? "b" : "");
        });
    EXPECT_EQ(seen.size(), flushes == 3 ? 1u : 2u) << flushes << "\n" << Keys(seen);
    EXPECT_TRUE(seen.contains("b"));
  }
}

TEST(SimDiskTest, ARenameOfANewFileNeverSurvivesWithoutTheFile) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("current", "old"); },
                                   [](Process& process) {
                                     const auto file = process.Open("next");
                                     process.Write(*file, 0, "new");
                                     process.Flush(*file);
                                     process.Rename("next", "current");
                                   },
                                   [](SimDisk& disk) {
                                     const auto next = disk.ReadFile("next");
                                     return disk.ReadFile("current").value() + (next.ok() ? " " + *next : "");
                                   });
  EXPECT_EQ(seen.size(), 3u) << Keys(seen);
  for (const char* state : {"old", "old new", "new"}) EXPECT_TRUE(seen.contains(state)) << Keys(seen);
}

TEST(SimDiskTest, ARenameOfAnUnflushedFileMayLoseItsBytes) {
  const auto seen = AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("current", "old"); },
                                   [](Process& process) {
                                     const auto file = process.Open("next");
                                     process.Write(*file, 0, std::string(512, 'n'));
                                     process.Rename("next", "current");
                                     process.FlushDirectory();
                                   },
                                   [](SimDisk& disk) { return disk.ReadFile("current").value(); });
  EXPECT_TRUE(seen.contains("")) << "the classic: an empty file after a rename without a flush";
  EXPECT_TRUE(seen.contains(std::string(512, 'n')));
  EXPECT_FALSE(seen.contains("old"));
}

TEST(SimDiskTest, ARemovalIsSeenBothWaysUntilTheDirectoryIsFlushed) {
  for (const bool flushed : {false, true}) {
    const auto seen =
        AfterPowerCuts([](SimDisk& disk) { disk.WriteFile("f", "old"); },
                       [flushed](Process& process) {
                         process.Remove("f");
                         if (flushed) process.FlushDirectory();
                       },
                       [](SimDisk& disk) { return disk.ReadFile("f").ok() ? "there" : "gone"; });
    EXPECT_TRUE(seen.contains("gone"));
    EXPECT_EQ(seen.contains("there"), !flushed) << Keys(seen);
  }
}

TEST(SimDiskTest, UnrelatedNamesSurviveInAnyOrder) {
  const auto seen = AfterPowerCuts([](SimDisk&) {},
                                   [](Process& process) {
                                     process.Open("a");
                                     process.Open("b");
                                     process.Open("c");
                                   },
                                   [](SimDisk& disk) {
                                     std::string names;
                                     for (const std::string& name : disk.ListFiles()) names += name;
                                     return names;
                                   });
  EXPECT_EQ(seen.size(), 8u) << Keys(seen);
}

TEST(SimDiskTest, ADirectoryWhoseNameIsLostTakesItsFilesAlong) {
  const auto seen = AfterPowerCuts([](SimDisk&) {},
                                   [](Process& process) {
                                     process.CreateDirectory("d");
                                     const auto file = process.Open("d/f");
                                     process.Flush(*file);
                                     process.FlushDirectory("d");
                                   },
                                   [](SimDisk& disk) { return disk.FileExists("d/f") ? "there" : "gone"; });
  EXPECT_EQ(seen.size(), 2u) << Keys(seen);
  const auto kept = AfterPowerCuts([](SimDisk&) {},
                                   [](Process& process) {
                                     process.CreateDirectory("d");
                                     process.FlushDirectory();
                                     const auto file = process.Open("d/f");
                                     process.FlushDirectory("d");
                                   },
                                   [](SimDisk& disk) { return disk.FileExists("d/f") ? "there" : "gone"; });
  EXPECT_EQ(kept.size(), 1u) << Keys(kept);
  EXPECT_TRUE(kept.contains("there"));
}

TEST(SimDiskTest, ADeadProcessLosesNothingAndFlushesNothing) {
  uint64_t lost_later = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SimDisk disk(seed);
    {
      Process process(disk);
      const auto file = process.Open("f");
      process.Write(*file, 0, std::string(3000, 'a'));
    }
    disk.CrashProcess();
    EXPECT_EQ(disk.ReadFile("f").value(), std::string(3000, 'a'));
    EXPECT_GT(disk.UnflushedSectors(), 0u);  // F29: read back is not yet durable.
    EXPECT_EQ(disk.UnflushedNames(), 1u);
    disk.CrashPower();
    const auto content = disk.ReadFile("f");
    if (!content.ok() || *content != std::string(3000, 'a')) ++lost_later;
    EXPECT_EQ(disk.UnflushedSectors(), 0u);
    EXPECT_EQ(disk.UnflushedNames(), 0u);
  }
  EXPECT_GT(lost_later, 100u);
}

TEST(SimDiskTest, WhatANextProcessFlushesOfADeadOnesIsDurable) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SimDisk disk(seed);
    {
      Process process(disk);
      const auto file = process.Open("f");
      process.Write(*file, 0, std::string(3000, 'a'));
    }
    disk.CrashProcess();
    {
      Process process(disk);
      const auto file = process.Open("f");
      process.Flush(*file);
      process.FlushDirectory();
    }
    disk.CrashPower();
    EXPECT_EQ(disk.ReadFile("f").value(), std::string(3000, 'a')) << "seed " << seed;
  }
}

TEST(SimDiskTest, AMappingsBytesOutliveTheProcessButNotThePower) {
  std::set<std::string> after_power;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("tail", std::string(8192, 'o'));
    {
      Process process(disk);
      auto mapping = process.files().Map("tail", 8192);
      ASSERT_TRUE(mapping.ok());
      std::fill_n((*mapping)->bytes().data() + 512, 512, 'n');
      EXPECT_TRUE((*mapping)->Stored(512, 512).ok());
      std::fill_n((*mapping)->bytes().data() + 4096, 512, 'u');  // Never announced.
      EXPECT_EQ(LettersOf(disk, "tail"), "on" + std::string(14, 'o'));
      process.runtime().CrashNow();
      std::fill_n((*mapping)->bytes().data(), 512, 'x');  // After death: by nobody.
    }
    disk.CrashProcess();
    EXPECT_EQ(LettersOf(disk, "tail"), "onoooooouooooooo");
    disk.CrashPower();
    const std::string letters = LettersOf(disk, "tail");
    after_power.insert({letters[1], letters[8]});
  }
  EXPECT_EQ(after_power, (std::set<std::string>{"oo", "no", "ou", "nu"}));
}

TEST(SimDiskTest, AMappingShowsWhatIsWrittenToTheFile) {
  SimDisk disk(1);
  disk.WriteFile("tail", std::string(8192, 'o'));
  Process process(disk);
  auto mapping = process.files().Map("tail", 8192);
  ASSERT_TRUE(mapping.ok());
  const auto file = process.Open("tail");
  process.Write(*file, 5000, "hello");
  EXPECT_EQ(std::memcmp((*mapping)->bytes().data() + 5000, "hello", 5), 0);
  EXPECT_EQ(process.files().Map("tail", 8193).code(), Code::kIoError);
  EXPECT_EQ(process.files().Map("none", 1).code(), Code::kNotFound);
}

TEST(SimDiskTest, AMappedTailStoredManyTimesKeepsItsNewestStateReachable) {
  std::set<char> seen;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SimDisk disk(seed);
    disk.WriteFile("tail", std::string(4096, 'o'));
    {
      Process process(disk);
      auto mapping = process.files().Map("tail", 4096);
      ASSERT_TRUE(mapping.ok());
      for (char letter = 'a'; letter <= 'z'; ++letter) {
        std::fill_n((*mapping)->bytes().data(), 512, letter);
        EXPECT_TRUE((*mapping)->Stored(0, 512).ok());
      }
    }
    disk.CrashPower();
    seen.insert(LettersOf(disk, "tail")[0]);
  }
  EXPECT_TRUE(seen.contains('o'));
  EXPECT_TRUE(seen.contains('z'));
  EXPECT_GT(seen.size(), 5u);  // Some in between, though not all are remembered.
}

TEST(SimDiskTest, ABitFlipsInTheStoredBytesForGood) {
  SimDisk disk(1);
  disk.WriteFile("f", std::string(5000, 'a'));
  disk.FlipBit("f", 4500, 1);
  EXPECT_EQ(disk.ReadFile("f").value()[4500], 'a' ^ 2);
  disk.CrashPower();
  EXPECT_EQ(disk.ReadFile("f").value()[4500], 'a' ^ 2);
}

TEST(SimDiskTest, SpaceCountsWrittenPagesZerosIncludedAndComesBackOnRemoval) {
  SimDisk disk(1);
  disk.set_capacity(100 * kPageSize);
  Process process(disk);
  {
    const auto file = process.Open("f");
    process.Write(*file, 0, std::string(10 * kPageSize, '\0'));
    EXPECT_EQ(disk.used_bytes(), 10 * kPageSize);
    process.Truncate(*file, 50 * kPageSize);  // A hole.
    EXPECT_EQ(disk.used_bytes(), 10 * kPageSize);
    process.Write(*file, 0, std::string(10 * kPageSize, 'x'));
    EXPECT_EQ(disk.used_bytes(), 10 * kPageSize);
    EXPECT_EQ(RunBlocking(process.files().FreeBytes()).value(), 90 * kPageSize);
    process.FlushDirectory();
    process.Flush(*file);
    process.Remove("f");
    EXPECT_EQ(disk.used_bytes(), 10 * kPageSize);  // Still open.
  }
  EXPECT_EQ(disk.used_bytes(), 0u);
  disk.CrashPower();  // May bring the name back, and with it the space.
  EXPECT_EQ(disk.used_bytes(), disk.FileExists("f") ? 10 * kPageSize : 0u);
}

TEST(SimDiskTest, AFullDiskTakesWhatFitsAndRefusesTheRest) {
  SimDisk disk(1);
  disk.set_capacity(10 * kPageSize);
  Process process(disk);
  const auto file = process.Open("f");
  const Status status = RunBlocking(file->WriteAt(100, AsBytes(std::string(20 * kPageSize, 'x'))));
  EXPECT_EQ(status.code(), Code::kNoSpace) << status.ToString();
  EXPECT_EQ(disk.ReadFile("f").value().size(), 10 * kPageSize);
  process.Write(*file, 0, std::string(10 * kPageSize, 'y'));  // Overwriting needs no space.
  disk.set_capacity(11 * kPageSize);
  process.Write(*file, 10 * kPageSize, "z");
}

TEST(SimDiskTest, SpaceSetAsideIsTakenUntilItIsCutOffAndLostWithTheSize) {
  SimDisk disk(1);
  disk.set_capacity(10 * kPageSize);
  {
    Process process(disk);
    const auto file = process.Open("f");
    EXPECT_EQ(RunBlocking(file->Allocate(11 * kPageSize)).code(), Code::kNoSpace);
    EXPECT_EQ(disk.used_bytes(), 0u);
    ASSERT_TRUE(RunBlocking(file->Allocate(8 * kPageSize)).ok());
    EXPECT_EQ(disk.used_bytes(), 8 * kPageSize);
    EXPECT_EQ(disk.ReadFile("f").value(), std::string(8 * kPageSize, '\0'));
    process.Write(*file, 0, std::string(8 * kPageSize, 'x'));  // Takes no more.
    EXPECT_EQ(disk.used_bytes(), 8 * kPageSize);
    ASSERT_TRUE(RunBlocking(file->Truncate(kPageSize)).ok());
    EXPECT_EQ(disk.used_bytes(), kPageSize);
    ASSERT_TRUE(RunBlocking(file->Truncate(0)).ok());
    ASSERT_TRUE(RunBlocking(file->Flush()).ok());
    ASSERT_TRUE(RunBlocking(file->Allocate(8 * kPageSize)).ok());  // And not flushed.
  }
  disk.CrashPower();
  if (disk.FileExists("f")) EXPECT_EQ(disk.used_bytes(), disk.ReadFile("f").value().size());
}

TEST(SimDiskTest, AClonesFutureIsItsOwn) {
  SimDisk disk(7);
  disk.WriteFile("f", std::string(2048, 'o'));
  {
    Process process(disk);
    const auto file = process.Open("f");
    process.Write(*file, 0, std::string(2048, 'n'));
    process.Rename("f", "g");
  }
  const auto same = disk.Clone();
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) {
    const auto clone = disk.Clone();
    disk.Reseed(static_cast<uint64_t>(i));
    const auto other = disk.Clone();
    other->CrashPower();
    seen.insert(LettersOf(*other, "f") + "/" + LettersOf(*other, "g"));
  }
  EXPECT_GT(seen.size(), 10u);
  EXPECT_EQ(LettersOf(disk, "g"), "nnnn");
  EXPECT_EQ(same->UnflushedSectors(), disk.UnflushedSectors());
  EXPECT_EQ(same->UnflushedNames(), 1u);
}

TEST(SimDiskTest, TheLogNamesTheLatestOperations) {
  SimDisk disk(1);
  Process process(disk);
  const auto file = process.Open("file");
  process.Write(*file, 512, std::string(100, 'x'));
  EXPECT_EQ(disk.operation_count(SimOp::kWrite), 1u);
  const auto log = disk.operations();
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[1].op, SimOp::kWrite);
  EXPECT_EQ(log[1].path, "file");
  EXPECT_EQ(log[1].offset, 512u);
  EXPECT_EQ(log[1].size, 100u);
  EXPECT_NE(disk.DescribeOperations().find("write 'file' at 512+100"), std::string::npos);
  for (int i = 0; i < 1000; ++i) process.Write(*file, 0, "y");
  EXPECT_EQ(disk.operation_count(SimOp::kWrite), 1001u);
  EXPECT_EQ(disk.operations().size(), 512u);
  EXPECT_EQ(disk.operations().back().number, 1002u);
}

}  // namespace
}  // namespace partita
