#include "test/power/power_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <random>
#include <vector>

#include "test/power/image_check.h"

namespace partita {

namespace {

// Images of one recording: making one takes as long as some ten images.
constexpr uint64_t kImagesPerRecording = 60;
constexpr uint32_t kLivesMax = 4;
constexpr uint64_t kNotesMin = 150, kNotesMax = 1500;  // Of one process.
constexpr unsigned kCheckSecondsMax = 120;
constexpr int kSilenceMillisecondsMax = 120'000;

// Children end with this process, whatever ends it.
void DieWithParent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

// Mostly flushes alone: a file system survives those that its own journal did not ask for.
DiskFaults DrawFaults(const PowerOptions& options, uint64_t seed) {
  constexpr uint32_t kRates[] = {2, 10, 50};
  const uint32_t rate = kRates[seed / 8 % std::size(kRates)];
  if (options.reads_fail) return {.reads_per_mille = 4 * rate, .seed = seed};
  return {.writes_per_mille = seed % 4 == 0 ? rate : 0,
          .flushes_per_mille = seed % 4 == 1 ? 0 : rate,
          .seed = seed};
}

std::string DescribeEnd(int status) {
  if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

// What a child that calls `look` says.
Result<ImageFindings> InChild(const std::function<ImageFindings()>& look) {
  int ends[2];
  PARTITA_ASSERT(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = fork();
  PARTITA_ASSERT(child >= 0);
  if (child == 0) {
    DieWithParent();
    alarm(kCheckSecondsMax);
    const ImageFindings found = look();
    const std::string said =
        std::to_string(found.refused) + " " + std::to_string(found.restored) + " " + found.wrong;
    const bool written = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return Status::IoError("the process that looks at it ended with " + DescribeEnd(status));
  ImageFindings found;
  char* rest = nullptr;
  found.refused = std::strtoull(said.c_str(), &rest, 10);
  found.restored = std::strtoull(rest, &rest, 10);
  found.wrong = rest + 1;
  return found;
}

}  // namespace

void PowerTotals::Add(const PowerTotals& other) {
  images += other.images, second_cuts += other.second_cuts, recordings += other.recordings;
  entries += other.entries, flushes += other.flushes, bytes += other.bytes;
  transactions += other.transactions, backups += other.backups, restored += other.restored;
  kills += other.kills, refused += other.refused;
  given_up += other.given_up, reads_refused += other.reads_refused;
  failures += other.failures;
}

Result<std::unique_ptr<PowerRun>> PowerRun::Start(const PowerOptions& options) {
  PARTITA_TRY(EnterOwnMounts());
  PARTITA_ASSIGN(std::unique_ptr<MountedDisk> mounted,
                 MountedDisk::Start(options.directory, options.file_system));
  std::unique_ptr<PowerRun> run(new PowerRun(options, std::move(mounted)));
  // All that may be forbidden is tried here.
  PARTITA_TRY(run->mounted_->Format());
  PARTITA_TRY(run->mounted_->Mount());
  PARTITA_TRY(run->mounted_->Unmount());
  return run;
}

Status PowerRun::Run(PowerTotals* totals) {
  for (uint64_t recording = 0; totals->images < options_.images; ++recording) {
    const uint64_t seed = options_.seed * 1'000'003 + recording;
    Ledger ledger;
    PARTITA_TRY(Record(seed, &ledger, totals));
    PARTITA_TRY(CheckImages(seed, first_cut_, std::min(kImagesPerRecording, options_.images - totals->images),
                            ledger, totals));
  }
  return Status();
}

// Some processes after one another, most of them killed, on one file system.
Status PowerRun::Record(uint64_t seed, Ledger* ledger, PowerTotals* totals) {
  std::mt19937_64 random(seed);
  VirtualDisk& disk = mounted_->disk();
  PARTITA_TRY(disk.Restart());
  PARTITA_TRY(mounted_->Format());
  PARTITA_TRY(mounted_->Mount());
  first_cut_ = disk.entries();
  LoadPlan plan{.directory = mounted_->path() + "/store", .planted = options_.planted};
  plan.disk_may_fail = options_.disk_fails || options_.disk_fills || options_.reads_fail;
  plan.fill_disk = options_.disk_fills;
  const uint32_t lives = 1 + static_cast<uint32_t>(random() % kLivesMax);
  for (plan.life = 0; plan.life < lives; ++plan.life) {
    plan.seed = random();
    if (plan.life == 0 || random() % 3 == 0) plan.shards = 1 + static_cast<uint32_t>(random() % 2);
    plan.backend = random() % 4 == 0 ? IoBackend::kThreads : IoBackend::kUring;
    const Ledger::Bounds bounds = plan.life > 0 && (options_.disk_fails || options_.reads_fail)
                                      ? ledger->BoundsAt(disk.entries())
                                      : ledger->BoundsNow();
    plan.found_min = bounds.at_least;
    plan.found_max = bounds.at_most;
    const bool kill_it = random() % 3 != 0;
    PARTITA_TRY(LoadOnce(plan, kNotesMin + random() % (kNotesMax - kNotesMin), kill_it, ledger));
    totals->kills += kill_it ? 1 : 0;
    PARTITA_TRY(disk.SetFaults({}));
    if (!options_.disk_fails && !options_.reads_fail) continue;
    // A file system that lost a write of its own, or could not read, stops; mounted anew it goes on.
    PARTITA_TRY(mounted_->Unmount());
    PARTITA_TRY(mounted_->Mount());
  }
  PARTITA_ASSIGN(const VirtualDisk::LogSize size, disk.log_size());
  totals->recordings += 1;
  totals->entries += size.entries;
  totals->flushes += size.flushes;
  totals->bytes += size.bytes;
  totals->transactions += ledger->transactions();
  totals->backups += ledger->backups();
  totals->refused += ledger->refused();
  totals->given_up += ledger->given_up();
  return mounted_->Unmount();
}

Status PowerRun::LoadOnce(const LoadPlan& plan, uint64_t notes_max, bool kill_it, Ledger* ledger) {
  void* shared =
      mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  PARTITA_ASSERT(shared != MAP_FAILED);
  auto* stop = new (shared) std::atomic<bool>(false);
  int ends[2];
  PARTITA_ASSERT(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = fork();
  PARTITA_ASSERT(child >= 0);
  if (child == 0) {
    DieWithParent();
    close(ends[0]);
    RunLoad(plan, mounted_->disk(), ends[1], stop);
  }
  close(ends[1]);
  const bool fails = options_.disk_fails || options_.reads_fail;
  bool silent = false;
  Note note;
  for (uint64_t notes = 1;; ++notes) {
    pollfd ready{ends[0], POLLIN, 0};
    silent = poll(&ready, 1, kSilenceMillisecondsMax) == 0;
    if (silent) kill(child, SIGKILL);
    if (read(ends[0], &note, sizeof note) != sizeof note) break;
    ledger->Add(note);
    if (notes == notes_max / 4 && fails)
      PARTITA_TRY(mounted_->disk().SetFaults(DrawFaults(options_, plan.seed)));
    if (notes == notes_max && kill_it) kill(child, SIGKILL);
    if (notes == notes_max) stop->store(true);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  munmap(shared, sizeof *stop);
  if (silent) return Status::IoError("the load said nothing for two minutes");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status();
  if (kill_it && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return Status();
  return Status::IoError("the load ended with " + DescribeEnd(status));
}

Status PowerRun::CheckImages(uint64_t seed, uint64_t first_cut, uint64_t count, const Ledger& ledger,
                             PowerTotals* totals) {
  std::mt19937_64 random(seed ^ 0x9E3779B97F4A7C15u);
  const uint64_t end = mounted_->disk().entries();
  std::vector<uint64_t> cuts;
  while (cuts.size() < count) cuts.push_back(first_cut + random() % (end - first_cut + 1));
  std::sort(cuts.begin(), cuts.end());
  for (size_t i = 0; i < cuts.size() && totals->images < options_.images; ++i) {
    const uint64_t image_seed = random();
    PARTITA_TRY(mounted_->disk().ShowCut(cuts[i], image_seed));
    PARTITA_TRY(CheckShown(cuts[i], image_seed, ledger, totals));
    ++totals->images;
    if (image_seed % 4 != 0 || totals->images == options_.images) continue;
    PARTITA_TRY(mounted_->disk().ShowCutAgain(image_seed + 1));
    PARTITA_TRY(CheckShown(cuts[i], image_seed + 1, ledger, totals));
    ++totals->images;
    ++totals->second_cuts;
  }
  return Status();
}

// Mounts what the disk shows, and lets a child look at it.
Status PowerRun::CheckShown(uint64_t cut, uint64_t seed, const Ledger& ledger, PowerTotals* totals) {
  const Status mounted = mounted_->Mount();
  if (!mounted.ok()) return Failed(mounted, cut, seed, ledger);
  std::mt19937_64 random(seed);
  LoadPlan plan{.directory = mounted_->path() + "/store"};
  plan.shards = 1 + static_cast<uint32_t>(random() % 2);
  plan.backend = random() % 4 == 0 ? IoBackend::kThreads : IoBackend::kUring;
  unlink(BallastOf(plan.directory).c_str());  // A store may refuse to open on a full disk; not for ever.
  const bool close_it = random() % 2 == 0;
  if (options_.reads_fail) PARTITA_TRY(CheckWithFailingReads(plan, cut, seed, ledger, totals));
  const Result<ImageFindings> found = InChild([&] { return LookAt(plan, ledger, cut, close_it); });
  const Status unmounted = mounted_->Unmount();
  if (!found.ok()) return Failed(found.status(), cut, seed, ledger);
  if (!found->wrong.empty()) return Failed(Status::Corruption(found->wrong), cut, seed, ledger);
  totals->restored += found->restored;
  return unmounted;
}

// While the disk fails to read at times; then what it shows is mounted anew, as a file system that could not
// read what it needed may have given up.
Status PowerRun::CheckWithFailingReads(const LoadPlan& plan, uint64_t cut, uint64_t seed,
                                       const Ledger& ledger, PowerTotals* totals) {
  constexpr uint32_t kRates[] = {5, 20, 100, 300};
  PARTITA_TRY(
      mounted_->disk().SetFaults({.reads_per_mille = kRates[seed % std::size(kRates)], .seed = seed}));
  const Result<ImageFindings> found = InChild([&] { return LookThroughFaults(plan, ledger, cut); });
  PARTITA_TRY(mounted_->disk().SetFaults({}));
  PARTITA_TRY(mounted_->Unmount());
  if (!found.ok()) return Failed(found.status(), cut, seed, ledger);
  if (!found->wrong.empty()) return Failed(Status::Corruption(found->wrong), cut, seed, ledger);
  totals->reads_refused += found->refused;
  const Status mounted = mounted_->Mount();
  return mounted.ok() ? mounted : Failed(mounted, cut, seed, ledger);
}

// Keeps the image and says how to look at it again.
Status PowerRun::Failed(const Status& failure, uint64_t cut, uint64_t seed, const Ledger& ledger) {
  Status status = failure.WithContext("power lost after entry " + std::to_string(cut) + ", image " +
                                      std::to_string(seed));
  if (options_.keep.empty()) return status;
  const std::string kept = options_.keep + "/" + std::to_string(seed);
  mkdir(options_.keep.c_str(), 0700);
  mkdir(kept.c_str(), 0700);
  PARTITA_TRY(mounted_->disk().SaveImage(kept + "/image"));
  PARTITA_TRY(ledger.Save(kept + "/notes"));
  std::ofstream(kept + "/cut") << cut << " " << seed << "\n";
  const char* file_system = options_.file_system == FileSystemKind::kXfs ? "xfs" : "ext4";
  return status.WithContext(std::string("kept; again with: test/power_cut --fs ") + file_system +
                            " --replay " + kept);
}

Status PowerRun::Replay(const std::string& directory) {
  uint64_t cut = 0, seed = 0;
  if (!(std::ifstream(directory + "/cut") >> cut >> seed)) return Status::NotFound(directory + "/cut");
  PARTITA_ASSIGN(const Ledger ledger, Ledger::Load(directory + "/notes"));
  PARTITA_TRY(mounted_->disk().Load(directory + "/image"));
  PARTITA_TRY(mounted_->disk().ShowCut(mounted_->disk().entries(), seed));
  PowerTotals totals;
  return CheckShown(cut, seed, ledger, &totals);
}

}  // namespace partita
