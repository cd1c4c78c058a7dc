// The command behind test/power_cut: see there, and power_run.h for what it does.
//
// covers: F2 F3 F6 F8 F9 F10 F12 F19 F20 F21 F28 F29 F54 F56 F61 F63, with the kernel and a real file system
// between.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "test/power/power_run.h"

namespace partita {
namespace {

constexpr int kExitFailed = 1, kExitUsage = 2, kExitSkipped = 77;

struct CommandLine {
  PowerOptions power;
  uint32_t jobs = 2;
  bool json = false;
  std::string replay;
};

bool ParseNumber(const char* text, uint64_t* number) {
  char* end = nullptr;
  *number = std::strtoull(text, &end, 10);
  return *text != 0 && *end == 0;
}

// False: it makes no sense.
bool ParseOption(const std::string& name, const char* value, CommandLine* out) {
  uint64_t number = 0;
  const std::string text = value;
  if (name == "--fs" && (text == "ext4" || text == "xfs")) {
    out->power.file_system = text == "xfs" ? FileSystemKind::kXfs : FileSystemKind::kExt4;
  } else if (name == "--faults" && (text == "none" || text == "eio" || text == "read" || text == "full")) {
    out->power.disk_fails = text == "eio";
    out->power.reads_fail = text == "read";
    out->power.disk_fills = text == "full";
  } else if (name == "--plant" && text == "skip-log-flush") {
    out->power.planted = LogDefect::kSkipFlush;
  } else if (name == "--images" && ParseNumber(value, &out->power.images)) {
  } else if (name == "--seed" && ParseNumber(value, &out->power.seed)) {
  } else if (name == "--jobs" && ParseNumber(value, &number) && number >= 1 && number <= 64) {
    out->jobs = static_cast<uint32_t>(number);
  } else if (name == "--directory") {
    out->power.directory = text;
  } else if (name == "--keep") {
    out->power.keep = text;
  } else if (name == "--replay") {
    out->replay = text;
  } else {
    return false;
  }
  return true;
}

bool Parse(int count, char** words, CommandLine* out) {
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--json") == 0) {
      out->json = true;
    } else if (i + 1 >= count || !ParseOption(words[i], words[i + 1], out)) {
      return false;
    } else {
      ++i;
    }
  }
  return !out->power.directory.empty();
}

int ExitCodeOf(const Status& status) {
  if (status.ok()) return 0;
  const bool skipped = status.code() == Code::kUnsupported;
  std::fprintf(stderr, "power_cut: %s: %s\n", skipped ? "SKIPPED, forbidden or missing here" : "FAILED",
               status.ToString().c_str());
  return skipped ? kExitSkipped : kExitFailed;
}

// One of several processes, each with a disk of its own.
int RunJob(PowerOptions options, uint32_t job, uint32_t jobs, PowerTotals* totals) {
  options.images = options.images / jobs + (job < options.images % jobs ? 1 : 0);
  options.seed = options.seed * 64 + job;
  options.directory += "/" + std::to_string(job);
  if (mkdir(options.directory.c_str(), 0700) != 0) return kExitFailed;
  Result<std::unique_ptr<PowerRun>> run = PowerRun::Start(options);
  if (!run.ok()) return ExitCodeOf(run.status());
  const int code = ExitCodeOf((*run)->Run(totals));
  totals->failures += code == kExitFailed ? 1 : 0;
  return code;
}

void Print(const CommandLine& line, const PowerTotals& totals, double seconds) {
  auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  const char* format =
      line.json
          ? "{\"group\": \"power_cut\", \"fs\": \"%s\", \"faults\": \"%s\", \"seed\": %llu, \"images\": "
            "%llu, "
            "\"cuts_in_recovery\": %llu, \"recordings\": %llu, \"block_writes_and_flushes\": %llu, "
            "\"flushes\": %llu, \"bytes\": %llu, \"transactions\": %llu, \"backups\": %llu, \"restored\": "
            "%llu, \"kills\": %llu, "
            "\"refused\": %llu, "
            "\"given_up\": %llu, \"reads_refused\": %llu, "
            "\"failures\": %llu, \"seconds\": %.1f}\n"
          : "%s, faults %s, seed %llu: %llu images (%llu of power lost again during recovery) of %llu "
            "recordings: %llu block writes and flushes (%llu), %llu bytes, %llu transactions acknowledged, "
            "%llu backups (%llu times restored from an image), "
            "%llu kills, %llu calls refused, %llu loads that gave up, %llu refusals of images that could not "
            "be read; %llu failures; %.1f s\n";
  std::printf(format, line.power.file_system == FileSystemKind::kXfs ? "xfs" : "ext4",
              line.power.disk_fails   ? "eio"
              : line.power.reads_fail ? "read"
              : line.power.disk_fills ? "full"
                                      : "none",
              number(line.power.seed), number(totals.images), number(totals.second_cuts),
              number(totals.recordings), number(totals.entries), number(totals.flushes), number(totals.bytes),
              number(totals.transactions), number(totals.backups), number(totals.restored),
              number(totals.kills), number(totals.refused), number(totals.given_up),
              number(totals.reads_refused), number(totals.failures), seconds);
}

int RunJobs(const CommandLine& line) {
  const auto started = std::chrono::steady_clock::now();
  void* shared = mmap(nullptr, line.jobs * sizeof(PowerTotals), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PARTITA_ASSERT(shared != MAP_FAILED);
  auto* totals_of_jobs = static_cast<PowerTotals*>(shared);
  std::vector<pid_t> children;
  for (uint32_t job = 0; job < line.jobs; ++job) {
    new (&totals_of_jobs[job]) PowerTotals();
    children.push_back(fork());
    PARTITA_ASSERT(children.back() >= 0);
    if (children.back() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      exit(RunJob(line.power, job, line.jobs, &totals_of_jobs[job]));
    }
  }
  PowerTotals totals;
  int worst = 0;
  for (uint32_t job = 0; job < line.jobs; ++job) {
    int status = 0;
    waitpid(children[job], &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
    if (code != 0 && worst != kExitFailed) worst = code;
    totals.Add(totals_of_jobs[job]);
  }
  if (worst != kExitSkipped) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    Print(line, totals, seconds.count());
  }
  // Of so many images some dozen have a backup.
  constexpr uint64_t kImagesWithBackup = 200;
  const bool may_fail = line.power.disk_fails || line.power.reads_fail || line.power.disk_fills;
  if (worst == 0 && !may_fail && totals.images >= kImagesWithBackup && totals.restored == 0) {
    std::fputs("power_cut: no image held a backup to restore, so backups were not tested (F68)\n", stderr);
    return kExitFailed;
  }
  return worst;
}

int Replay(CommandLine line) {
  line.power.keep.clear();
  Result<std::unique_ptr<PowerRun>> run = PowerRun::Start(line.power);
  if (!run.ok()) return ExitCodeOf(run.status());
  const int code = ExitCodeOf((*run)->Replay(line.replay));
  if (code == 0) std::puts("the image is sound");
  return code;
}

int Main(int count, char** words) {
  CommandLine line;
  if (!Parse(count, words, &line)) {
    std::fputs("power_cut: wrong arguments; see test/power_cut --help\n", stderr);
    return kExitUsage;
  }
  return line.replay.empty() ? RunJobs(line) : Replay(line);
}

}  // namespace
}  // namespace partita

int main(int count, char** words) { return partita::Main(count, words); }
