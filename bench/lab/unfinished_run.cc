#include "bench/lab/unfinished_run.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "api/cli/version.h"
#include "bench/lab/cell_file.h"
#include "bench/lab/durable_file.h"
#include "engine/base/checksum.h"
#include "engine/base/hex.h"

namespace partita::lab {
namespace {

constexpr const char* kHeader = "partita lab run 1";

struct RunPart {
  const char* name;
  std::string RunIdentity::*value;
  const char* changed;  // What is said when it differs.
};
constexpr std::array<RunPart, 5> kParts = {{
    {"experiment", &RunIdentity::experiment, "the experiment has changed since, or a file it draws in"},
    {"seed", &RunIdentity::seed, "the seed is another"},
    {"target", &RunIdentity::target, "the target is another"},
    {"io", &RunIdentity::io, "--io is another"},
    {"build", &RunIdentity::build, "this is another build of partita"},
}};

std::string TextOf(const RunIdentity& identity) {
  std::string text = std::string(kHeader) + "\n";
  for (const RunPart& part : kParts) text += std::string(part.name) + " " + identity.*part.value + "\n";
  return text;
}

// Empty: they are the same.
std::string DifferenceOf(const std::string& kept, const std::string& wanted, const RunIdentity& identity) {
  if (kept == wanted) return "";
  if (!kept.starts_with(std::string(kHeader) + "\n")) return "another version of partita began it";
  for (const RunPart& part : kParts) {
    if (kept.find("\n" + std::string(part.name) + " " + identity.*part.value + "\n") == std::string::npos) {
      return part.changed;
    }
  }
  return "it is damaged";
}

}  // namespace

std::string BuildOfProgram() {
  static const std::string build = [] {
    // In pieces: a program with all that a debugger wants is large.
    std::ifstream program("/proc/self/exe", std::ios::binary);
    StreamHash hash;
    std::vector<char> piece(1 << 20);
    uint64_t size = 0;
    do {
      program.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      hash.Update({piece.data(), static_cast<size_t>(program.gcount())});
      size += static_cast<uint64_t>(program.gcount());
    } while (program);
    const bool is_whole = size > 0 && program.eof() && !program.bad();
    return std::string(kPartitaVersion) + "-" + (is_whole ? HexText(hash.Digest()) : "unknown");
  }();
  return build;
}

Result<UnfinishedRun> UnfinishedRun::Open(const std::string& parent, const RunIdentity& identity,
                                          Start start) {
  UnfinishedRun run(parent + "/unfinished");
  std::error_code failed;
  std::filesystem::create_directories(run.path_, failed);
  if (failed) return Status::IoError(run.path_ + ": " + failed.message());
  PARTITA_TRY(run.Lock());
  PARTITA_TRY(run.Begin(identity, start));
  return run;
}

UnfinishedRun::UnfinishedRun(UnfinishedRun&& other) noexcept
    : path_(other.path_),
      lock_(std::exchange(other.lock_, -1)),
      run_(other.run_),
      was_begun_(other.was_begun_),
      tables_(std::move(other.tables_)),
      kept_(std::move(other.kept_)),
      kept_count_(other.kept_count_) {}

UnfinishedRun::~UnfinishedRun() {
  if (lock_ < 0) return;
  if (kept_count_ == 0 && tables_.empty()) Remove();
  ::close(lock_);
}

Status UnfinishedRun::Lock() {
  const std::string path = path_ + "/lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return Status::IoError(path + ": " + std::strerror(errno));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    const Status status = errno == EWOULDBLOCK ? Status::Busy(path_ + ": another process runs it just now")
                                               : Status::IoError(path + ": " + std::strerror(errno));
    ::close(file);
    return status;
  }
  lock_ = file;
  return Status();
}

Status UnfinishedRun::Begin(const RunIdentity& identity, Start start) {
  const std::string wanted = TextOf(identity), path = path_ + "/run";
  run_ = Hash64(wanted);
  const Result<std::string> before = ReadWholeFile(path);
  if (!before.ok() && before.code() != Code::kNotFound) return before.status();
  was_begun_ = before.ok() && *before == wanted;
  ReadTables();
  // What was killed in front of its first cell left nothing.
  const bool any = before.ok() && std::filesystem::exists(CellPath(0));
  kept_count_ = any ? 1 : 0;  // So that a refusal leaves it.
  if (any && start == Start::kNew) {
    return Status::AlreadyExists(path_ +
                                 " holds a run that was not finished: --resume goes on with it, --force "
                                 "begins anew");
  }
  if (any && start == Start::kResume) {
    const std::string difference = DifferenceOf(*before, wanted, identity);
    if (!difference.empty()) {
      return Status::PreconditionFailed(path_ + " cannot be gone on with: " + difference +
                                        "; --force begins anew");
    }
    ReadCells();
  } else {
    kept_count_ = 0;
  }
  Clean();
  return kept_count_ > 0 ? Status() : WriteDurably(path, wanted);
}

void UnfinishedRun::ReadCells() {
  kept_.clear();
  for (;;) {
    const Result<std::string> bytes = ReadWholeFile(CellPath(kept_.size()));
    if (!bytes.ok()) break;
    Result<CellFigures> cell = DecodeCell(*bytes, run_);
    if (!cell.ok()) break;  // It, and what follows, is run again.
    kept_.push_back(std::move(*cell));
  }
  kept_count_ = kept_.size();
}

void UnfinishedRun::ReadTables() {
  const Result<std::string> text = ReadWholeFile(path_ + "/tables");
  if (!text.ok()) return;
  std::istringstream lines(*text);
  for (RemoteTable table; lines >> table.endpoint >> table.name;) tables_.push_back(table);
}

Status UnfinishedRun::WriteTables() const {
  std::string text;
  for (const RemoteTable& table : tables_) text += table.endpoint + " " + table.name + "\n";
  return WriteDurably(path_ + "/tables", text);
}

Status UnfinishedRun::NoteTable(const RemoteTable& table) {
  tables_.push_back(table);
  return WriteTables();
}

void UnfinishedRun::TableIsGone(const RemoteTable& table) {
  std::erase(tables_, table);
  // Where that is not noted it is dropped once more, which does no harm.
  (void)WriteTables();
}

std::string UnfinishedRun::CellPath(size_t number) const {
  char name[32];
  std::snprintf(name, sizeof(name), "/cell-%06zu", number);
  return path_ + name;
}

void UnfinishedRun::Clean() {
  std::error_code ignored;
  for (size_t i = kept_count_;; ++i) {
    if (!std::filesystem::remove(CellPath(i), ignored)) break;
  }
  std::vector<std::filesystem::path> goes;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("work-") || name.ends_with(".new")) goes.push_back(entry.path());
    if (name.starts_with("cell-") && entry.path() >= CellPath(kept_count_)) goes.push_back(entry.path());
    if (name == "run" && kept_count_ == 0) goes.push_back(entry.path());
  }
  for (const std::filesystem::path& path : goes) std::filesystem::remove_all(path, ignored);
}

Status UnfinishedRun::Keep(const CellFigures& cell) {
  PARTITA_TRY(WriteDurably(CellPath(kept_count_), EncodeCell(cell, run_)));
  ++kept_count_;
  return Status();
}

void UnfinishedRun::Remove() {
  // First what makes it one: what a kill leaves behind that is nothing.
  std::error_code ignored;
  std::filesystem::remove(path_ + "/run", ignored);
  std::filesystem::remove(path_ + "/tables", ignored);
  tables_.clear();
  kept_count_ = 0;
  Clean();
  std::filesystem::remove(path_ + "/lock", ignored);
  std::filesystem::remove(path_, ignored);  // Unless somebody else put something there.
}

}  // namespace partita::lab
