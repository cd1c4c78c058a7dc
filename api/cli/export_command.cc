#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "api/cli/commands.h"
#include "api/cli/csv.h"
#include "api/cli/figures.h"
#include "api/cli/jsonl.h"
#include "api/cli/open_store.h"
#include "api/cli/progress.h"
#include "api/cli/record_source.h"

// partita export: pages of a scan, appended to a file.
//
// A file appears under its name only when it is whole: it is written as FILE.partial, which is locked so that
// nobody else replaces it, flushed, and then renamed; where the name is a link, all of that happens where it
// leads to. A device or a pipe is written to as it is: renamed over, it would be gone. CSV needs its columns
// before its first record, so the table is read twice; an entity that changes in between and no longer fits
// the columns is told as a bad record.

namespace partita {

namespace {

constexpr uint32_t kExportPage = 1000;

// Where a name leads, through however many links.
struct Destination {
  std::string file;      // It need not be there.
  bool is_open = false;  // By way of a process's descriptors, as of /dev/stdout: what somebody has open.
};

// REQUIRES: no loop.
Destination Follow(const std::string& name) {
  constexpr int kLinksMax = 40;  // As many as the kernel follows.
  std::filesystem::path path = name;
  for (int followed = 0; followed < kLinksMax; ++followed) {
    if (path.string().starts_with("/proc/") || path.string().starts_with("/dev/fd/"))
      return {path.string(), /*is_open=*/true};
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) break;
    path = path.parent_path() / next;  // `next` alone where that begins at the root.
  }
  return {path.string(), /*is_open=*/false};
}

// Where the text goes: a file under its working name, what is no regular file itself, or the console.
class ExportTarget {
 public:
  ExportTarget(const std::string& file, Console& console)
      : file_(file == "-" ? "" : file), console_(console), working_name_(file_) {}
  ~ExportTarget() {
    if (lock_ < 0) return;
    if (!finished_ && StillBearsItsName(lock_)) ::unlink(working_name_.c_str());
    ::close(lock_);
  }

  Status Open() {
    if (file_.empty()) return Status();
    PARTITA_TRY(ChooseNames());
    if (is_replaced_) PARTITA_TRY(MakeWorkingFile());
    stream_.open(working_name_, std::ios::binary | (is_replaced_ ? std::ios::trunc : std::ios::app));
    return stream_ ? Status() : Failure("cannot write");
  }

  // Once it is open: whether a file is written that takes its name at the end.
  bool IsReplaced() const { return is_replaced_; }

  Status Write(std::string_view text) {
    std::ostream& out = file_.empty() ? console_.out : stream_;
    errno = 0;
    if (out.write(text.data(), static_cast<std::streamsize>(text.size()))) return Status();
    return Failure("cannot write");
  }

  Status Finish() {
    errno = 0;
    if (file_.empty()) {
      console_.out.flush();
      return console_.out ? Status() : Failure("cannot write");
    }
    if (!stream_.flush()) return Failure("cannot write");  // Closing may forget why.
    stream_.close();
    if (!stream_) return Failure("cannot write");
    return is_replaced_ ? PutInPlace() : Status();
  }

 private:
  Status ChooseNames() {
    struct stat info {};
    const bool is_there = ::stat(file_.c_str(), &info) == 0;
    if (!is_there && errno != ENOENT) return Failure("cannot write");
    if (is_there && S_ISDIR(info.st_mode)) {
      return Status::InvalidArgument("'" + file_ + "' is a directory; name a file");
    }
    const Destination to = Follow(file_);
    is_replaced_ = !is_there || (S_ISREG(info.st_mode) && !to.is_open);
    if (!is_replaced_) return Status();
    final_name_ = to.file;
    working_name_ = final_name_ + ".partial";
    if (is_there) replaced_ = info;
    return Status();
  }

  // Private until it is whole, where it replaces a file, whose mode it then gets.
  Status MakeWorkingFile() {
    PARTITA_TRY(RemoveLeftover());
    const mode_t mode = replaced_ ? S_IRUSR | S_IWUSR : 0666;
    const int fd = ::open(working_name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return errno == EEXIST ? InUse() : Failure("cannot write");
    const Status locked = LockWorkingFile(fd);
    if (locked.ok() && StillBearsItsName(fd)) {
      lock_ = fd;
      return Status();
    }
    ::close(fd);
    return locked.ok() ? InUse() : locked;
  }

  // What a killed export left, which nobody has locked.
  Status RemoveLeftover() {
    const int fd = ::open(working_name_.c_str(), O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) return Status();
    if (fd < 0 && errno != ELOOP) return Failure("cannot write");
    Status removed = fd < 0 ? Status() : LockWorkingFile(fd);
    if (removed.ok() && fd >= 0 && !StillBearsItsName(fd)) removed = InUse();
    if (removed.ok() && ::unlink(working_name_.c_str()) != 0) removed = Failure("cannot write");
    if (fd >= 0) ::close(fd);
    return removed;
  }

  Status LockWorkingFile(int fd) const {
    const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return taken ? InUse() : Status();  // Where nothing can be locked, the name tells in the end.
  }

  Status InUse() const {
    return Status::Busy("another export is writing '" + working_name_ +
                        "'; wait for it, or name another file");
  }

  bool StillBearsItsName(int fd) const {
    struct stat own {
    }, named{};
    return ::fstat(fd, &own) == 0 && ::lstat(working_name_.c_str(), &named) == 0 &&
           own.st_dev == named.st_dev && own.st_ino == named.st_ino;
  }

  // The mode of what is replaced, and its group: for another group its mode may be too wide.
  bool TakeMode(int fd) const {
    if (!replaced_) return true;
    mode_t mode = replaced_->st_mode & 07777;
    struct stat own {};
    if (fstat(fd, &own) != 0) return false;
    const bool has_group = own.st_gid == replaced_->st_gid || ::fchown(fd, -1, replaced_->st_gid) == 0;
    if (!has_group) mode &= ~static_cast<mode_t>(S_IRWXG | S_ISGID);
    return ::fchmod(fd, mode) == 0;
  }

  Status PutInPlace() {
    if (!TakeMode(lock_) || ::fsync(lock_) != 0) return Failure("cannot write");
    if (!StillBearsItsName(lock_)) {
      return Status::IoError("'" + working_name_ + "' was removed or replaced while it was written");
    }
    if (std::rename(working_name_.c_str(), final_name_.c_str()) != 0) return Failure("cannot replace");
    finished_ = true;
    return FlushNames();
  }

  Status FlushNames() const {
    const std::string parent = std::filesystem::path(final_name_).parent_path().string();
    const int fd = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool flushed = fd >= 0 && ::fsync(fd) == 0;
    const Status status = flushed ? Status() : Failure("cannot flush the directory of");
    if (fd >= 0) ::close(fd);
    return status;
  }

  Status Failure(const char* what) const {
    const std::string name = file_.empty() ? "standard output" : "'" + working_name_ + "'";
    const std::string text = std::string(what) + " " + name + ": " + std::strerror(errno);
    return errno == ENOSPC ? Status::NoSpace(text) : Status::IoError(text);
  }

  const std::string file_;  // As it was named; empty: the console.
  Console& console_;
  std::string working_name_, final_name_;
  std::optional<struct stat> replaced_;  // The file that it takes the place of.
  std::ofstream stream_;
  bool is_replaced_ = false;  // What bears the final name, if anything does: else it is written to as it is.
  int lock_ = -1;             // The working file, once it is this one's.
  bool finished_ = false;
};

class ExportCommand {
 public:
  ExportCommand(const StoreFlags& store, const ExportFlags& flags, Console& console)
      : store_flags_(store), flags_(flags), console_(console), target_(flags.file, console) {}

  ExitCode Run() {
    Status done = Prepare();
    if (!done.ok() && database_ == nullptr) return FailToStart(console_, done);
    if (done.ok()) done = Export();
    const bool findings = bad_ > 0 || skipped_ > 0;
    ExitCode code = done.ok() ? (findings ? ExitCode::kFindings : ExitCode::kOk) : Fail(console_, done);
    return database_ == nullptr ? code : CloseStore(*database_, code, console_);
  }

 private:
  Status Prepare() {
    PARTITA_ASSIGN(format_, ChooseExportFormat(flags_.format, flags_.file));
    PARTITA_ASSIGN(database_, OpenStore(store_flags_, IfNoStore::kFail, console_));
    return Status();
  }

  Status Export() {
    PARTITA_ASSIGN(Table table, OpenTableOf(*database_, flags_.table));
    // A count cannot be stopped half way.
    if (format_ != RecordFormat::kCsv && console_.err_is_terminal && !flags_.skip_damage) {
      PARTITA_ASSIGN(total_, table.Count({}));
    }
    console_.interrupts.Arm();
    if (format_ == RecordFormat::kCsv) PARTITA_TRY(LearnColumns(table));
    PARTITA_TRY(target_.Open());
    if (format_ == RecordFormat::kCsv) PARTITA_TRY(target_.Write(columns_.HeaderLine()));
    Progress progress(console_, "export", Progress::Unit::kRecords, total_);
    PARTITA_TRY(EachPage(table, [this, &progress](const Page& page) { return WritePage(page, progress); }));
    PARTITA_TRY(target_.Finish());
    progress.Finish();
    console_.err << "exported " << FormatCount(exported_) << " records, " << FormatCount(bad_) << " bad, in "
                 << FormatSeconds(progress.seconds()) << "\n";
    if (flags_.format.empty() && HasUnknownEnding(flags_.file)) {
      console_.err << "partita: the ending of '" << flags_.file
                   << "' tells no format: it has JSON lines; --format csv writes the other one\n";
    }
    return Status();
  }

  Status LearnColumns(const Table& table) {
    Progress progress(console_, "columns", Progress::Unit::kRecords, 0);
    return EachPage(table, [this, &progress](const Page& page) {
      for (const Entity& entity : page.entities) columns_.Observe(entity);
      total_ += page.entities.size();
      progress.Update(total_, total_);
      return Status();
    });
  }

  Status EachPage(const Table& table, const std::function<Status(const Page&)>& handle) {
    ScanOptions options;
    options.limit = kExportPage;
    options.skip_damage = flags_.skip_damage;
    do {
      if (console_.interrupts.Requested()) return Interrupted();
      PARTITA_ASSIGN(Page page, table.Scan(options));
      PARTITA_TRY(handle(page));
      options.continuation = page.continuation;
    } while (!options.continuation.empty());
    return Status();
  }

  // What went to a device, a pipe or the console is not taken back.
  Status Interrupted() const {
    if (target_.IsReplaced() || exported_ == 0) return Status::Cancelled("interrupted; nothing was exported");
    return Status::Cancelled("interrupted; " + FormatCount(exported_) +
                             " records were written, the rest was not");
  }

  Status WritePage(const Page& page, Progress& progress) {
    text_.clear();
    for (const SkippedKeys& skipped : page.skipped) {
      ++skipped_;
      progress.Message("skipped: " + skipped.keys + ": " + skipped.why);
    }
    for (const Entity& entity : page.entities) {
      if (format_ == RecordFormat::kCsv) {
        const Status appended = AppendCsvRecord(&text_, columns_, entity);
        if (!appended.ok()) {
          ++bad_;
          progress.Message("changed while it was exported: '" + entity.partition_key() + "' '" +
                           entity.row_key() + "': " + appended.message());
          continue;
        }
      } else {
        AppendJsonLine(&text_, entity);
      }
      ++exported_;
    }
    progress.Update(exported_, exported_);
    return target_.Write(text_);
  }

  const StoreFlags& store_flags_;
  const ExportFlags& flags_;
  Console& console_;
  RecordFormat format_ = RecordFormat::kJsonLines;
  std::unique_ptr<Database> database_;
  ExportTarget target_;
  CsvColumns columns_;
  std::string text_;
  uint64_t total_ = 0, exported_ = 0, bad_ = 0, skipped_ = 0;
};

}  // namespace

ExitCode RunExport(const StoreFlags& store, const ExportFlags& flags, Console& console) {
  return ExportCommand(store, flags, console).Run();
}

}  // namespace partita
