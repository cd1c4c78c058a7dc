#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/support/store_workload.h"

namespace partita {

// What of a drawn simulation is left out, so that a failure gets small. As text, e.g.
// "life.0,crash.2,damage.3,fault.4.10,request.5.1.0-7": a life, a planned crash, damage to a copy, a fault of
// a life, requests 0 to 7 of actor 1 (0 is the keeper) of life 5.
struct SimulationCuts {
  std::set<uint32_t> lives;
  std::set<uint32_t> crashes;
  std::set<uint32_t> damages;  // Of a copy of the store, before a life.
  std::set<std::pair<uint32_t, uint32_t>> faults;
  std::map<std::pair<uint32_t, uint32_t>, std::set<uint32_t>> requests;

  static std::optional<SimulationCuts> Parse(std::string_view text);  // Empty: not such a text.
  std::string ToString() const;
};

// A whole store's life and deaths, drawn from one seed: one process, one thread, clients, shards, clock,
// scheduler, faults and crashes. Judged by StoreModel throughout.
//
// Against CrashHistory: faults come during recovery too, backups are taken and restored, scans go on in later
// lives, and everything drawn can be left out piece by piece. CrashHistory follows each crash several times,
// which makes crash points cheap; this makes states rich.
struct Simulation {
  uint64_t seed = 1;
  uint32_t lives = 10;
  uint32_t requests = 60;  // Of each client, in each life.
  uint32_t clients = 4;
  uint32_t keeps = 0, range_percent = 0;  // As WorkloadOptions has them.
  bool faults = true;
  // Of lives: a copy of the store is damaged before, which takes some four of them.
  uint32_t damage_percent = 5;
  std::string damage_place{};  // How the names of files that may be damaged begin.
  // In place of drawn faults and crashes: this one, in this life, and a loss of power after each life.
  struct OnlyFault {
    uint32_t life = 0;
    SimFault fault;
  };
  std::optional<OnlyFault> only_fault;
  bool trace = false;
  SimulationCuts cuts;
  EngineDefect planted = EngineDefect::kNone;
  LogDefect planted_log = LogDefect::kNone;
};

struct SimulationReport {
  uint32_t lives = 0;                     // Run, the one with the violation included.
  uint64_t crashes = 0;                   // Of power and process.
  uint64_t damages = 0;                   // Copies whose files were damaged (damaged_store.h).
  std::vector<uint64_t> life_operations;  // Of the disk, in each life.
  uint64_t hash = 0;                      // Of the whole course: the same for the same seed and binary.
  WorkloadCounts counts;
  RareStates rare;
  std::vector<std::string> violations;
};
SimulationReport RunSimulation(const Simulation& simulation);

// Makes a store as a life without trouble leaves it, closed or killed at rest, and then flips single bits of
// its files, each in a copy: what is read afterwards is as it was, or an error; never anything else (F40 to
// F45).
struct FlipReport {
  uint64_t flips = 0;
  uint64_t refused = 0;   // The store did not open.
  uint64_t damaged = 0;   // It opened, and some reads answered corruption.
  uint64_t harmless = 0;  // Everything was there.
  std::vector<std::string> violations;
};
FlipReport RunFlips(uint64_t seed, uint32_t flips, LogDefect planted = LogDefect::kNone);

// Leaves out of a failing simulation what it fails without: lives, crashes, faults, requests. `fails` is
// asked of each candidate until nothing more can go, or it has been asked `tries_max` times.
SimulationCuts MinimiseSimulation(Simulation failing, uint32_t lives_run, uint32_t tries_max,
                                  const std::function<bool(const Simulation&)>& fails);

}  // namespace partita
