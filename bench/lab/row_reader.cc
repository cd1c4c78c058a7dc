#include "bench/lab/row_reader.h"

#include <fcntl.h>
#include <simdjson.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/cli/csv.h"
#include "api/cli/nearest_name.h"
#include "api/json_token.h"
#include "api/names.h"

namespace partita::lab {
namespace {

constexpr std::string_view kCsvTypeSuffix = "@type";

// Reads a file that it owns.
class OwnedFile : public FdSource {
 public:
  explicit OwnedFile(int fd) : FdSource(fd), fd_(fd) {}
  ~OwnedFile() override { ::close(fd_); }

 private:
  const int fd_;
};

const char* KindOfFile(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

Result<std::unique_ptr<ByteSource>> OpenFile(const std::string& path) {
  // Of a FIFO opening would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const std::string why = path + ": " + std::strerror(errno);
    return errno == ENOENT ? Status::NotFound(why) : Status::IoError(why);
  }
  auto file = std::make_unique<OwnedFile>(fd);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return Status::IoError(path + ": " + std::strerror(errno));
  // It is read twice, to learn the types first.
  if (!S_ISREG(info.st_mode)) {
    return Status::InvalidArgument(path + ": is " + KindOfFile(info.st_mode) +
                                   "; rows are read from a plain file");
  }
  return std::unique_ptr<ByteSource>(std::move(file));
}

class CsvRows : public RowReader {
 public:
  CsvRows(std::string path, std::unique_ptr<ByteSource> source, char separator)
      : RowReader(std::move(path)), records_(std::move(source), kRecordBytesMax, separator) {}

  Status ReadHeader(const std::vector<std::string>& given) {
    names_ = given;
    if (names_.empty()) {
      const std::optional<Status> read = records_.Next();
      if (!read) return Status::InvalidArgument(path_ + ": is empty: a header line is missing");
      if (!read->ok()) return read->WithContext(path_);
      for (const CsvRecordParser::Field& field : records_.fields()) names_.push_back(field.text);
    }
    std::vector<std::string_view> sorted(names_.begin(), names_.end());  // There may be 200,000.
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end())
      return Status::InvalidArgument(path_ + ": column " + QuotedForMessage(*twice) + " stands twice");
    for (const std::string& name : names_) {
      if (!name.ends_with(kCsvTypeSuffix)) columns_.push_back(name);
    }
    return Status();
  }

  Status Want(const std::vector<std::string>& columns) override {
    for (const std::string& column : columns) {
      const auto found = std::find(names_.begin(), names_.end(), column);
      if (found == names_.end()) {
        return Status::InvalidArgument(path_ + ": has no column " + QuotedForMessage(column) +
                                       DidYouMean(column, columns_));
      }
      const auto type = std::find(names_.begin(), names_.end(), column + std::string(kCsvTypeSuffix));
      places_.push_back(
          {static_cast<size_t>(found - names_.begin()), static_cast<size_t>(type - names_.begin())});
    }
    return Status();
  }

  std::optional<Status> Next() override {
    std::optional<Status> read = records_.Next();
    // It says the line itself.
    if (read && !read->ok()) return read->WithContext(path_);
    if (!read) return read;
    const std::vector<CsvRecordParser::Field>& fields = records_.fields();
    if (fields.size() != names_.size()) {
      return Status::InvalidArgument(Place() + "the row has " + std::to_string(fields.size()) +
                                     " fields, there are " + std::to_string(names_.size()) + " columns");
    }
    cells_.resize(places_.size());
    for (size_t i = 0; i < places_.size(); ++i) {
      const CsvRecordParser::Field& field = fields[places_[i].value];
      const bool is_empty = field.text.empty() && !field.quoted;
      cells_[i] = {.kind = is_empty ? RowCell::Kind::kEmpty : RowCell::Kind::kText, .text = field.text};
      if (places_[i].type < names_.size()) cells_[i].type_name = fields[places_[i].type].text;
    }
    return Status();
  }

 protected:
  uint64_t line() const override { return records_.line_number(); }

 private:
  struct Wanted {
    size_t value, type;  // The latter is the number of columns where there is none.
  };

  CsvRecords records_;
  std::vector<std::string> names_;
  std::vector<Wanted> places_;  // Of what is wanted.
};

class JsonRows : public RowReader {
 public:
  JsonRows(std::string path, std::unique_ptr<ByteSource> source, bool takes_all)
      : RowReader(std::move(path)), lines_(std::move(source), kRecordBytesMax), takes_all_(takes_all) {}

  Status Want(const std::vector<std::string>& columns) override {
    wanted_ = columns;
    return Status();
  }

  // The members of the first object.
  Status FindColumns() {
    const std::optional<Status> read = Next();
    if (!read) return Status::InvalidArgument(path_ + ": is empty");
    PARTITA_TRY(*read);
    columns_ = std::move(names_);
    return Status();
  }

  std::optional<Status> Next() override {
    while (std::optional<Result<Line>> line = lines_.Next()) {
      if (!line->ok()) return line->status().WithContext(path_);
      const std::string_view text = line->value().text;
      if (text.find_first_not_of(" \t\r") == text.npos) continue;
      return Parse(text);
    }
    return std::nullopt;
  }

 protected:
  uint64_t line() const override { return lines_.line_number(); }

 private:
  Status Wrong(const std::string& what) const { return Status::InvalidArgument(Place() + what); }

  Status Parse(std::string_view text) {
    cells_.assign(wanted_.size(), {});
    names_.clear();
    padded_.assign(text);
    padded_.reserve(text.size() + simdjson::SIMDJSON_PADDING);
    simdjson::ondemand::document document;
    simdjson::ondemand::object object;
    if (parser_.iterate(padded_.data(), text.size(), padded_.capacity()).get(document) ||
        document.get_object().get(object)) {
      return Wrong("is no JSON object");
    }
    for (auto member : object) {
      std::string_view name;
      simdjson::ondemand::value value;
      if (member.unescaped_key().get(name) || member.value().get(value)) return Wrong("is no JSON object");
      PARTITA_TRY(Take(name, value));
    }
    const bool is_whole = document.current_location().error() == simdjson::OUT_OF_BOUNDS;
    return is_whole ? Status() : Wrong("something follows the JSON object");
  }

  Status Take(std::string_view name, simdjson::ondemand::value value) {
    const bool is_type = name.ends_with(kTypeAnnotation);
    const bool is_value = !is_type && !name.starts_with("odata.");
    if (is_value) names_.emplace_back(name);
    const std::string_view of = is_type ? name.substr(0, name.size() - kTypeAnnotation.size()) : name;
    const auto found = std::find(wanted_.begin(), wanted_.end(), of);
    if (found == wanted_.end()) return takes_all_ && is_value ? CheckUnknown(name, value) : Status();
    RowCell& cell = cells_[static_cast<size_t>(found - wanted_.begin())];
    if (is_type) {
      if (value.get_string().get(cell.type_name)) return Wrong(std::string(name) + ": is no text");
      return Status();
    }
    if (cell.kind != RowCell::Kind::kAbsent)
      return Wrong("member " + QuotedForMessage(name) + " stands twice");
    simdjson::ondemand::json_type type;
    if (value.type().get(type)) return Wrong("member " + QuotedForMessage(name) + ": is no JSON value");
    if (type == simdjson::ondemand::json_type::null) return Status();
    if (type == simdjson::ondemand::json_type::array || type == simdjson::ondemand::json_type::object) {
      return Wrong("member " + QuotedForMessage(name) + ": arrays and objects are no values");
    }
    const bool is_text = type == simdjson::ondemand::json_type::string;
    cell.kind = is_text ? RowCell::Kind::kText : RowCell::Kind::kBare;
    if (!is_text) {
      cell.text = value.raw_json_token();
      cell.text = cell.text.substr(0, cell.text.find_last_not_of(" \t\r\n") + 1);
    } else if (value.get_string().get(cell.text)) {
      return Wrong("member " + QuotedForMessage(name) + ": is no JSON text");
    }
    return Status();
  }

  // Left out it would be lost without a word.
  Status CheckUnknown(std::string_view name, simdjson::ondemand::value value) const {
    simdjson::ondemand::json_type type;
    if (value.type().get(type)) return Wrong("member " + QuotedForMessage(name) + ": is no JSON value");
    if (type == simdjson::ondemand::json_type::null) return Status();
    return Wrong("member " + QuotedForMessage(name) +
                 " is not in the first row, whose members are the fields; list the fields in [data.fields]");
  }

  LineReader lines_;
  const bool takes_all_;
  simdjson::ondemand::parser parser_;
  std::string padded_;
  std::vector<std::string> wanted_;
  std::vector<std::string> names_;  // Of the members of the object read last.
};

}  // namespace

Result<std::unique_ptr<RowReader>> RowReader::Open(const std::string& path, const RowFileFormat& format) {
  PARTITA_ASSIGN(std::unique_ptr<ByteSource> source, OpenFile(path));
  if (format.format == RowFormat::kCsv) {
    auto rows = std::make_unique<CsvRows>(path, std::move(source), format.separator);
    PARTITA_TRY(rows->ReadHeader(format.columns));
    return std::unique_ptr<RowReader>(std::move(rows));
  }
  // What stands in the first object is known by reading it, which another reader then does again.
  JsonRows first(path, std::move(source), /*takes_all=*/false);
  PARTITA_TRY(first.FindColumns());
  PARTITA_ASSIGN(source, OpenFile(path));
  auto rows = std::make_unique<JsonRows>(path, std::move(source), format.takes_all);
  rows->columns_ = first.columns();
  return std::unique_ptr<RowReader>(std::move(rows));
}

std::string RowReader::Place() const { return path_ + ":" + std::to_string(line()) + ": "; }

}  // namespace partita::lab
