#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "api/cli/record_reader.h"
#include "engine/base/result.h"

namespace partita {

// The formats the command line reads and writes by name.
enum class RecordFormat : uint8_t { kJsonLines, kCsv, kDebianIndex };
std::string_view FormatName(RecordFormat format);

// `name` when given, else by the file's ending (.jsonl, .ndjson, .json; .csv), in letters of either case.
// kInvalidArgument when neither tells.
Result<RecordFormat> ChooseFormat(std::string_view name, const std::string& file);
// The same for a file to be written, which is JSON lines when neither tells. kInvalidArgument: `name` is no
// format that is written.
Result<RecordFormat> ChooseExportFormat(std::string_view name, const std::string& file);

// Whether the file has an ending, and none that tells a format.
bool HasUnknownEnding(const std::string& file);

// A file, or standard input for "-", opened to be read as records.
class RecordSource {
 public:
  // kNotFound, kIoError; what the reader's header check finds (CSV). `stop_fd`: as FdSource's.
  static Result<std::unique_ptr<RecordSource>> Open(const std::string& file, RecordFormat format,
                                                    int stop_fd = -1);
  ~RecordSource();
  RecordSource(const RecordSource&) = delete;
  RecordSource& operator=(const RecordSource&) = delete;

  RecordReader& reader() { return *reader_; }
  // Bytes of the file; 0 when not known (a pipe).
  uint64_t size() const { return size_; }
  // False for pipes, which cannot be read again from a place.
  bool resumable() const { return resumable_; }

 private:
  RecordSource() = default;

  int fd_ = -1;
  uint64_t size_ = 0;
  bool resumable_ = false;
  std::unique_ptr<RecordReader> reader_;
};

}  // namespace partita
