#include "bench/load/comparison.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>

namespace partita::bench {
namespace {

// What a child sends: its figures, then the first error or why it could not run.
struct Message {
  Figures figures;
  bool could_run = false;
  std::array<char, 512> error{};
};
static_assert(std::is_trivially_copyable_v<Message>);

void Copy(const std::string& text, std::array<char, 512>* to) {
  const size_t size = std::min(text.size(), to->size() - 1);
  std::memcpy(to->data(), text.data(), size);
  (*to)[size] = '\0';
}

Message RunHere(const LoadConfig& load, const std::string& workload) {
  Message message;
  LoadRunner runner(load);
  Result<Measurement> measured = runner.Run(workload);
  const Status closed = runner.Close();
  if (!measured.ok() || !closed.ok()) {
    Copy((measured.ok() ? closed : measured.status()).ToString(), &message.error);
    return message;
  }
  message.figures = *measured;
  message.could_run = true;
  Copy(measured->first_error, &message.error);
  return message;
}

bool WriteAll(int descriptor, const void* bytes, size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = write(descriptor, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

bool ReadAll(int descriptor, void* bytes, size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = read(descriptor, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

Result<Measurement> RunInChild(const LoadConfig& load, const std::string& workload) {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return Status::IoError(std::string("pipe: ") + std::strerror(errno));
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return Status::IoError(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    const Message message = RunHere(load, workload);
    // Not exit: what the parent had opened and registered is the parent's to end.
    _exit(WriteAll(ends[1], &message, sizeof message) ? 0 : 1);
  }
  close(ends[1]);
  Message message;
  const bool complete = ReadAll(ends[0], &message, sizeof message);
  close(ends[0]);
  int exit_status = 0;
  waitpid(child, &exit_status, 0);
  const std::string what = load.engine + ", " + workload + ": ";
  if (!complete) {
    return Status::IoError(what + (WIFSIGNALED(exit_status)
                                       ? std::string("ended by signal ") + strsignal(WTERMSIG(exit_status))
                                       : "ended without a result"));
  }
  if (!message.could_run) return Status::IoError(what + message.error.data());
  Measurement measurement;
  static_cast<Figures&>(measurement) = message.figures;
  measurement.engine = load.engine;
  measurement.workload = workload;
  measurement.first_error = message.error.data();
  return measurement;
}

double MedianOf(const std::vector<Measurement>& measurements, const std::string& engine,
                const std::string& workload, const std::function<double(const Figures&)>& figure) {
  std::vector<double> values;
  for (const Measurement& m : measurements) {
    if (m.engine == engine && m.workload == workload) values.push_back(figure(m));
  }
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Ratio(double better, double worse) { return worse > 0 ? better / worse : 0; }

}  // namespace

Result<std::vector<Measurement>> RunComparison(const ComparisonConfig& config) {
  std::vector<Measurement> all;
  std::printf("%s\n", TableHeader().c_str());
  for (uint32_t round = 0; round < config.rounds; ++round) {
    for (const std::string& workload : config.workloads) {
      for (int turn = 0; turn < 2; ++turn) {
        LoadConfig load = config.load;
        load.engine = (static_cast<uint32_t>(turn) + round) % 2 == 0 ? config.subject : config.peer;
        load.engine_config.directory += "/" + load.engine;
        PARTITA_ASSIGN(Measurement measurement, RunInChild(load, workload));
        std::printf("%s\n", TableLine(measurement).c_str());
        std::fflush(stdout);
        all.push_back(std::move(measurement));
      }
    }
  }
  return all;
}

std::string RatioTable(const std::vector<Measurement>& measurements, const ComparisonConfig& config) {
  const auto rate = [](const Figures& f) { return f.OperationsPerSecond(); };
  const auto p99 = [](const Figures& f) { return static_cast<double>(f.latency.Percentile(0.99)) * 1e-3; };
  const auto cpu = [](const Figures& f) { return f.CpuMicrosPerOperation(); };
  std::array<char, 256> line;
  std::string table;
  const auto append = [&](auto... arguments) {
    std::snprintf(line.data(), line.size(), arguments...);
    table += line.data();
  };
  append("| %-16s | %12s | %12s | %6s | %9s | %9s | %5s | %7s | %7s | %5s |\n", "workload",
         (config.subject + " ops/s").c_str(), (config.peer + " ops/s").c_str(), "ratio", "p99 us", "peer p99",
         "ratio", "cpu us", "peer", "ratio");
  append("|%s|\n", "---|--:|--:|--:|--:|--:|--:|--:|--:|--:");
  for (const std::string& workload : config.workloads) {
    const auto of = [&](const std::string& engine, const auto& figure) {
      return MedianOf(measurements, engine, workload, figure);
    };
    append("| %-16s | %12.0f | %12.0f | %6.2f | %9.1f | %9.1f | %5.2f | %7.2f | %7.2f | %5.2f |\n",
           workload.c_str(), of(config.subject, rate), of(config.peer, rate),
           Ratio(of(config.subject, rate), of(config.peer, rate)), of(config.subject, p99),
           of(config.peer, p99), Ratio(of(config.peer, p99), of(config.subject, p99)),
           of(config.subject, cpu), of(config.peer, cpu),
           Ratio(of(config.peer, cpu), of(config.subject, cpu)));
  }
  return table;
}

}  // namespace partita::bench
