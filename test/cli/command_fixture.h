#pragma once
#include <gmock/gmock-matchers.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "api/cli/command_line.h"
#include "api/partita.h"
#include "engine/io/device_probe.h"

namespace partita {

// Asks to stop when it was asked so many times, by a command that catches interrupts.
class CountdownInterrupts final : public InterruptSource {
 public:
  explicit CountdownInterrupts(uint64_t asked_max = UINT64_MAX) : left_(asked_max) {}
  void Arm() override { armed_ = true; }
  bool Requested() override { return armed_ && (left_ == 0 || --left_ == 0); }

 private:
  uint64_t left_;
  bool armed_ = false;
};

// What a command printed and ended with.
struct CommandOutcome {
  ExitCode code = ExitCode::kOk;
  std::string out, err;
};

// Runs commands in this process, on a directory of the real disk that is removed at the end. Stores are as
// small as they can be, and use plain system calls where this machine forbids io_uring.
class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "partita-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    store_ = directory_ + "/store";
    setenv("PARTITA_ALLOW_VOLATILE_STORAGE", "1", /*overwrite=*/1);  // Wherever the tests run.
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  Options SmallOptions() const {
    Options options;
    options.directory = store_;
    options.allow_volatile_storage = true;  // Wherever the tests run.
    options.create_if_missing = true;
    options.memory_bytes = 64u << 20;
    options.shards = 1;
    options.io_backend = backend_;
    return options;
  }

  // `words` with the options that make the store small.
  CommandOutcome Run(std::vector<std::string> words, uint64_t interrupt_after = UINT64_MAX) {
    for (const char* word : {"--memory", "64M", "--shards", shards_, "--durability", "process", "--io"}) {
      words.push_back(word);
    }
    words.push_back(backend_ == IoBackend::kUring ? "uring" : "threads");
    words.push_back("--data");
    words.push_back(store_);
    return RunAsGiven(words, interrupt_after);
  }

  static CommandOutcome RunAsGiven(const std::vector<std::string>& words,
                                   uint64_t interrupt_after = UINT64_MAX) {
    std::ostringstream out, err;
    CountdownInterrupts interrupts(interrupt_after);
    Console console{.out = out, .err = err, .interrupts = interrupts};
    CommandOutcome outcome;
    outcome.code = RunCommandLine(words, console);
    outcome.out = out.str();
    outcome.err = err.str();
    return outcome;
  }

  std::string Write(const std::string& name, const std::string& text) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static std::string Read(const std::string& path) {
    std::ostringstream whole;  // In one piece: a log file is megabytes.
    whole << std::ifstream(path, std::ios::binary).rdbuf();
    return std::move(whole).str();
  }

  // The last write of the log of a store that one command made.
  void DamageLastFrame() const {
    std::string log, last;
    for (const auto& entry : std::filesystem::directory_iterator(store_ + "/log-1-0")) {
      const std::string content = Read(entry.path());
      if (content.find("PTLF") != std::string::npos) std::tie(log, last) = std::pair(content, entry.path());
    }
    const size_t frame = log.rfind("PTLF");
    ASSERT_NE(frame, std::string::npos);
    log[frame + 64] ^= 1;  // Its fields are none of what the seal says.
    std::ofstream(last, std::ios::binary) << log;
  }

  std::string directory_;
  const char* shards_ = "1";  // Of what Run opens.
  std::string store_;
  inline static const IoBackend backend_ = [] {
    const auto device = ProbeDevice(std::filesystem::temp_directory_path().string(), ProbeCommits::kSkip);
    return device.ok() && device->io_uring ? IoBackend::kUring : IoBackend::kThreads;
  }();
};

}  // namespace partita
