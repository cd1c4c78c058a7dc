#include "bench/lab/imported_records.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "api/date_time.h"
#include "api/limits.h"
#include "api/names.h"
#include "api/value_text.h"
#include "engine/base/assert.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"
#include "engine/base/text.h"

// A row in the private file: its length in bytes without these four, then each column's value: 8 bytes, of a
// Guid 16, of a text or binary its length in four bytes and it. Little-endian; nobody but this process reads
// it.
namespace partita::lab {
namespace {

constexpr uint64_t kRowsPerOffset = 16;
constexpr int64_t kEpochTicks = 116'444'736'000'000'000;  // 1970-01-01 in 100 ns since 1601.

bool IsText(PropertyType type) { return type == PropertyType::kString || type == PropertyType::kBinary; }

// What a column of unknown type may be, the narrowest first.
constexpr PropertyType kGuesses[] = {PropertyType::kInt64, PropertyType::kDouble, PropertyType::kDateTime,
                                     PropertyType::kBoolean};

// The significant digits of a decimal number, and the power of ten of the first of them.
struct Decimal {
  std::string digits;
  int64_t power = 0;
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

constexpr int64_t kExponentMax = 1'000'000'000;

// REQUIRES: a number as ParseValueText takes it for a Double.
Decimal DecimalOf(std::string_view text) {
  Decimal decimal;
  int64_t exponent = 0;
  const size_t e = std::min(text.find_first_of("eE"), text.size());
  if (e < text.size()) {
    const size_t from = e + (text[e + 1] == '+' ? 2 : 1);
    std::from_chars(text.data() + from, text.data() + text.size(), exponent);
    // Of a number that is not 0 it is no further than the digits are many; that of a 0 may be any.
    exponent = std::clamp(exponent, -kExponentMax, kExponentMax);
  }
  bool behind_point = false;
  for (const char c : text.substr(0, e)) {
    if (c == '.') behind_point = true;
    if (c < '0' || c > '9') continue;
    const bool is_leading = decimal.digits.empty() && c == '0';
    if (!is_leading) decimal.digits.push_back(c);
    if (!behind_point && !is_leading) ++exponent;
    if (behind_point && is_leading) --exponent;
  }
  decimal.digits.erase(decimal.digits.find_last_not_of('0') + 1);
  decimal.power = decimal.digits.empty() ? 0 : exponent;
  return decimal;
}

// Whether the number still says what the text did. An identifier of twenty digits would lose the last of
// them, one such as 12e45 all of its form; JSON knows numbers from texts, so that there an exponent is one.
bool ComesBack(double value, const RowCell& cell) {
  const std::string_view magnitude = cell.text.substr(cell.text.starts_with('-') ? 1 : 0);
  std::string shortest;
  AppendValueText(&shortest, value);
  if (DecimalOf(magnitude) != DecimalOf(shortest)) return false;
  const bool has_exponent = magnitude.find_first_of("eE") != magnitude.npos;
  if (!has_exponent || cell.kind == RowCell::Kind::kBare) return true;
  // As who writes numbers writes it: one digit in front of the point.
  return shortest.find('E') != shortest.npos && magnitude.find_first_of(".eE") == 1;
}

bool MayBe(PropertyType type, const RowCell& cell, RowFormat format) {
  const bool is_bare = cell.kind == RowCell::Kind::kBare;
  // JSON tells numbers and flags from texts; a time is a text there.
  if (format == RowFormat::kJsonLines && is_bare == (type == PropertyType::kDateTime)) return false;
  const Result<PropertyValue> value = ParseValueText(type, cell.text);
  if (!value.ok()) return false;
  if (type == PropertyType::kDouble) {
    return std::isfinite(*value->if_double()) && ComesBack(*value->if_double(), cell);
  }
  // Nanoseconds would be cut off.
  if (type == PropertyType::kDateTime) return FractionDigits(cell.text) <= kFractionDigitsKept;
  // 007 is an identifier, and would come back as 7.
  return type != PropertyType::kInt64 || std::to_string(*value->if_int64()) == cell.text;
}

// Finds the types of columns that have none yet.
class TypeFinder {
 public:
  TypeFinder(std::vector<ImportColumn>* columns, RowFormat format)
      : columns_(*columns), format_(format), guesses_(columns->size()) {}

  bool is_needed() const {
    return std::any_of(columns_.begin(), columns_.end(), [](const auto& column) { return !column.type; });
  }

  void Look(const std::vector<RowCell>& cells) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const RowCell& cell = cells[i];
      const bool has_value = cell.kind == RowCell::Kind::kText || cell.kind == RowCell::Kind::kBare;
      if (columns_[i].type || !has_value) continue;
      columns_[i].type = PropertyTypeFromEdmName(cell.type_name);
      if (columns_[i].type) continue;
      std::vector<PropertyType>& guesses = guesses_[i].types;
      if (!guesses_[i].begun) guesses.assign(std::begin(kGuesses), std::end(kGuesses));
      guesses_[i].begun = true;
      std::erase_if(guesses, [&](PropertyType type) { return !MayBe(type, cell, format_); });
    }
  }

  void Finish() {
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].type) continue;
      columns_[i].type = guesses_[i].types.empty() ? PropertyType::kString : guesses_[i].types.front();
    }
  }

 private:
  struct Guesses {
    bool begun = false;
    std::vector<PropertyType> types;
  };

  std::vector<ImportColumn>& columns_;
  const RowFormat format_;
  std::vector<Guesses> guesses_;
};

Status NoTimeOf(std::string_view text) {
  return Status::InvalidArgument(QuotedForMessage(text) + " is no time of the years 1601 to 9999");
}

Result<PropertyValue> TimeOf(EpochUnit unit, std::string_view text) {
  constexpr int64_t kTicks[] = {0, 10'000'000, 10'000, 10};
  const int64_t ticks = kTicks[static_cast<size_t>(unit)];
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Status::InvalidArgument(QuotedForMessage(text) + " is no number, of which a time could be made");
  }
  const double since = number * static_cast<double>(ticks) + static_cast<double>(kEpochTicks);
  // Roughly, so that it fits the integers below: as a double the last tick is rounded up by one.
  if (!(since >= 0 && since <= static_cast<double>(kDateTimeTicksMax))) return NoTimeOf(text);
  // Whole parts apart, so that none of their digits is lost.
  const double whole = std::floor(number);
  const auto part = static_cast<int64_t>((number - whole) * static_cast<double>(ticks) + 0.5);
  const int64_t exact = static_cast<int64_t>(whole) * ticks + part + kEpochTicks;
  if (exact < 0 || static_cast<uint64_t>(exact) > kDateTimeTicksMax) return NoTimeOf(text);
  return PropertyValue(DateTime{static_cast<uint64_t>(exact)});
}

Status CheckSize(const PropertyValue& value) {
  const std::string* text = value.if_string();
  if (text != nullptr && Utf16Units(*text) > kStringUnitsMax) {
    return Status::InvalidArgument(
        "the text is longer than 32768 UTF-16 units, the most that a property holds");
  }
  const Binary* binary = value.if_binary();
  if (binary != nullptr && binary->bytes.size() > kBinaryBytesMax) {
    return Status::InvalidArgument("the value has more than 65536 bytes, the most that a property holds");
  }
  const double* number = value.if_double();
  if (number != nullptr && !std::isfinite(*number))
    return Status::InvalidArgument("the number is not finite");
  return Status();
}

Result<PropertyValue> ValueOf(const ImportColumn& column, const RowCell& cell) {
  const PropertyType type = *column.type;
  if (cell.kind == RowCell::Kind::kAbsent || cell.kind == RowCell::Kind::kEmpty) {
    if (column.missing) return *column.missing;
    // A text may be empty.
    if (cell.kind == RowCell::Kind::kEmpty && type == PropertyType::kString) return PropertyValue("");
    return Status::InvalidArgument("has no value; the field's key 'missing' can say what stands for it");
  }
  if (column.epoch != EpochUnit::kNone) return TimeOf(column.epoch, cell.text);
  if (!cell.type_name.empty()) {
    const auto told = PropertyTypeFromEdmName(cell.type_name);
    if (!told) return Status::InvalidArgument("unknown type " + QuotedForMessage(cell.type_name));
    const bool widens = *told == PropertyType::kInt32 && type == PropertyType::kInt64;
    if (*told != type && !widens && type != PropertyType::kString) {
      return Status::InvalidArgument("the file says " + std::string(cell.type_name) +
                                     " here, the column holds " + std::string(EdmTypeName(type)));
    }
  }
  PARTITA_ASSIGN(PropertyValue value, ParseValueText(type, cell.text));
  PARTITA_TRY(CheckSize(value));
  return value;
}

void AppendValue(std::string* row, const PropertyValue& value) {
  if (const std::string* text = value.if_string()) {
    AppendLe32(row, static_cast<uint32_t>(text->size()));
    row->append(*text);
  } else if (const Binary* binary = value.if_binary()) {
    AppendLe32(row, static_cast<uint32_t>(binary->bytes.size()));
    row->append(binary->bytes);
  } else if (const Guid* guid = value.if_guid()) {
    row->append(reinterpret_cast<const char*>(guid->bytes.data()), guid->bytes.size());
  } else if (const double* number = value.if_double()) {
    AppendLe64(row, std::bit_cast<uint64_t>(*number));
  } else if (const DateTime* time = value.if_date_time()) {
    AppendLe64(row, time->ticks);
  } else if (const int32_t* narrow = value.if_int32()) {
    AppendLe64(row, static_cast<uint64_t>(int64_t{*narrow}));
  } else if (const bool* flag = value.if_boolean()) {
    AppendLe64(row, *flag ? 1 : 0);
  } else {
    AppendLe64(row, static_cast<uint64_t>(*value.if_int64()));
  }
}

PropertyValue TakeValue(PropertyType type, const char** at) {
  if (IsText(type)) {
    const uint32_t size = LoadLe32(*at);
    std::string bytes(*at + 4, size);
    *at += 4 + size;
    if (type == PropertyType::kString) return bytes;
    return Binary{.bytes = std::move(bytes)};
  }
  if (type == PropertyType::kGuid) {
    Guid guid;
    std::memcpy(guid.bytes.data(), *at, guid.bytes.size());
    *at += guid.bytes.size();
    return guid;
  }
  const uint64_t bits = LoadLe64(*at);
  *at += 8;
  switch (type) {
    case PropertyType::kDouble:
      return std::bit_cast<double>(bits);
    case PropertyType::kDateTime:
      return DateTime{bits};
    case PropertyType::kBoolean:
      return bits != 0;
    case PropertyType::kInt32:
      return static_cast<int32_t>(bits);
    default:
      return static_cast<int64_t>(bits);
  }
}

// Notes the value's part in what the column says of all of its values.
void Note(const PropertyValue& value, ImportColumn* column) {
  if (const std::string* text = value.if_string()) {
    column->bytes_min = std::min<uint64_t>(column->bytes_min, text->size());
    column->bytes_max = std::max<uint64_t>(column->bytes_max, text->size());
  } else if (value.if_int64() != nullptr || value.if_int32() != nullptr) {
    const int64_t number = value.if_int64() != nullptr ? *value.if_int64() : *value.if_int32();
    column->number_min = std::min(column->number_min, number);
    column->number_max = std::max(column->number_max, number);
  }
}

}  // namespace

Status ImportedRecords::ReadRows(RowReader* reader, uint64_t rows_max, std::vector<std::string>* problems) {
  StreamHash hash;
  std::string row;
  const auto note = [&](std::string problem) {
    problems->push_back(std::move(problem));
    return problems->size() < kProblemsMax;
  };
  while (rows_ < rows_max) {
    const std::optional<Status> read = reader->Next();
    if (!read) break;
    if (read->code() == Code::kIoError) return *read;
    if (!read->ok()) {
      if (!note(read->message())) break;
      continue;
    }
    row.assign(4, '\0');
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Result<PropertyValue> value = ValueOf(columns_[i], reader->cells()[i]);
      if (!value.ok()) {
        if (note(reader->Place() + "column " + QuotedForMessage(columns_[i].name) + ": " +
                 value.status().message()))
          continue;
        return Status();
      }
      Note(*value, &columns_[i]);
      AppendValue(&row, *value);
    }
    if (!problems->empty()) continue;
    StoreLe32(row.data(), static_cast<uint32_t>(row.size() - 4));
    if (rows_++ % kRowsPerOffset == 0) offsets_.push_back(file_->size());
    hash.Update(row);
    PARTITA_TRY(file_->Append(row));
  }
  if (rows_ == kRowsMax && reader->Next()) {
    problems->push_back(reader->Place() +
                        "a hundred million rows are the most; 'rows' says how many to read");
  }
  for (const ImportColumn& column : columns_)
    hash.Update(column.name + std::string(EdmTypeName(*column.type)));
  hash_ = hash.Digest();
  return file_->Seal();
}

Result<std::shared_ptr<const ImportedRecords>> ImportedRecords::Read(const std::string& path,
                                                                     const RowFileFormat& format,
                                                                     std::vector<ImportColumn> columns,
                                                                     uint64_t rows_max,
                                                                     std::vector<std::string>* problems) {
  PARTITA_ASSERT(rows_max <= kRowsMax);
  std::vector<std::string> names;
  for (const ImportColumn& column : columns) names.push_back(column.name);
  TypeFinder types(&columns, format.format);
  if (types.is_needed()) {
    PARTITA_ASSIGN(const std::unique_ptr<RowReader> reader, RowReader::Open(path, format));
    PARTITA_TRY(reader->Want(names));
    for (uint64_t row = 0; row < rows_max; ++row) {
      const std::optional<Status> read = reader->Next();
      if (!read) break;
      if (read->code() == Code::kIoError) return *read;
      if (read->ok()) types.Look(reader->cells());  // What is wrong is told below.
    }
    types.Finish();
  }
  std::shared_ptr<ImportedRecords> imported(new ImportedRecords(std::move(columns)));
  PARTITA_ASSIGN(imported->file_, PrivateFile::Make());
  PARTITA_ASSIGN(const std::unique_ptr<RowReader> reader, RowReader::Open(path, format));
  PARTITA_TRY(reader->Want(names));
  PARTITA_TRY(imported->ReadRows(reader.get(), rows_max, problems));
  if (imported->rows_ == 0 && problems->empty()) return Status::InvalidArgument(path + ": has no rows");
  return std::shared_ptr<const ImportedRecords>(std::move(imported));
}

void ImportedRecords::Decode(uint64_t row, std::vector<PropertyValue>* values) const {
  PARTITA_ASSERT(row < rows_);
  const char* at = file_->bytes().data() + offsets_[row / kRowsPerOffset];
  for (uint64_t skipped = row % kRowsPerOffset; skipped > 0; --skipped) at += 4 + LoadLe32(at);
  at += 4;
  values->clear();
  for (const ImportColumn& column : columns_) values->push_back(TakeValue(*column.type, &at));
}

}  // namespace partita::lab
