#include "api/cli/import_checkpoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "api/cli/output_file.h"
#include "engine/base/checksum.h"

namespace partita {

namespace {

constexpr std::string_view kHeader = "partita-resume 3";
constexpr std::string_view kHeadersOfOld[] = {"partita-resume 1", "partita-resume 2"};
constexpr const char* kAdvice = "; remove it and import from the start, or name what it was made for";
constexpr uint64_t kHashedBytes = 4096;

Status SystemFailure(const std::string& what, const std::string& path) {
  return Status::IoError(what + " '" + path + "': " + std::strerror(errno));
}

// The hash of the bytes before `offset`, in hex.
Result<std::string> HashBefore(const std::string& source, uint64_t offset) {
  std::ifstream file(source, std::ios::binary);
  const uint64_t size = std::min(offset, kHashedBytes);
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(offset - size));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!file)
    return Status::InvalidArgument("'" + source + "' has less than " + std::to_string(offset) + " bytes");
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(Hash64(bytes)));
  return std::string(text);
}

bool WriteWhole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

Status WriteDurably(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return SystemFailure("cannot write", fresh);
  const bool whole = WriteWhole(fd, text) && ::fsync(fd) == 0;
  Status status = whole ? Status() : SystemFailure("cannot write", fresh);
  ::close(fd);
  if (status.ok() && std::rename(fresh.c_str(), path.c_str()) != 0)
    status = SystemFailure("cannot replace", path);
  if (!status.ok()) ::unlink(fresh.c_str());
  if (status.ok() && !FlushNameOf(path)) status = SystemFailure("cannot flush the directory of", path);
  return status;
}

bool ReadNumber(const std::map<std::string, std::string>& fields, const char* name, uint64_t* out) {
  const auto field = fields.find(name);
  if (field == fields.end() || field->second.empty() || field->second.size() > 19) return false;
  if (field->second.find_first_not_of("0123456789") != std::string::npos) return false;
  *out = std::stoull(field->second);
  return true;
}

// The first line tells whether the others are to be understood.
Status CheckHeader(const std::string& line, const std::string& path) {
  if (line == kHeader) return Status();
  if (std::count(std::begin(kHeadersOfOld), std::end(kHeadersOfOld), line) > 0) {
    return Status::InvalidArgument("'" + path +
                                   "' was written by an earlier partita, which did not note all that an "
                                   "import hangs on, such as its account and whether the store is still the "
                                   "same; remove it and import from the start");
  }
  return Status::InvalidArgument("'" + path + "' is no checkpoint of an import" + kAdvice);
}

bool IsForTheSame(const ImportCheckpoint& a, const ImportCheckpoint& b) {
  return std::tie(a.table, a.store, a.account, a.mode, a.format) ==
         std::tie(b.table, b.store, b.account, b.mode, b.format);
}

Status CheckOrigin(const TableOrigin& noted, const TableOrigin& now, const std::string& path) {
  if (GoesOnFrom(noted, now)) return Status();
  const std::string begin = "'" + path + "' was made by an import into ";
  const std::string advice = "; remove it and import from the start";
  if (noted.store != now.store)
    return Status::InvalidArgument(begin + "another store that was in this directory" + advice);
  if (noted.created_ticks != now.created_ticks)
    return Status::InvalidArgument(begin + "another table of this name, which was deleted since" + advice);
  return Status::InvalidArgument(begin +
                                 "this store before it was restored, repaired or put back to an earlier "
                                 "state, so it may lack what was imported" +
                                 advice);
}

}  // namespace

std::string CheckpointPath(const std::string& source) { return source + ".partita-resume"; }

Status SaveCheckpoint(const std::string& source, const ImportCheckpoint& checkpoint) {
  PARTITA_ASSIGN(std::string before, HashBefore(source, checkpoint.position.offset));
  std::ostringstream text;
  text << kHeader << "\ntable " << checkpoint.table << "\nstore " << checkpoint.store << "\nstore_id "
       << checkpoint.origin.store << "\nincarnation " << checkpoint.origin.incarnation << "\ntable_created "
       << checkpoint.origin.created_ticks << "\naccount " << checkpoint.account << "\nmode "
       << checkpoint.mode << "\nformat " << checkpoint.format << "\noffset " << checkpoint.position.offset
       << "\nline " << checkpoint.position.line << "\nimported " << checkpoint.position.imported << "\nbad "
       << checkpoint.position.bad << "\nbefore " << before << "\n";
  return WriteDurably(CheckpointPath(source), text.str());
}

Result<std::optional<ImportCheckpoint>> LoadCheckpoint(const std::string& source,
                                                       const ImportCheckpoint& expected) {
  const std::string path = CheckpointPath(source);
  std::ifstream file(path);
  if (!file) return std::optional<ImportCheckpoint>();
  std::string line;
  std::getline(file, line);
  PARTITA_TRY(CheckHeader(line, path));
  std::map<std::string, std::string> fields;
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    if (space != std::string::npos) fields[line.substr(0, space)] = line.substr(space + 1);
  }
  ImportCheckpoint found{.table = fields["table"],
                         .store = fields["store"],
                         .origin = {.store = fields["store_id"]},
                         .account = fields["account"],
                         .mode = fields["mode"],
                         .format = fields["format"],
                         .position = {}};
  if (!ReadNumber(fields, "incarnation", &found.origin.incarnation) ||
      !ReadNumber(fields, "table_created", &found.origin.created_ticks) ||
      !ReadNumber(fields, "offset", &found.position.offset) ||
      !ReadNumber(fields, "line", &found.position.line) ||
      !ReadNumber(fields, "imported", &found.position.imported) ||
      !ReadNumber(fields, "bad", &found.position.bad)) {
    return Status::InvalidArgument("'" + path + "' is damaged" + kAdvice);
  }
  if (!IsForTheSame(found, expected)) {
    return Status::InvalidArgument("'" + path + "' was made by an import of format " + found.format +
                                   " into table '" + found.table + "' of account '" + found.account +
                                   "' in store '" + found.store + "' with --mode " + found.mode + kAdvice);
  }
  PARTITA_TRY(CheckOrigin(found.origin, expected.origin, path));
  Result<std::string> before = HashBefore(source, found.position.offset);
  if (!before.ok() || *before != fields["before"]) {
    return Status::InvalidArgument("'" + source + "' has changed since '" + path + "' was written" + kAdvice);
  }
  return std::optional<ImportCheckpoint>(std::move(found));
}

Status RemoveCheckpoint(const std::string& source) {
  const std::string path = CheckpointPath(source);
  if (::unlink(path.c_str()) != 0) return errno == ENOENT ? Status() : SystemFailure("cannot remove", path);
  return FlushNameOf(path) ? Status() : SystemFailure("cannot flush the directory of", path);
}

}  // namespace partita
