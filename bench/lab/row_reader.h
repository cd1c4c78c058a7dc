#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace partita::lab {

enum class RowFormat : uint8_t { kCsv, kJsonLines };

// How a file of rows is to be read.
struct RowFileFormat {
  RowFormat format = RowFormat::kCsv;
  char separator = ',';              // CSV: between fields.
  std::vector<std::string> columns;  // CSV: their names, of a file without a header line.
  // JSON: all columns are meant, so that a row with a member that is none of them is wrong.
  bool takes_all = false;
};

// One value as the file has it. Views are valid until the next row.
struct RowCell {
  enum class Kind : uint8_t {
    kAbsent,  // JSON: no such member, or null.
    kEmpty,   // CSV: nothing, not even quotes.
    kText,    // CSV, or a JSON string without its escapes.
    kBare,    // A JSON number, true or false, as written.
  } kind = Kind::kAbsent;
  std::string_view text;
  std::string_view type_name;  // "Edm.Int64": of `Name@type` (CSV), `Name@odata.type` (JSON); else empty.
};

// Gives the rows of a file one by one, the columns that were asked for. CSV is that of RFC 4180
// (api/cli/csv.h), also as AzCopy 7.3 and Storage Explorer write it, with a type column behind each. JSON
// lines have an object a line, of texts, numbers, true, false and null. Memory is bounded by the longest
// record (kRecordBytesMax). Used by one thread.
class RowReader {
 public:
  // Messages begin with the file's name. kNotFound, kIoError: it cannot be read; kInvalidArgument: it is
  // empty, or its header is wrong.
  static Result<std::unique_ptr<RowReader>> Open(const std::string& path, const RowFileFormat& format);
  virtual ~RowReader() = default;

  // All that there are, without those that tell types: of the header line, or of the first JSON object.
  const std::vector<std::string>& columns() const { return columns_; }
  // Before the first Next: cells() has these, in this order. kInvalidArgument: CSV has no such column, with
  // the nearest name.
  virtual Status Want(const std::vector<std::string>& columns) = 0;

  // The next row: ok, or what is wrong with it, in front of it file and line; nothing at the end.
  virtual std::optional<Status> Next() = 0;
  const std::vector<RowCell>& cells() const { return cells_; }
  // "orders.csv:17: ", where the row begins that was given last.
  std::string Place() const;

 protected:
  explicit RowReader(std::string path) : path_(std::move(path)) {}
  virtual uint64_t line() const = 0;

  const std::string path_;
  std::vector<std::string> columns_;
  std::vector<RowCell> cells_;
};

}  // namespace partita::lab
