#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/lab/private_file.h"
#include "bench/lab/row_reader.h"
#include "engine/base/property_value.h"
#include "engine/base/result.h"

namespace partita::lab {

// What a number stands for that gives a time.
enum class EpochUnit : uint8_t { kNone, kSeconds, kMilliseconds, kMicroseconds };

// A column that fields are made of.
struct ImportColumn {
  std::string name;                      // In the file.
  std::optional<PropertyType> type;      // Unset: found by looking at all of its values.
  EpochUnit epoch = EpochUnit::kNone;    // Set: numbers since 1970-01-01T00:00:00Z, which become times.
  std::optional<PropertyValue> missing;  // What stands for a value that is missing; unset: none may be.

  // Found by reading: the smallest and largest of whole numbers, and of the lengths of texts in bytes.
  int64_t number_min = INT64_MAX, number_max = INT64_MIN;
  uint64_t bytes_min = UINT64_MAX, bytes_max = 0;
};

// Records that come from a file of one's own. They are read once, checked, and kept in a compact form in a
// private file, so that memory holds no more than an offset for each 16 of them and whatever the kernel
// caches, and that nothing changes while an experiment runs. Immutable.
class ImportedRecords {
 public:
  static constexpr uint64_t kRowsMax = 100'000'000;
  // Bad rows are told up to so many.
  static constexpr size_t kProblemsMax = 10;

  // Types that are not given are found: that of the file's own type column or annotation, else the narrowest
  // of Int64, Double, DateTime, Boolean and String that has all of the column's values. What does not come
  // back digit for digit is no number: with a zero in front, with more digits than the type holds, or, in
  // CSV, with an exponent where numbers of that size have none. Every value must be of its type, else
  // `problems` is told of it, a line each in the form "file:line: column "name": what is wrong", and nothing
  // is to be used. Other failures are the status: kNotFound, kIoError, kNoSpace, kInvalidArgument.
  static Result<std::shared_ptr<const ImportedRecords>> Read(const std::string& path,
                                                             const RowFileFormat& format,
                                                             std::vector<ImportColumn> columns,
                                                             uint64_t rows_max,
                                                             std::vector<std::string>* problems);

  uint64_t rows() const { return rows_; }
  // As asked for, with their types.
  const std::vector<ImportColumn>& columns() const { return columns_; }
  // Of all columns and values: says whether two files gave the same.
  uint64_t hash() const { return hash_; }

  // All values of a row, in the order of the columns. REQUIRES: row < rows().
  void Decode(uint64_t row, std::vector<PropertyValue>* values) const;

 private:
  explicit ImportedRecords(std::vector<ImportColumn> columns) : columns_(std::move(columns)) {}
  Status ReadRows(RowReader* reader, uint64_t rows_max, std::vector<std::string>* problems);

  std::vector<ImportColumn> columns_;
  std::unique_ptr<PrivateFile> file_;
  std::vector<uint64_t> offsets_;  // Of each 16th row.
  uint64_t rows_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace partita::lab
