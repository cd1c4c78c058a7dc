#pragma once
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/load/histogram.h"

namespace partita::bench {

// The numbers of one workload on one engine. Trivially copyable, so that a child process can hand
// them to its parent through a pipe.
struct Figures {
  uint64_t operations = 0;
  uint64_t rows = 0;  // A batch or a scan is one operation of many rows.
  double seconds = 0;
  // Flushing and compacting afterwards what the workload wrote; 0 for reads.
  double settle_seconds = 0;
  // Of all threads of the process, settling included.
  double cpu_seconds = 0;
  Histogram latency;
  uint64_t user_bytes = 0;      // Keys and values written.
  uint64_t written_bytes = 0;   // To the device, by the kernel's count, settling included.
  uint64_t disk_bytes = 0;      // Size of the directory afterwards.
  uint64_t resident_bytes = 0;  // Of the process, afterwards.
  uint64_t wrong = 0;           // Rows whose value was not what was written, or rows that must not exist.
  uint64_t missing = 0;         // Rows that should exist.
  uint64_t failed = 0;          // Operations that answered an error.
  // Of what comes at a pace: the operations that are measured, or writes beside them; 0: nothing does.
  uint64_t paced_due = 0, paced_done = 0;

  double OperationsPerSecond() const { return seconds > 0 ? static_cast<double>(operations) / seconds : 0; }
  double CpuMicrosPerOperation() const {
    return operations > 0 ? cpu_seconds * 1e6 / static_cast<double>(operations) : 0;
  }
  // Bytes to the device for each byte of the user; 0 when nothing was written.
  double WriteAmplification() const {
    return user_bytes > 0 ? static_cast<double>(written_bytes) / static_cast<double>(user_bytes) : 0;
  }
  // Of what was due at a pace; 1 where nothing was. An engine must do kPaceKeptMin of it: with less the
  // figure is not that of the workload, and does not count.
  double PaceKept() const {
    return paced_due > 0 ? static_cast<double>(paced_done) / static_cast<double>(paced_due) : 1;
  }
  static constexpr double kPaceKeptMin = 0.95;
  bool KeptPace() const { return PaceKept() >= kPaceKeptMin; }
  bool IsCorrect() const { return wrong == 0 && missing == 0 && failed == 0; }
};
static_assert(std::is_trivially_copyable_v<Figures>);

// What the process has used since it began; two of them give a difference.
struct ResourceUse {
  double cpu_seconds = 0;
  uint64_t written_bytes = 0;    // Or about to be,
  uint64_t cancelled_bytes = 0;  // of which so many were deleted before.
  uint64_t resident_bytes = 0;

  static ResourceUse Now();
};

// What one workload did on one engine.
struct Measurement : Figures {
  std::string engine;
  std::string workload;  // As asked for, such as "sync-write:16".
  std::string first_error;
  // From where on CPU and bytes written count. A workload with a part of its own that does not count sets it
  // anew, when what that part wrote has settled.
  ResourceUse begun;
};

// What all processors did since the machine started, in ticks; zeros where the kernel does not tell.
struct ProcessorTime {
  uint64_t all = 0;
  uint64_t stolen = 0;  // Wanted here, and given by the hypervisor to others.

  static ProcessorTime Now();
};

// How many cores this process may run on: not those that --cores, or who started it, leaves out.
uint32_t UsableCores();

// Bytes of all files below `directory`, as the disk holds them.
uint64_t DiskBytesOf(const std::string& directory);

// Why a figure whose pace was not kept does not count.
std::string PaceLostText(const Measurement& m);

// "WRONG ANSWERS: 3 wrong, ..." of what is not correct.
std::string WrongAnswersText(const Measurement& measurement);

// One line of a table, in columns that TableHeader names; of wrong answers no figure.
std::string TableHeader();
std::string TableLine(const Measurement& measurement);

// "1234567" -> "1.23 M": three digits are as many as one run is worth.
std::string ShortNumber(double number);

std::string EscapedForJson(const std::string& text);

// One measurement as a JSON object; all of them as an array of objects; latencies in microseconds, sizes in
// bytes.
std::string JsonObject(const Measurement& measurement);
std::string ToJson(const std::vector<Measurement>& measurements);

}  // namespace partita::bench
