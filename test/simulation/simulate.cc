#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "test/simulation/groups.h"

// The command behind test/simulate. Seeds are run in a child process, so that a failed assertion or a
// deadlock of the engine is a failing seed like any other; the parent then shows and minimises it.

namespace partita {
namespace {

constexpr const char* kUsage =
    "usage: simulate [--group GROUP] [--seed N] [--seeds COUNT] [--minutes M] [--cut CUTS] [--trace] "
    "[--no-faults] [--damage P]\n"
    "                [--lives N] [--requests N] [--plant DEFECT] [--tries N] [--json]\n"
    "\n"
    "Runs a whole store in one thread, again and again: shards, clients, clock, scheduler, faults and "
    "crashes\n"
    "all come from the seed, and a model says what must be there. A seed that fails is run again with a "
    "trace,\n"
    "made smaller, and printed as a command that reproduces it. Exit code 0: nothing failed, 1: a seed did.\n"
    "\n"
    "  --group GROUP  simulate (default); ranges: the same, dense in splits, merges and moves; crash: many\n"
    "                 crash points; faults: one fault at a time; flips: one flipped bit at a time. Only the\n"
    "                 first two are made smaller, and take all the options below\n"
    "  --seed N       the first seed (default 1)\n"
    "  --seeds COUNT  how many, one after the other (default 1)\n"
    "  --minutes M    as many as fit into M minutes instead\n"
    "  --cut CUTS     leave out parts of the seed, as printed by a failing run\n"
    "  --trace        print what is asked, answered and done to the disk\n"
    "  --no-faults    crashes only\n"
    "  --damage P     percent of lives before which a copy of the store is damaged: writes that are lost or\n"
    "                 land elsewhere, bits that rot (default 5)\n"
    "  --lives N      processes that live and die on one store (default 10)\n"
    "  --requests N   of each of the four clients in each life (default 60)\n"
    "  --plant DEFECT break the engine on purpose: skip-flush, forget-tail, publish-early, reuse-versions,\n"
    "                 skip-recheck, every-bad-is-torn\n"
    "  --tries N      how often a failing seed is run again to make it smaller (default 400)\n"
    "  --json         print the totals as one line of JSON\n";

struct Arguments {
  Group group = Group::kSimulate;
  Simulation simulation;
  uint64_t seeds = 1;
  double minutes = 0;
  uint32_t tries_max = 400;
  bool json = false;
  std::string plant;
};

// What the children tell.
Totals* shared_totals() {
  static Totals* totals = [] {
    void* memory = mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("simulate: mmap");
      std::_Exit(2);
    }
    return new (memory) Totals();
  }();
  return totals;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "simulate: %s (try --help)\n", message.c_str());
  std::exit(2);
}

void Plant(const std::string& name, Simulation* simulation) {
  if (name == "skip-flush") {
    simulation->planted_log = LogDefect::kSkipFlush;
  } else if (name == "forget-tail") {
    simulation->planted_log = LogDefect::kForgetTail;
  } else if (name == "every-bad-is-torn") {
    simulation->planted_log = LogDefect::kEveryBadIsTorn;
  } else if (name == "publish-early") {
    simulation->planted = EngineDefect::kPublishBeforeDurable;
  } else if (name == "reuse-versions") {
    simulation->planted = EngineDefect::kReuseVersions;
  } else if (name == "skip-recheck") {
    simulation->planted = EngineDefect::kSkipConditionRecheck;
  } else {
    Fail("there is no defect '" + name + "'");
  }
}

uint64_t NumberOf(const std::string& option, const char* text) {
  char* end = nullptr;
  const uint64_t number = text == nullptr ? 0 : std::strtoull(text, &end, 10);
  if (text == nullptr || end == text || *end != '\0') Fail(option + " takes a number");
  return number;
}

Arguments Parse(int count, char** given) {
  Arguments arguments;
  Simulation& simulation = arguments.simulation;
  for (int i = 1; i < count; ++i) {
    const std::string option = given[i];
    const char* value = i + 1 < count ? given[i + 1] : nullptr;
    if (option == "--help" || option == "-h") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "--trace" || option == "--no-faults" || option == "--json") {
      simulation.trace = simulation.trace || option == "--trace";
      simulation.faults = simulation.faults && option != "--no-faults";
      arguments.json = arguments.json || option == "--json";
      continue;
    }
    ++i;
    if (option == "--group") {
      const auto group = GroupOf(value == nullptr ? "" : value);
      if (!group) Fail("--group takes simulate, ranges, crash, faults or flips");
      arguments.group = *group;
    } else if (option == "--seed") {
      simulation.seed = NumberOf(option, value);
    } else if (option == "--seeds") {
      arguments.seeds = NumberOf(option, value);
    } else if (option == "--minutes") {
      if (value == nullptr || (arguments.minutes = std::atof(value)) <= 0)
        Fail("--minutes takes a number above 0");
    } else if (option == "--lives") {
      simulation.lives = static_cast<uint32_t>(NumberOf(option, value));
    } else if (option == "--damage") {
      simulation.damage_percent = static_cast<uint32_t>(NumberOf(option, value));
    } else if (option == "--requests") {
      simulation.requests = static_cast<uint32_t>(NumberOf(option, value));
    } else if (option == "--tries") {
      arguments.tries_max = static_cast<uint32_t>(NumberOf(option, value));
    } else if (option == "--plant" && value != nullptr) {
      arguments.plant = value;
      Plant(value, &simulation);
    } else if (option == "--cut" && value != nullptr) {
      const auto cuts = SimulationCuts::Parse(value);
      if (!cuts) Fail(std::string("'") + value + "' is nothing that can be cut");
      simulation.cuts = *cuts;
    } else {
      Fail("unknown argument '" + option + "'");
    }
  }
  return arguments;
}

// Runs seeds until one fails or the time is over; in a child. Exit code 1: a violation, in the totals.
void RunSeeds(Group group, Simulation simulation, uint64_t seeds, double until) {
  for (uint64_t i = 0; i < seeds && (until == 0 || Seconds() < until); ++i) {
    if (!RunSeed(group, simulation, shared_totals())) std::_Exit(1);
    ++simulation.seed;
  }
}

enum class Errors : uint8_t { kShown, kHidden };

// Whether the child found something; by violation, assertion or deadlock.
bool FailsInChild(Group group, const Simulation& simulation, uint64_t seeds, double until, Errors errors) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    if (errors == Errors::kHidden && std::freopen("/dev/null", "w", stderr) == nullptr) std::_Exit(2);
    RunSeeds(group, simulation, seeds, until);
    std::fflush(stdout);
    std::_Exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::perror("simulate: a child process");
    std::exit(2);
  }
  if (WIFSIGNALED(status)) {
    std::snprintf(shared_totals()->violation, sizeof shared_totals()->violation, "ended by signal %d (%s)",
                  WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

std::string CommandFor(const Arguments& arguments, const Simulation& simulation) {
  std::string command = "test/simulate";
  if (arguments.group != Group::kSimulate) command += " --group " + std::string(GroupName(arguments.group));
  command += " --seed " + std::to_string(simulation.seed);
  if (simulation.lives != Simulation().lives) command += " --lives " + std::to_string(simulation.lives);
  if (simulation.requests != Simulation().requests)
    command += " --requests " + std::to_string(simulation.requests);
  if (!simulation.faults) command += " --no-faults";
  if (simulation.damage_percent != Simulation().damage_percent)
    command += " --damage " + std::to_string(simulation.damage_percent);
  if (!arguments.plant.empty()) command += " --plant " + arguments.plant;
  const std::string cuts = simulation.cuts.ToString();
  return cuts.empty() ? command : command + " --cut " + cuts;
}

void ShowFailure(const Arguments& arguments, Simulation failing) {
  Totals* totals = shared_totals();
  failing.seed = totals->seed;
  std::printf("seed %" PRIu64 " fails: %s\n  again: %s\n", failing.seed, totals->violation,
              CommandFor(arguments, failing).c_str());
  const bool is_whole = arguments.group == Group::kSimulate || arguments.group == Group::kRanges;
  if (failing.trace || arguments.tries_max == 0 || !is_whole) return;
  std::printf("making it smaller ...\n");
  // A child that ended by a signal told no number of lives.
  const uint32_t lives = std::max(totals->lives_of_failing, 1u);
  const bool by_signal = std::strncmp(totals->violation, "ended by", 8) == 0;
  failing.cuts = MinimiseSimulation(failing, by_signal ? failing.lives + 1 : lives, arguments.tries_max,
                                    [&arguments](const Simulation& candidate) {
                                      return FailsInChild(arguments.group, candidate, 1, 0, Errors::kHidden);
                                    });
  failing.trace = true;
  std::printf("trace of what is left:\n");
  FailsInChild(arguments.group, failing, 1, 0, Errors::kShown);
  std::printf("still fails: %s\n  smaller: %s\n", totals->violation, CommandFor(arguments, failing).c_str());
}

void PrintJson(Group group, const Totals& totals, double seconds, bool failed) {
  const WorkloadCounts& counts = totals.counts;
  std::string text = "{\"group\": \"" + std::string(GroupName(group)) + "\"";
  auto number = [&text](std::string_view name, uint64_t value) {
    text += ", \"" + std::string(name) + "\": " + std::to_string(value);
  };
  number("failed", failed ? 1 : 0);
  number("seconds", static_cast<uint64_t>(seconds));
  number("seeds", totals.seeds);
  if (group == Group::kFlips) {
    number("flips", totals.flips);
    number("refused", totals.flips_refused);
    number("damaged", totals.flips_damaged);
    number("harmless", totals.flips_harmless);
    std::printf("%s}\n", text.c_str());
    return;
  }
  if (group == Group::kFaults) number("single_faults", totals.single_faults);
  number("lives", totals.lives);
  number("crash_points", totals.crashes);
  number("operations", counts.calls());
  number("disk_operations", counts.disk_operations);
  number("faults", counts.faults_hit);
  number("damaged_stores", totals.damages);
  number("writes_acknowledged", counts.acknowledged);
  number("writes_refused", counts.refused);
  number("writes_in_doubt", counts.in_doubt);
  number("rows_compared", counts.rows_compared);
  number("flushes", counts.flushes);
  number("compactions", counts.compactions);
  number("layouts", counts.layouts);
  number("splits", counts.splits);
  number("merges", counts.merges);
  number("moves", counts.moves);
  number("range_operations", counts.range_operations());
  number("backups", counts.backups);
  number("restores", counts.restores);
  number("scrubs", counts.scrubs);
  number("opens_failed", counts.opens_failed);
  text += ", \"rare\": {";
  for (size_t i = 0; i < kRareStateCount; ++i) {
    const RareState state = static_cast<RareState>(i);
    text += std::string(i == 0 ? "" : ", ") + "\"" + std::string(RareStateName(state)) +
            "\": " + std::to_string(totals.rare.count(state));
  }
  std::printf("%s}}\n", text.c_str());
}

void PrintText(Group group, const Totals& totals, double seconds) {
  const WorkloadCounts& counts = totals.counts;
  if (group == Group::kFlips) {
    std::printf("%" PRIu64 " seeds, %" PRIu64 " flipped bits: %" PRIu64 " stores refused to open, %" PRIu64
                " answered damage, %" PRIu64 " were whole; %.0f s\n",
                totals.seeds, totals.flips, totals.flips_refused, totals.flips_damaged, totals.flips_harmless,
                seconds);
    return;
  }
  if (group == Group::kFaults) std::printf("%" PRIu64 " single faults; ", totals.single_faults);
  std::printf("%" PRIu64 " seeds, %" PRIu64 " lives, %" PRIu64 " crashes, %" PRIu64 " faults; %" PRIu64
              " calls of the store, %" PRIu64 " range operations (%" PRIu64 " splits, %" PRIu64
              " merges, %" PRIu64 " moves), %" PRIu64 " disk operations; %.0f s\n",
              totals.seeds, totals.lives, totals.crashes, counts.faults_hit, counts.calls(),
              counts.range_operations(), counts.splits, counts.merges, counts.moves, counts.disk_operations,
              seconds);
  for (size_t i = 0; i < kRareStateCount; ++i) {
    const RareState state = static_cast<RareState>(i);
    std::printf("%10" PRIu64 "  %s\n", totals.rare.count(state), std::string(RareStateName(state)).c_str());
  }
}

int Main(int count, char** given) {
  const Arguments arguments = Parse(count, given);
  *shared_totals() = Totals();  // Before there are children.
  const double begun = Seconds();
  const double until = arguments.minutes > 0 ? begun + arguments.minutes * 60 : 0;
  const uint64_t seeds = arguments.minutes > 0 ? UINT64_MAX : arguments.seeds;
  const bool failed = FailsInChild(arguments.group, arguments.simulation, seeds, until, Errors::kShown);
  const double seconds = Seconds() - begun;
  const Totals totals = *shared_totals();
  if (failed) ShowFailure(arguments, arguments.simulation);
  if (arguments.json) {
    PrintJson(arguments.group, totals, seconds, failed);
  } else {
    PrintText(arguments.group, totals, seconds);
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace partita

int main(int count, char** given) { return partita::Main(count, given); }
