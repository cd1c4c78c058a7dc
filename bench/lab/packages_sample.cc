#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "api/cli/debian_index.h"
#include "api/cli/jsonl.h"
#include "bench/lab/samples.h"

namespace partita::lab {
namespace {

constexpr size_t kPackagesMin = 100;  // Fewer are no index: `apt-get update` was never run.

// Fields of a stanza that are kept, and under what name.
struct Kept {
  const char* property;
  const char* name;
};
constexpr Kept kKept[] = {
    {"Package", "package"},       {"Version", "version"}, {"Architecture", "arch"},
    {"Maintainer", "maintainer"}, {"Section", "section"}, {"Priority", "priority"},
    {"Source", "source"},         {"Depends", "depends"}, {"Description", "description"}};

std::string LineOf(const Entity& entity) {
  std::string line = "{";
  const auto text_of = [&](const char* property) -> std::string {
    const PropertyValue* value = entity.Get(property);
    return value == nullptr || value->if_string() == nullptr ? "" : *value->if_string();
  };
  for (const Kept& kept : kKept) {
    AppendJsonString(&line, kept.name);
    line += ":";
    // A source is told where it differs from the package.
    std::string text = text_of(kept.property);
    if (kept.name == std::string_view("source")) {
      if (text.empty()) text = text_of("Package");
      text.resize(std::min(text.find(' '), text.size()));
    }
    if (kept.name == std::string_view("section")) {
      if (text.empty()) text = kDebianNoSection;
      // No key may hold what parts an archive's area from its section.
      std::replace(text.begin(), text.end(), '/', ':');
    }
    AppendJsonString(&line, text);
    line += ",";
  }
  const PropertyValue* size = entity.Get("Installed_Size");
  const int64_t* kib = size == nullptr ? nullptr : size->if_int64();
  return line + "\"installed_kib\":" + std::to_string(kib == nullptr ? 0 : *kib) + "}\n";
}

Result<uint64_t> WriteAll(std::unique_ptr<ByteSource> source, const std::string& path) {
  DebianIndexReader reader(std::move(source));
  std::ofstream out(path, std::ios::binary);
  std::set<std::string> seen;
  uint64_t count = 0;
  while (std::optional<Result<Entity>> entity = reader.Next()) {
    // What this machine's index has wrong is not ours to mend.
    if (!entity->ok()) continue;
    // Updates stand beside what they replace: one record a package.
    if (!seen.insert(*(*entity)->Get("Package")->if_string()).second) continue;
    out << LineOf(**entity);
    ++count;
  }
  out.close();
  if (!out) return Status::IoError(path + ": it cannot be written");
  return count;
}

}  // namespace

Result<uint64_t> WritePackagesOf(const std::string& index, const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(index.c_str(), "re"), &std::fclose);
  if (file == nullptr) return Status::NotFound(index + ": it cannot be read");
  return WriteAll(std::make_unique<FdSource>(fileno(file.get())), path);
}

Result<uint64_t> WritePackages(const std::string& path, const PackageSources& sources) {
  const std::unique_ptr<FILE, int (*)(FILE*)> known(popen((sources.command + " 2> /dev/null").c_str(), "re"),
                                                    &pclose);
  if (known != nullptr) {
    PARTITA_ASSIGN(const uint64_t count, WriteAll(std::make_unique<FdSource>(fileno(known.get())), path));
    if (count >= kPackagesMin) return count;
  }
  if (std::filesystem::exists(sources.status_file)) {
    PARTITA_ASSIGN(const uint64_t count, WritePackagesOf(sources.status_file, path));
    if (count > 0) return count;
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return Status::NotFound("this machine knows no Debian packages: neither `" + sources.command + "` nor " +
                          sources.status_file + " gives any; `apt-get update` fetches the index");
}

}  // namespace partita::lab
