#pragma once
#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "api/cli/console.h"
#include "engine/base/status.h"

namespace partita {

// Makes durable that the file `path` bears its name, or that none does. False: errno tells why.
bool FlushNameOf(const std::string& path);

// What a command writes to where its user said: a file, what is no regular file itself, or the console.
//
// A file appears under its name only when it is whole: it is written as FILE.partita-partial, a name that
// nobody else gives a file, which is locked so that nobody else replaces it, flushed, and then renamed; where
// the name is a link, all of that happens where it leads to. A device or a pipe is written to as it is:
// renamed over, it would be gone. Not finished, the file is as it was before. Used by one thread.
class OutputFile {
 public:
  // `name`: "" and "-" are the console, which outlives this.
  OutputFile(const std::string& name, Console& console);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // kInvalidArgument: it is a directory; kBusy: another command writes it; kIoError, kNoSpace.
  Status Open();
  // Once it is open: whether a file is written that takes its name at the end.
  bool IsReplaced() const { return is_replaced_; }
  // REQUIRES: Open returned ok, as for Finish.
  Status Write(std::string_view text);
  // A file that is replaced is durable under its name then.
  Status Finish();

 private:
  Status ChooseNames();
  Status MakeWorkingFile();
  Status RemoveLeftover();
  Status LockWorkingFile(int fd) const;
  Status InUse() const;
  bool StillBearsItsName(int fd) const;
  bool TakeMode(int fd) const;
  Status PutInPlace();
  Status Failure(const char* what) const;

  const std::string file_;  // As it was named; empty: the console.
  Console& console_;
  std::string working_name_, final_name_;
  std::optional<struct stat> replaced_;  // The file that it takes the place of.
  std::ofstream stream_;
  bool is_replaced_ = false;  // What bears the final name, if anything does: else it is written to as it is.
  int lock_ = -1;             // The working file, once it is this one's.
  bool finished_ = false;
};

}  // namespace partita
