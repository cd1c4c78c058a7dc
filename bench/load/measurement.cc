#include "bench/load/measurement.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "bench/load/format_text.h"
#include "engine/io/thread_setup.h"

namespace partita::bench {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double Micros(uint64_t nanos) { return static_cast<double>(nanos) * 1e-3; }

}  // namespace

ResourceUse ResourceUse::Now() {
  ResourceUse use;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  use.cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    uint64_t value = 0;
    io >> value;
    if (name == "write_bytes:") use.written_bytes = value;
    if (name == "cancelled_write_bytes:") use.cancelled_bytes = value;
  }
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) use.resident_bytes = std::stoull(line.substr(6)) * 1024;
  }
  return use;
}

ProcessorTime ProcessorTime::Now() {
  ProcessorTime time;
  std::ifstream stat("/proc/stat");
  std::string name;
  stat >> name;  // "cpu", then user, nice, system, idle, iowait, irq, softirq and steal; guests' are within
                 // those.
  uint64_t ticks = 0;
  for (int field = 0; field < 8 && stat >> ticks; ++field) {
    time.all += ticks;
    if (field == 7) time.stolen = ticks;
  }
  return time;
}

uint32_t UsableCores() { return std::max<uint32_t>(1, static_cast<uint32_t>(AllowedCpus().size())); }

uint64_t DiskBytesOf(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory, error)) {
    struct stat info;
    // Files come and go while the engine runs; one that has gone counts nothing.
    if (entry.is_regular_file(error) && stat(entry.path().c_str(), &info) == 0) {
      bytes += static_cast<uint64_t>(info.st_blocks) * 512;
    }
  }
  return bytes;
}

std::string ShortNumber(double number) {
  if (number >= 1e6) return Format("%.2f M", number / 1e6);
  if (number >= 1e4) return Format("%.0f k", number / 1e3);
  if (number >= 1e3) return Format("%.1f k", number / 1e3);
  return Format(number >= 10 ? "%.0f" : "%.1f", number);
}

std::string TableHeader() {
  return Format("%-9s %-16s %9s %9s %9s %9s %9s %9s %9s %7s %6s %8s %8s", "engine", "workload", "ops/s",
                "rows/s", "p50 us", "p99 us", "p99.9 us", "max us", "cpu us/op", "settle", "w-amp", "disk MB",
                "rss MB");
}

std::string PaceLostText(const Measurement& m) {
  return Format("did %.0f %% of what was due at a pace", m.PaceKept() * 100);
}

std::string WrongAnswersText(const Measurement& m) {
  return Format("WRONG ANSWERS: %llu wrong, %llu missing, %llu failed ",
                static_cast<unsigned long long>(m.wrong), static_cast<unsigned long long>(m.missing),
                static_cast<unsigned long long>(m.failed)) +
         m.first_error;
}

std::string TableLine(const Measurement& m) {
  const std::string name = Format("%-9s %-16s ", m.engine.c_str(), m.workload.c_str());
  if (!m.IsCorrect()) return name + WrongAnswersText(m);
  return name + Format("%9s %9s %9.1f %9.1f %9.1f %9.0f %9.2f %6.1fs %6.2f %8.0f %8.0f",
                       ShortNumber(m.OperationsPerSecond()).c_str(),
                       ShortNumber(m.seconds > 0 ? static_cast<double>(m.rows) / m.seconds : 0).c_str(),
                       Micros(m.latency.Percentile(0.5)), Micros(m.latency.Percentile(0.99)),
                       Micros(m.latency.Percentile(0.999)), Micros(m.latency.max()),
                       m.CpuMicrosPerOperation(), m.settle_seconds, m.WriteAmplification(),
                       static_cast<double>(m.disk_bytes) / 1e6, static_cast<double>(m.resident_bytes) / 1e6);
}

std::string EscapedForJson(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return escaped;
}

std::string JsonObject(const Measurement& m) {
  std::string json =
      Format("{\"engine\": \"%s\", \"workload\": \"%s\", \"operations\": %llu, \"rows\": %llu, ",
             m.engine.c_str(), m.workload.c_str(), static_cast<unsigned long long>(m.operations),
             static_cast<unsigned long long>(m.rows));
  json +=
      Format("\"seconds\": %.6f, \"settle_seconds\": %.6f, \"cpu_seconds\": %.6f, \"ops_per_second\": %.3f, ",
             m.seconds, m.settle_seconds, m.cpu_seconds, m.OperationsPerSecond());
  json += Format(
      "\"p50_us\": %.3f, \"p90_us\": %.3f, \"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f, ",
      Micros(m.latency.Percentile(0.5)), Micros(m.latency.Percentile(0.9)),
      Micros(m.latency.Percentile(0.99)), Micros(m.latency.Percentile(0.999)), Micros(m.latency.max()));
  json += Format("\"cpu_us_per_operation\": %.4f, \"user_bytes\": %llu, \"written_bytes\": %llu, ",
                 m.CpuMicrosPerOperation(), static_cast<unsigned long long>(m.user_bytes),
                 static_cast<unsigned long long>(m.written_bytes));
  if (m.paced_due > 0) json += Format("\"done_of_due\": %.4f, ", m.PaceKept());
  json += Format("\"write_amplification\": %.4f, \"disk_bytes\": %llu, \"resident_bytes\": %llu, ",
                 m.WriteAmplification(), static_cast<unsigned long long>(m.disk_bytes),
                 static_cast<unsigned long long>(m.resident_bytes));
  json += Format("\"wrong\": %llu, \"missing\": %llu, \"failed\": %llu, ",
                 static_cast<unsigned long long>(m.wrong), static_cast<unsigned long long>(m.missing),
                 static_cast<unsigned long long>(m.failed));
  json += "\"first_error\": \"" + EscapedForJson(m.first_error) + "\"}";
  return json;
}

std::string ToJson(const std::vector<Measurement>& measurements) {
  std::string json = "[";
  for (const Measurement& m : measurements) {
    json += (json.size() > 1 ? ",\n  " : "\n  ") + JsonObject(m);
  }
  return json + "\n]\n";
}

}  // namespace partita::bench
