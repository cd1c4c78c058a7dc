#include "bench/lab/cell_file.h"

#include <bit>
#include <type_traits>

#include "bench/lab/key_rows.h"
#include "engine/base/checksum.h"
#include "engine/base/coding.h"

// One list of fields serves both directions: Visit hands each field to an archive, which appends it to bytes
// or reads it from them.
namespace partita::lab {
namespace {

constexpr std::string_view kMagic = "PartCell";
constexpr size_t kSealSize = 8;

class Writer {
 public:
  explicit Writer(std::string* out) : out_(*out) {}

  template <typename T>
  requires std::is_integral_v<T>
  void operator()(const T& number) { AppendVarint(&out_, number); }
  void operator()(const double& number) { AppendLe64(&out_, std::bit_cast<uint64_t>(number)); }
  void operator()(const std::string& text) { AppendBytes(&out_, text); }
  template <typename T, typename Each>
  void List(const T& list, size_t, const Each& each) {
    AppendVarint(&out_, list.size());
    for (const auto& element : list) each(element);
  }

 private:
  std::string& out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : in_(bytes) {}

  template <typename T>
  requires std::is_integral_v<T>
  void operator()(T& number) { number = static_cast<T>(in_.ReadVarint()); }
  void operator()(double& number) { number = std::bit_cast<double>(in_.ReadLe64()); }
  void operator()(std::string& text) { text = in_.ReadBytes(); }
  // A list of more than `size_max` fails, before it is made.
  template <typename T, typename Each>
  void List(T& list, size_t size_max, const Each& each) {
    const uint64_t size = in_.ReadVarint();
    if (size > size_max || size > in_.remaining()) {
      failed_ = true;
      return;
    }
    if constexpr (requires { list.resize(size); }) {
      list.resize(size);
    } else {
      failed_ |= size != list.size();
    }
    if (failed_) return;
    for (auto& element : list) {
      if (failed_ || !in_.ok()) return;
      each(element);
    }
  }
  bool AtCleanEnd() const { return !failed_ && in_.AtCleanEnd(); }

 private:
  ByteReader in_;
  bool failed_ = false;
};

template <typename Archive, typename Figures>
void VisitOp(Archive& archive, Figures& op) {
  for (auto* count : {&op.operations, &op.completed, &op.throttled, &op.throttled_by_account, &op.dropped,
                      &op.failed, &op.missing, &op.unfinished, &op.waited, &op.requests, &op.scanned,
                      &op.returned, &op.written, &op.bytes, &op.untold, &op.unfiltered}) {
    archive(*count);
  }
  const auto number = [&](auto& field) { archive(field); };
  bench::Histogram::VisitNumbers(op.latency, number);
  bench::Histogram::VisitNumbers(op.service, number);
  archive(op.first_error);
}

template <typename Archive, typename Columns>
void VisitColumns(Archive& archive, Columns& columns) {
  const auto number = [&](auto& field) { archive(field); };
  archive.List(columns, Timeline::kColumnsMax, [&](auto& column) {
    for (auto* count :
         {&column.due, &column.completed, &column.throttled, &column.ended, &column.latency_max_ns}) {
      archive(*count);
    }
    archive.List(column.latencies.counts, Timeline::Latencies::kBuckets, number);
    archive.List(column.entities, KeyRows::kRowsMax, number);
    archive.List(column.refused, KeyRows::kRowsMax, number);
  });
}

// Figures take so many bytes at least in a file, and eight times as many in memory.
size_t OpBytesMin() {
  std::string bytes;
  Writer writer(&bytes);
  const OpFigures none;
  VisitOp(writer, none);
  return bytes.size();
}

template <typename Archive, typename Figures>
void VisitCell(Archive& archive, Figures& cell, size_t ops_max) {
  archive(cell.layout);
  archive(cell.rate);
  archive(cell.repeat);
  archive(cell.started_unix_s);
  archive(cell.measured_s);
  archive(cell.late_starts);
  archive(cell.on_time_possible);
  archive.List(cell.ops, ops_max, [&](auto& op) { VisitOp(archive, op); });
  archive.List(cell.seconds, SIZE_MAX, [&](auto& second) {
    for (auto* count :
         {&second.due, &second.completed, &second.throttled, &second.ended, &second.latency_max_ns}) {
      archive(*count);
    }
  });
}

}  // namespace

std::string EncodeCell(const CellFigures& cell, uint64_t run) {
  std::string bytes(kMagic);
  bytes.push_back(static_cast<char>(kCellFileFormat));
  AppendLe64(&bytes, run);
  Writer writer(&bytes);
  VisitCell(writer, cell, cell.ops.size());
  writer(cell.timeline.column_s());
  writer(cell.timeline.rows());
  VisitColumns(writer, cell.timeline.columns());
  AppendLe64(&bytes, Hash64(bytes));
  return bytes;
}

Result<CellFigures> DecodeCell(std::string_view bytes, uint64_t run) {
  if (bytes.size() < kMagic.size() + 1 + kSealSize || !bytes.starts_with(kMagic)) {
    return Status::Corruption("these are no figures of a cell");
  }
  const std::string_view sealed = bytes.substr(0, bytes.size() - kSealSize);
  ByteReader head(sealed.substr(kMagic.size()));
  if (head.ReadU8() != kCellFileFormat) return Status::Unsupported("another partita wrote them");
  if (LoadLe64(bytes.data() + sealed.size()) != Hash64(sealed)) {
    return Status::Corruption("the figures of the cell are damaged");
  }
  if (head.ReadLe64() != run || !head.ok()) return Status::Corruption("the cell is one of another run");
  Reader reader(sealed.substr(sealed.size() - head.remaining()));
  CellFigures cell;
  VisitCell(reader, cell, head.remaining() / OpBytesMin());
  double column_s = 0;
  size_t rows = 0;
  std::vector<Timeline::Column> columns;
  reader(column_s);
  reader(rows);
  VisitColumns(reader, columns);
  bool whole = reader.AtCleanEnd() && column_s > 0;
  for (const Timeline::Column& column : columns) {
    whole &= column.entities.size() == rows && column.refused.size() == rows;
  }
  if (!whole) return Status::Corruption("the figures of the cell are not whole");
  cell.timeline = Timeline(column_s, rows, std::move(columns));
  return cell;
}

}  // namespace partita::lab
