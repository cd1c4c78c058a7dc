#include "api/cli/query_output.h"

#include <algorithm>

#include "api/cli/csv.h"
#include "api/cli/figures.h"
#include "api/cli/jsonl.h"
#include "api/date_time.h"
#include "api/value_text.h"
#include "engine/base/text.h"
#include "engine/inspect_text.h"

namespace partita {

namespace {

constexpr size_t kBoundsShownMax = 20;
constexpr size_t kCellWidthMax = 40;
constexpr size_t kTextHeldMax = 64 << 10;
constexpr std::string_view kTimestamp = "Timestamp";  // Given with every entity, but shown when asked for.

// Text for the console, given on in large pieces.
class TextOutput : public EntityOutput {
 public:
  explicit TextOutput(Console& console) : console_(console) {}
  Status Finish() override {
    PARTITA_TRY(GiveOn());
    console_.out.flush();
    return console_.out ? Status() : Status::IoError("cannot write to standard output");
  }

 protected:
  Status GiveOn() {
    console_.out << text_;
    text_.clear();
    return console_.out ? Status() : Status::IoError("cannot write to standard output");
  }
  Status GiveOnIfMuch() { return text_.size() < kTextHeldMax ? Status() : GiveOn(); }

  std::string text_;

 private:
  Console& console_;
};

class JsonLinesOutput final : public TextOutput {
 public:
  using TextOutput::TextOutput;
  Status Write(const Entity& entity) override {
    AppendJsonLine(&text_, entity);
    return GiveOnIfMuch();
  }
};

class CsvOutput final : public TextOutput {
 public:
  CsvOutput(const std::vector<std::string>& select, Console& console) : TextOutput(console) {
    if (std::find(select.begin(), select.end(), kTimestamp) != select.end()) columns_.AddTimestamp();
  }
  bool needs_columns() const override { return true; }
  void Observe(const Entity& entity) override { columns_.Observe(entity); }
  Status Write(const Entity& entity) override {
    WriteHeader();
    PARTITA_TRY(AppendCsvRecord(&text_, columns_, entity));
    return GiveOnIfMuch();
  }
  Status Finish() override {
    WriteHeader();
    return TextOutput::Finish();
  }

 private:
  void WriteHeader() {
    if (!header_written_) text_ = columns_.HeaderLine();
    header_written_ = true;
  }

  CsvColumns columns_;
  bool header_written_ = false;
};

// ---- The table for people.

size_t WidthOf(std::string_view utf8) {
  const auto starts_character = [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; };
  return static_cast<size_t>(std::count_if(utf8.begin(), utf8.end(), starts_character));
}

// One line of at most kCellWidthMax characters, without what would move the cursor.
std::string CellOf(std::string_view text) {
  // A character has two units at most; of a long text no more is looked at than may be shown.
  std::string cell = SafeText(Utf16Prefix(text, 2 * (kCellWidthMax + 1)));
  if (WidthOf(cell) <= kCellWidthMax) return cell;
  while (WidthOf(cell) >= kCellWidthMax) {
    while ((static_cast<uint8_t>(cell.back()) & 0xC0) == 0x80) cell.pop_back();
    cell.pop_back();
  }
  return cell + "…";
}

class TableOutput final : public TextOutput {
 public:
  TableOutput(const std::vector<std::string>& select, Console& console) : TextOutput(console) {
    columns_ = {"PartitionKey", "RowKey"};
    for (const std::string& name : select) AddColumn(name);
    open_ = select.empty();
  }

  Status Write(const Entity& entity) override {
    std::vector<std::string> row = {CellOf(entity.partition_key()), CellOf(entity.row_key())};
    const auto put = [&row](size_t column, const std::string& text) {
      if (row.size() <= column) row.resize(column + 1);
      row[column] = CellOf(text);
    };
    if (const size_t column = ColumnOf(kTimestamp); column < columns_.size()) {
      put(column, FormatDateTime({entity.timestamp_ticks()}));
    }
    for (const Property& property : entity.properties()) {
      const size_t column = ColumnOf(property.name);
      if (column == columns_.size()) {
        if (!open_) continue;
        columns_.push_back(property.name);
      }
      std::string text;
      AppendValueText(&text, property.value);
      put(column, text);
    }
    rows_.push_back(std::move(row));
    return Status();
  }

  Status Finish() override {
    std::vector<size_t> widths;
    for (const std::string& name : columns_) widths.push_back(WidthOf(name));
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], WidthOf(row[i]));
    }
    AppendRow(columns_, widths);
    std::vector<std::string> rule;
    for (const size_t width : widths) rule.emplace_back(width, '-');
    AppendRow(rule, widths);
    for (const auto& row : rows_) {
      AppendRow(row, widths);
      PARTITA_TRY(GiveOnIfMuch());
    }
    return TextOutput::Finish();
  }

 private:
  size_t ColumnOf(std::string_view name) const {
    return static_cast<size_t>(std::find(columns_.begin() + 2, columns_.end(), name) - columns_.begin());
  }
  void AddColumn(const std::string& name) {
    if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) columns_.push_back(name);
  }
  void AppendRow(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
    std::string line;
    size_t end = 0;
    for (size_t i = 0; i < cells.size(); ++i) {
      line.append(cells[i]);
      if (!cells[i].empty()) end = line.size();
      line.append(widths[i] - WidthOf(cells[i]) + 2, ' ');
    }
    text_.append(line, 0, end).push_back('\n');
  }

  bool open_ = true;  // Properties make columns as they come.
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

std::unique_ptr<EntityOutput> MakeEntityOutput(const std::string& format,
                                               const std::vector<std::string>& select, Console& console) {
  if (format == "csv") return std::make_unique<CsvOutput>(select, console);
  if (format == "table") return std::make_unique<TableOutput>(select, console);
  return std::make_unique<JsonLinesOutput>(console);
}

void PrintPlan(std::ostream& out, const Explanation& plan) {
  out << "plan       " << plan.kind << "\n";
  for (size_t i = 0; i < std::min(plan.bounds.size(), kBoundsShownMax); ++i) {
    out << (i == 0 ? "bounds     " : "           ") << plan.bounds[i] << "\n";
  }
  if (plan.bounds.size() > kBoundsShownMax) {
    out << "           and " << FormatCount(plan.bounds.size() - kBoundsShownMax) << " more\n";
  }
  if (!plan.residual.empty()) out << "residual   " << plan.residual << "\n";
  if (plan.zone_maps.empty()) return;
  out << "zone maps  ";
  for (const std::string& name : plan.zone_maps) out << (&name == &plan.zone_maps[0] ? "" : ", ") << name;
  out << "\n";
}

void PrintCost(std::ostream& out, const QueryCost& cost) {
  char density[16];
  std::snprintf(density, sizeof density, "%.3f", cost.density());
  out << "scanned    " << FormatCount(cost.scanned) << " entries, " << FormatCount(cost.returned)
      << " given (density " << density << ")\n";
  const BlockCounts& blocks = cost.blocks;
  out << "blocks     " << FormatCount(blocks.blocks_read) << " read, " << FormatCount(blocks.blocks_skipped)
      << " skipped by zone maps (whole files: " << FormatCount(blocks.files_skipped) << "); "
      << FormatBytes(blocks.bytes_read) << " from disk\n";
  out << "time       " << FormatSeconds(static_cast<double>(cost.nanos) / 1e9) << "\n";
}

}  // namespace partita
