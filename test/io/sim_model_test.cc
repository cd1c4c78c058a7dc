// A seeded workload on the simulated disk against an independent model of what may be there after
// a crash: for each sector the contents it had since its last flush, for each file its sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/io/sim_runtime.h"
#include "test/support/bytes.h"

namespace partita {
namespace {

constexpr size_t kSectors = 64;  // Of each file.
constexpr std::string_view kNames = "abc";

// What one file's sectors may hold after a crash. The letters of a sector: the first is the last one known
// flushed, the others came later and may or may not have reached the device.
struct FileModel {
  std::vector<std::string> sectors = std::vector<std::string>(kSectors, "0");
};

struct Workload {
  SimRuntime& runtime;
  std::map<char, FileModel> model;
  uint64_t flushes = 0;
};

// A worker owns one file, so that its operations are in order; workers run side by side.
Task<void> Work(Workload& work, char name, uint64_t seed) {
  SimRandom random(seed);
  FileModel& model = work.model[name];
  const std::string path(1, name);
  auto opened = co_await work.runtime.files().Open(path, OpenMode::kReadWrite, FileIo::kBuffered);
  if (!opened.ok()) co_return;
  File& file = **opened;
  for (int i = 0; i < 60; ++i) {
    if (random.Below(5) == 0) {
      const Status flushed = co_await file.Flush();
      if (work.runtime.crashed()) co_return;
      EXPECT_TRUE(flushed.ok());
      ++work.flushes;
      for (std::string& letters : model.sectors) letters = letters.substr(letters.size() - 1);
      continue;
    }
    const size_t first = random.Below(kSectors);
    const size_t count = 1 + random.Below(std::min<size_t>(kSectors - first, 20));
    const char letter = static_cast<char>('A' + i);
    // Noted before it is known to have happened: from here on a crash may leave it.
    for (size_t s = first; s < first + count; ++s) model.sectors[s].push_back(letter);
    const std::string bytes(count * kSimSectorSize, letter);
    const Status written = co_await file.WriteAt(
        first * kSimSectorSize, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    if (work.runtime.crashed()) co_return;
    EXPECT_TRUE(written.ok());
  }
}

char LetterOf(const std::string& content, size_t sector) {
  const std::string_view bytes = std::string_view(content).substr(sector * kSimSectorSize, kSimSectorSize);
  const bool whole = bytes.find_first_not_of(bytes[0]) == std::string_view::npos;
  return whole ? bytes[0] : '?';
}

TEST(SimModelTest, AfterAnyCrashEachSectorHoldsSomethingItMayHold) {
  uint64_t older_seen = 0;
  uint64_t newest_seen = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    SimDisk disk(seed);
    for (const char name : kNames) {
      disk.WriteFile(std::string(1, name), std::string(kSectors * kSimSectorSize, '0'));
    }
    std::map<char, FileModel> model;
    {
      SimRuntime runtime({.seed = seed}, disk);
      Workload work{runtime, {}};
      if (seed % 3 != 0) runtime.AddFault({.effect = SimEffect::kShort, .probability = 0.2});
      runtime.CrashAtOperation(1 + SimRandom(seed).Below(200),
                               seed % 2 == 0 ? SimCrashMoment::kBefore : SimCrashMoment::kAfter);
      for (const char name : kNames) {
        runtime.Spawn(Work(work, name, seed * 31 + static_cast<uint64_t>(name)));
      }
      runtime.RunUntilIdle();
      ASSERT_EQ(runtime.spawned_running(), 0u);
      model = std::move(work.model);
    }
    if (seed % 5 == 0) disk.CrashProcess();
    disk.CrashPower();
    for (const auto& [name, file] : model) {
      const std::string content = disk.ReadFile(std::string(1, name)).value();
      ASSERT_EQ(content.size(), kSectors * kSimSectorSize);
      for (size_t s = 0; s < kSectors; ++s) {
        const char letter = LetterOf(content, s);
        const std::string& allowed = file.sectors[s];
        // A write in flight may end inside a sector when a short transfer was cut there.
        const bool torn = letter == '?';
        ASSERT_TRUE(torn || allowed.find(letter) != std::string::npos)
            << "seed " << seed << ", file " << name << ", sector " << s << ": " << letter << " of "
            << allowed;
        if (torn) {
          ASSERT_GT(allowed.size(), 1u) << "seed " << seed << ", file " << name << ", sector " << s;
        }
        if (allowed.size() > 1) ++(letter == allowed.back() ? newest_seen : older_seen);
      }
    }
  }
  EXPECT_GT(older_seen, 10'000u);
  EXPECT_GT(newest_seen, 10'000u);
}

TEST(SimModelTest, AfterAProcessDiesEachSectorHoldsItsNewestContent) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimDisk disk(seed);
    for (const char name : kNames) {
      disk.WriteFile(std::string(1, name), std::string(kSectors * kSimSectorSize, '0'));
    }
    std::map<char, FileModel> model;
    {
      SimRuntime runtime({.seed = seed}, disk);
      Workload work{runtime, {}};
      for (const char name : kNames) {
        runtime.Spawn(Work(work, name, seed * 31 + static_cast<uint64_t>(name)));
      }
      runtime.RunUntilIdle();
      EXPECT_GT(work.flushes, 0u);
      model = std::move(work.model);
    }
    disk.CrashProcess();
    for (const auto& [name, file] : model) {
      const std::string content = disk.ReadFile(std::string(1, name)).value();
      for (size_t s = 0; s < kSectors; ++s) {
        ASSERT_EQ(LetterOf(content, s), file.sectors[s].back()) << "seed " << seed << ", sector " << s;
      }
    }
  }
}

// Name operations against a model: a prefix-closed set of changes, so each name either is what it
// was at the last directory flush, or what some later change made of it.
TEST(SimModelTest, AfterAPowerCutEachNameIsOneItMayBe) {
  uint64_t older_seen = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SimRandom random(seed);
    SimDisk disk(seed);
    // For each name the contents it may show; "" is absent.
    std::map<std::string, std::vector<std::string>> may;
    for (const char* name : {"a", "b", "c", "d"}) may[name] = {""};
    {
      SimRuntime runtime({.seed = seed}, disk);
      FileSystem& files = runtime.files();
      for (int i = 0; i < 30; ++i) {
        const std::string from(1, static_cast<char>('a' + random.Below(4)));
        const std::string to(1, static_cast<char>('a' + random.Below(4)));
        const std::string from_now = may[from].back();
        switch (random.Below(6)) {
          case 0:
            if (from_now.empty()) break;
            ASSERT_TRUE(RunBlocking(files.Remove(from)).ok());
            may[from].push_back("");
            break;
          case 1:
          case 2:
            if (from_now.empty() || from == to) break;
            ASSERT_TRUE(RunBlocking(files.Rename(from, to)).ok());
            may[to].push_back(from_now);
            may[from].push_back("");
            break;
          case 3:
            ASSERT_TRUE(RunBlocking(files.FlushDirectory("")).ok());
            for (auto& [name, contents] : may) contents = {contents.back()};
            break;
          default: {
            if (!from_now.empty()) break;
            auto file = RunBlocking(files.Open(from, OpenMode::kCreate, FileIo::kBuffered));
            ASSERT_TRUE(file.ok());
            const std::string text = "file " + std::to_string(i);
            ASSERT_TRUE(RunBlocking((*file)->WriteAndFlush(0, AsBytes(text))).ok());
            may[from].push_back(text);
          }
        }
      }
    }
    disk.CrashPower();
    std::set<std::string> texts;
    for (const auto& [name, contents] : may) {
      const auto content = disk.ReadFile(name);
      const std::string seen = content.ok() ? *content : "";
      ASSERT_NE(std::find(contents.begin(), contents.end(), seen), contents.end())
          << "seed " << seed << ": '" << name << "' holds '" << seen << "'";
      if (!seen.empty()) {
        ASSERT_TRUE(texts.insert(seen).second) << "seed " << seed << ": under two names";
      }
      if (seen != contents.back()) ++older_seen;
    }
  }
  EXPECT_GT(older_seen, 1000u);
}

}  // namespace
}  // namespace partita
