#include "bench/lab/hdr_log.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "api/value_text.h"
#include "bench/lab/result_text.h"
#include "engine/base/assert.h"
#include "engine/base/coding.h"

// The encoding, all of it big-endian (HdrHistogram, AbstractHistogram):
//
//   size  field
//      4  cookie  0x1C849314: compressed, V2
//      4  size of what follows
//      n  deflated with a zlib header:
//           4  cookie  0x1C849313: V2, counts as ZigZag LEB128
//           4  size of the counts in bytes
//           4  normalizing index offset, 0
//           4  significant digits
//           8  lowest and
//           8  highest value that can be told apart
//           8  factor to a Double, 1.0
//           m  counts by rising bucket up to the last that is not 0; -k stands for k buckets that are 0
//
// Buckets: values below 2^8 have one each, and each power of two above has 2^7 (for two digits).
namespace partita::lab {
namespace {

constexpr uint32_t kCompressedCookie = 0x1C849314, kCookie = 0x1C849313;
constexpr uint32_t kDigits = 2;
constexpr int kHalfBits = 7;
constexpr uint64_t kHighest = (uint64_t{1} << 43) - 1;  // Where the buckets of bench::Histogram end.

void AppendBe32(std::string* out, uint32_t value) {
  char bytes[4];
  StoreBe32(bytes, value);
  out->append(bytes, sizeof(bytes));
}

void AppendBe64(std::string* out, uint64_t value) {
  char bytes[8];
  StoreBe64(bytes, value);
  out->append(bytes, sizeof(bytes));
}

size_t IndexOf(uint64_t value) {
  const int bucket = std::bit_width(value | ((1u << (kHalfBits + 1)) - 1)) - (kHalfBits + 1);
  const auto sub = static_cast<size_t>(value >> bucket);
  return (static_cast<size_t>(bucket + 1) << kHalfBits) + sub - (size_t{1} << kHalfBits);
}

// As signed numbers go: 0, -1, 1, -2 become 0, 1, 2, 3. Below 2^56, where its ninth byte would differ from
// LEB128's.
void AppendZigZag(std::string* out, int64_t number) {
  const uint64_t code = (static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63);
  PARTITA_ASSERT(code < uint64_t{1} << 56);
  AppendVarint(out, code);
}

std::string Deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  const int done = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_BEST_COMPRESSION);
  PARTITA_ASSERT(done == Z_OK);  // There is room for the worst case.
  out.resize(size);
  return out;
}

std::string Base64(const std::string& bytes) {
  std::string out(Base64Size(bytes.size()), '\0');
  WriteBase64(out.data(), bytes);
  return out;
}

// Commas, blanks and line ends end a tag.
std::string TagOf(const Experiment& experiment, const CellFigures& cell, size_t op) {
  const Layout& layout = experiment.layouts[cell.layout];
  std::string tag = layout.name + "/" + RateText(experiment.ArrivalOf(layout), cell.rate) + "/" +
                    std::to_string(cell.repeat) + "/" + experiment.ops[op].name;
  const auto ends = [](char c) { return c == ',' || static_cast<unsigned char>(c) <= ' '; };
  std::replace_if(tag.begin(), tag.end(), ends, '_');
  return tag;
}

}  // namespace

std::string HdrBase64(const bench::Histogram& histogram) {
  std::vector<uint64_t> counts;
  histogram.ForEach([&](uint64_t upper, uint64_t count) {
    const size_t index = IndexOf(std::min({upper, histogram.max(), kHighest}));
    if (counts.size() <= index) counts.resize(index + 1);
    counts[index] += count;
  });
  std::string payload;
  for (size_t i = 0; i < counts.size();) {
    size_t zeros = 0;
    while (i < counts.size() && counts[i] == 0) ++zeros, ++i;
    if (zeros > 0) AppendZigZag(&payload, zeros == 1 ? 0 : -static_cast<int64_t>(zeros));
    if (i < counts.size()) AppendZigZag(&payload, static_cast<int64_t>(counts[i++]));
  }
  std::string encoded;
  AppendBe32(&encoded, kCookie);
  AppendBe32(&encoded, static_cast<uint32_t>(payload.size()));
  AppendBe32(&encoded, 0);
  AppendBe32(&encoded, kDigits);
  AppendBe64(&encoded, 1);
  AppendBe64(&encoded, kHighest);
  AppendBe64(&encoded, std::bit_cast<uint64_t>(1.0));
  const std::string deflated = Deflated(encoded + payload);
  std::string compressed;
  AppendBe32(&compressed, kCompressedCookie);
  AppendBe32(&compressed, static_cast<uint32_t>(deflated.size()));
  return Base64(compressed + deflated);
}

std::string HdrLog(const Experiment& experiment, const RunResult& result) {
  const double started = result.cells.empty() ? 0 : result.cells[0].started_unix_s;
  char line[200];
  std::string text = "#[Latencies of partita lab run, in nanoseconds from when an operation was due]\n";
  text += "#[Histogram log format version 1.3]\n";
  std::snprintf(line, sizeof(line), "#[StartTime: %.3f (seconds since epoch)]\n", started);
  text += line;
  text += "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
  for (const CellFigures& cell : result.cells) {
    for (size_t op = 0; op < cell.ops.size(); ++op) {
      const bench::Histogram& latency = cell.ops[op].latency;
      if (latency.count() == 0) continue;
      const double begun = cell.started_unix_s + experiment.arrival.warmup_s - started;
      std::snprintf(line, sizeof(line), ",%.3f,%.3f,%.3f,", begun, cell.measured_s,
                    static_cast<double>(latency.max()) * 1e-6);
      text += "Tag=" + TagOf(experiment, cell, op) + line + HdrBase64(latency) + "\n";
    }
  }
  return text;
}

}  // namespace partita::lab
