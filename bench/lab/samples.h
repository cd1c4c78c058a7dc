#pragma once
#include <span>
#include <string>

#include "engine/base/result.h"

namespace partita::lab {

// An experiment that the command holds: those of bench/lab/samples, traces and ycsb.
struct Sample {
  const char* name;  // Which its file gives it.
  const char* text;
};
std::span<const Sample> Samples();

// Writes what the sample "packages" imports: the Debian packages that this machine knows, a JSON object a
// line, from apt's index (apt-cache dumpavail), or where there is none from dpkg's list of those installed.
// Returns how many. kNotFound: this machine has neither; kIoError: it cannot be written.
struct PackageSources {
  std::string command = "apt-cache dumpavail";
  std::string status_file = "/var/lib/dpkg/status";
};
Result<uint64_t> WritePackages(const std::string& path, const PackageSources& sources = {});
// The same of stanzas in a file of the form of a Packages index.
Result<uint64_t> WritePackagesOf(const std::string& index, const std::string& path);

}  // namespace partita::lab
