#include "api/cli/record_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "api/ascii.h"
#include "api/cli/csv.h"
#include "api/cli/debian_index.h"
#include "api/cli/jsonl.h"

namespace partita {

namespace {

std::optional<RecordFormat> FormatOfEnding(const std::string& file) {
  const auto ends_with = [&](std::string_view ending) {
    return file.size() >= ending.size() &&
           EqualIgnoringCase(std::string_view(file).substr(file.size() - ending.size()), ending);
  };
  for (const std::string_view ending : {".jsonl", ".ndjson", ".json"}) {
    if (ends_with(ending)) return RecordFormat::kJsonLines;
  }
  if (ends_with(".csv")) return RecordFormat::kCsv;
  return std::nullopt;
}

}  // namespace

std::string_view FormatName(RecordFormat format) {
  switch (format) {
    case RecordFormat::kJsonLines:
      return "jsonl";
    case RecordFormat::kCsv:
      return "csv";
    case RecordFormat::kDebianIndex:
      return "debian";
  }
  return "unknown";
}

Result<RecordFormat> ChooseFormat(std::string_view name, const std::string& file) {
  if (name == "jsonl") return RecordFormat::kJsonLines;
  if (name == "csv") return RecordFormat::kCsv;
  if (name == "debian") return RecordFormat::kDebianIndex;
  if (!name.empty()) {
    return Status::InvalidArgument("format '" + std::string(name) + "' is none of jsonl, csv, debian");
  }
  if (const std::optional<RecordFormat> format = FormatOfEnding(file)) return *format;
  return Status::InvalidArgument("the format of '" + file +
                                 "' does not show; say --format jsonl, csv or debian");
}

Result<RecordFormat> ChooseExportFormat(std::string_view name, const std::string& file) {
  if (name == "jsonl") return RecordFormat::kJsonLines;
  if (name == "csv") return RecordFormat::kCsv;
  if (name.empty()) return FormatOfEnding(file).value_or(RecordFormat::kJsonLines);
  return Status::InvalidArgument("format '" + std::string(name) +
                                 "' is none of jsonl and csv, which export writes");
}

bool HasUnknownEnding(const std::string& file) {
  return std::filesystem::path(file).has_extension() && !FormatOfEnding(file);
}

Result<std::unique_ptr<RecordSource>> RecordSource::Open(const std::string& file, RecordFormat format,
                                                         int stop_fd) {
  std::unique_ptr<RecordSource> source(new RecordSource());
  const bool standard_input = file == "-";
  if (!standard_input) {
    source->fd_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (source->fd_ < 0) {
      const std::string why = "cannot read '" + file + "': " + std::strerror(errno);
      return errno == ENOENT ? Status::NotFound(why) : Status::IoError(why);
    }
  }
  struct stat info {};
  if (!standard_input && ::fstat(source->fd_, &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Status::InvalidArgument("'" + file + "' is a directory; name a file");
    source->resumable_ = S_ISREG(info.st_mode);
    if (source->resumable_) source->size_ = static_cast<uint64_t>(info.st_size);
  }
  auto bytes = std::make_unique<FdSource>(standard_input ? STDIN_FILENO : source->fd_, stop_fd);
  switch (format) {
    case RecordFormat::kJsonLines:
      source->reader_ = std::make_unique<JsonLinesReader>(std::move(bytes));
      break;
    case RecordFormat::kCsv: {
      PARTITA_ASSIGN(source->reader_, CsvReader::Open(std::move(bytes)));
      break;
    }
    case RecordFormat::kDebianIndex:
      source->reader_ = std::make_unique<DebianIndexReader>(std::move(bytes));
      break;
  }
  return source;
}

RecordSource::~RecordSource() {
  reader_.reset();
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace partita
