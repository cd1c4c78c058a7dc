#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/cli/line_reader.h"
#include "api/cli/record_reader.h"
#include "api/entity.h"

namespace partita {

// CSV after RFC 4180 with a header line:
//
//   PartitionKey,RowKey,Name,Age,Age@type
//   p,r1,"Doe, J.",42,Edm.Int32
//
// A column `X` holds the values of property X, an optional column `X@type` their types; where it is
// missing or empty the value is a String: nothing is guessed. An empty field without quotes means that
// the entity has no such property, unless its type is given; `""` is the empty string. PartitionKey
// and RowKey must be there; Timestamp and columns that begin `odata.` are ignored. Values are in the
// text forms of api/value_text.h. Line ends are LF or CR LF; a field in quotes may hold both, and a
// quote as `""`. Columns stand in any order.

// What a header line says. Shared by reader and writer.
class CsvColumns {
 public:
  // A property with its two columns, by position in the line.
  struct Column {
    std::string name;
    size_t value = kAbsent;
    size_t type = kAbsent;
  };
  static constexpr size_t kAbsent = SIZE_MAX;

  const std::vector<Column>& columns() const { return columns_; }
  size_t field_count() const { return field_count_; }
  size_t partition_key() const { return partition_key_; }
  size_t row_key() const { return row_key_; }

  // kInvalidArgument: a key is missing, a column stands twice, a name breaks the rules, or `X@type`
  // stands without X.
  static Result<CsvColumns> FromHeader(const std::vector<std::string>& fields);

  // Before writing: makes room for this entity's properties, in the order they are first seen, and
  // for types where one is not a String.
  void Observe(const Entity& entity);

  // Before writing: a column Timestamp behind the keys, which readers pass over.
  void AddTimestamp() { has_timestamp_ = true; }
  bool has_timestamp() const { return has_timestamp_; }

  // The header line for what was observed, with its line end.
  std::string HeaderLine();

 private:
  Column* FindOrAdd(std::string_view name);

  std::vector<Column> columns_;
  std::unordered_map<std::string, size_t> index_;
  size_t field_count_ = 0;
  size_t partition_key_ = kAbsent;
  size_t row_key_ = kAbsent;
  bool has_timestamp_ = false;
};

// Splits lines into fields. A field in quotes may run over lines; feed them until the record is done.
// Used by one thread.
class CsvRecordParser {
 public:
  explicit CsvRecordParser(char separator = ',') : separator_(separator) {}

  enum class State : uint8_t {
    kDone,      // fields() holds the record.
    kNeedLine,  // A quote is open: feed the next line.
    kError,     // error() says what; the record ends with this line.
  };
  void Start();
  State Feed(std::string_view text, std::string_view ending);

  struct Field {
    std::string text;
    bool quoted = false;
  };
  // Of a record with more of them nothing is kept: so they take no more memory than one of the largest,
  // however many a line of separators makes.
  static constexpr size_t kFieldsMax = kRecordBytesMax / sizeof(Field);
  bool has_too_many_fields() const { return has_too_many_fields_; }
  const std::vector<Field>& fields() const { return fields_; }
  const std::string& error() const { return error_; }
  // Bytes fed since Start.
  size_t bytes() const { return bytes_; }
  // Forgets the text so far, so that a record that is too large takes no memory until its end.
  void DropText();

 private:
  // Between two characters of a record.
  enum class Position : uint8_t { kFieldStart, kPlain, kQuoted, kAfterQuote };
  void StartField();
  bool FeedPlain(char c, size_t column);
  bool FeedAfterQuote(char c, size_t column);

  const char separator_;
  std::vector<Field> fields_;
  bool has_too_many_fields_ = false;
  std::string error_;
  size_t bytes_ = 0;
  Position position_ = Position::kFieldStart;
};

// The records of an input, the header among them. Used by one thread.
class CsvRecords {
 public:
  explicit CsvRecords(std::unique_ptr<ByteSource> source, size_t record_bytes_max = kRecordBytesMax,
                      char separator = ',');

  // The next record: ok, or what is wrong with it; nothing at the end. A record with a misplaced quote costs
  // its line. One that is too large, or has too many fields, or whose quote is never closed, is skipped to
  // its end: what stands within quotes is never taken for a record. Blank lines are skipped.
  std::optional<Status> Next();

  const std::vector<CsvRecordParser::Field>& fields() const { return parser_.fields(); }
  // On which the record given last begins.
  uint64_t line_number() const { return record_line_; }
  LineReader& lines() { return lines_; }
  const LineReader& lines() const { return lines_; }

 private:
  std::optional<Status> Finish(CsvRecordParser::State state, bool too_large);

  LineReader lines_;
  const size_t record_bytes_max_;
  CsvRecordParser parser_;
  uint64_t record_line_ = 0;
};

class CsvReader : public RecordReader {
 public:
  // Reads the header line. kInvalidArgument: it breaks a rule, or the input is empty; kIoError.
  static Result<std::unique_ptr<CsvReader>> Open(std::unique_ptr<ByteSource> source,
                                                 size_t record_bytes_max = kRecordBytesMax);

  // Bad records are told as CsvRecords does.
  std::optional<Result<Entity>> Next() override;

  uint64_t line_number() const override { return records_.line_number(); }
  uint64_t resume_offset() const override { return records_.lines().offset(); }
  uint64_t resume_line() const override { return records_.lines().line_number() + 1; }
  Status SkipTo(uint64_t offset, uint64_t line) override { return records_.lines().SkipTo(offset, line); }

  const CsvColumns& columns() const { return columns_; }

 private:
  CsvReader(std::unique_ptr<ByteSource> source, size_t record_bytes_max)
      : records_(std::move(source), record_bytes_max) {}
  Result<Entity> BuildEntity() const;

  CsvRecords records_;
  CsvColumns columns_;
};

// Appends the entity as one record with its line end (CR LF). kInvalidArgument when it has a property or
// type that `columns` has no place for (it was not observed); nothing is appended then.
// REQUIRES: ValidateEntity(entity) was ok; columns.HeaderLine() was called after the last Observe.
Status AppendCsvRecord(std::string* out, const CsvColumns& columns, const Entity& entity);

}  // namespace partita
