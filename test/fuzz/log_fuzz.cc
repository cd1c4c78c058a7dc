// Fuzzes what reads a log: formats, recovery and inspection (F77). Build with -DPARTITA_FUZZ=ON and
// -DPARTITA_SANITIZE=address,undefined; run e.g. `bin/fuzz_log -max_total_time=60 -max_len=4096`.
// No corpus is needed: the seeds are in the code (a valid log, which the input then damages).
//
// The input: one byte of mode, then
//   mode % 4 == 0   raw bytes for each decoder
//   mode % 4 == 1   a whole segment file, or the tail, made of the raw bytes
//   mode % 4 == 2   edits of a valid log: (file, offset, xor) each; what is recovered must be a
//                   prefix of what was written, or an error
//   mode % 4 == 3   the same edits, and every seal is made right again, as a hostile writer would
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/coding.h"
#include "engine/io/sim_runtime.h"
#include "wal/frame_format.h"
#include "wal/local_log_store.h"
#include "wal/log_inspect.h"
#include "wal/segment_format.h"
#include "wal/tail_format.h"

namespace partita {
namespace {

const LogIdentity kOwner{StoreId{7}, ShardId{1}};
const std::string kDirectory = "log";

LocalLogOptions Options(uint32_t incarnation) {
  LocalLogOptions options;
  options.store = kOwner.store;
  options.shard = kOwner.shard;
  options.directory = kDirectory;
  options.incarnation = Incarnation{incarnation};
  options.segment_size = 5 * kPageSize;
  options.frame_size_max = 2 * kPageSize;
  options.tail_size = 4 * kPageSize;
  return options;
}

std::string Payload(uint64_t position) {
  return std::string(position * 531 % 5000, static_cast<char>('a' + position));
}

constexpr uint64_t kInSegments = 12;
constexpr uint64_t kInAll = 15;

void Check(bool ok) {
  if (!ok) std::abort();
}

// A log of several segments, with a moved part, a seal and a tail.
std::unique_ptr<SimDisk> MakeLog() {
  auto disk = std::make_unique<SimDisk>(1);
  SimRuntime runtime({.seed = 1}, *disk);
  auto log = RunBlocking(LocalLogStore::Open(runtime.files(), Options(1))).value();
  Check(RunBlocking(log->Recover(LogPosition{1}, [](const LogRecord&) { return Status(); })).ok());
  std::vector<std::string> payloads;
  for (uint64_t p = 1; p <= kInAll; ++p) payloads.push_back(Payload(p));
  for (uint64_t p = 1; p <= kInAll; ++p) {
    const LogRecord record{LogPosition{p}, Version{p}, payloads[p - 1]};
    if (p == 5) Check(RunBlocking(log->MoveToNewSegment({&record, 1})).ok());
    if (p != 5 && p <= kInSegments) Check(RunBlocking(log->AppendAndFlush({&record, 1})).ok());
    if (p == kInSegments) Check(RunBlocking(log->Seal(/*closing=*/false)).ok());
    if (p > kInSegments) (void)log->AppendTail({&record, 1});
  }
  Check(RunBlocking(log->Close()).ok());
  return disk;
}

void FuzzDecoders(std::string_view bytes) {
  TailRecord record;
  (void)DecodeTailRecord(kOwner, Incarnation{1}, 0, bytes, &record);
  PieceReader pieces(bytes);
  FramePiece piece;
  while (pieces.Next(&piece)) {
  }
  std::string page(bytes);
  page.resize(AlignUp(std::max<size_t>(page.size(), 1), kPageSize));
  (void)DecodeSegmentHeader(std::string_view(page).substr(0, kPageSize));
  ParsedFrame frame;
  (void)ParseFrame(kOwner, kPageSize, page, &frame);
}

// Recovers and inspects. With `exact`, what is delivered must be what was written.
void Read(SimDisk& disk, bool exact) {
  SimRuntime runtime({.seed = 2}, disk);
  for (const std::string& path : disk.ListFiles(kDirectory)) {
    (void)RunBlocking(InspectSegment(runtime.files(), path, [](const InspectedFrame&) {}));
  }
  auto opened = RunBlocking(LocalLogStore::Open(runtime.files(), Options(2)));
  if (!opened.ok()) return;
  std::unique_ptr<LocalLogStore> log = std::move(opened).value();
  uint64_t next = 1;
  auto report = RunBlocking(log->Recover(LogPosition{1}, [&](const LogRecord& record) {
    Check(record.position.value == next++);
    if (exact) Check(record.position.value <= kInAll && record.payload == Payload(record.position.value));
    return Status();
  }));
  // The seal proves the segments' records: with edits that no seal covers for, they are all there.
  if (exact && report.ok()) Check(report->last.value >= kInSegments - 1);
  Check(RunBlocking(log->Close()).ok());
}

// Makes header, frames and tail records at their usual places valid again, as far as they claim
// sizes that fit.
void Reseal(std::string* content, bool tail) {
  char* at = content->data();
  const size_t size = content->size();
  const auto seal = [&](size_t offset, size_t length, const Identity& identity) {
    if (length > size - offset) return;
    StoreLe64(at + offset, Seal({at + offset + 8, length - 8}, identity));
  };
  if (tail) {
    for (size_t offset = 0; offset + kTailRecordHeaderSize <= size;) {
      const uint64_t payload = LoadLe32(at + offset + 12);
      seal(offset, kTailRecordHeaderSize + payload,
           kOwner.At(SealKind::kLogTail, SegmentId{0}, Incarnation{1}, offset));
      offset += TailRecordSize(payload);
    }
    return;
  }
  if (size < kPageSize) return;
  seal(0, kPageSize,
       kOwner.At(SealKind::kLogSegmentHeader, SegmentId{LoadLe64(at + 32)}, Incarnation{LoadLe32(at + 40)},
                 0));
  uint64_t previous = LoadLe64(at);
  for (size_t offset = kPageSize; offset + kPageSize <= size;) {
    const uint64_t payload = LoadLe32(at + offset + 52);
    StoreLe64(at + offset + 56, previous);
    seal(offset, kFrameHeaderSize + payload,
         kOwner.At(SealKind::kLogFrame, SegmentId{LoadLe64(at + offset + 32)},
                   Incarnation{LoadLe32(at + offset + 28)}, offset));
    previous = LoadLe64(at + offset);
    offset += FrameSize(payload);
  }
}

void FuzzEdits(std::string_view input, bool reseal) {
  static const std::unique_ptr<SimDisk> original = MakeLog();
  auto disk = original->Clone();
  const auto paths = disk->ListFiles(kDirectory);
  ByteReader edits(input);
  std::vector<bool> touched(paths.size());
  while (edits.remaining() >= 4) {
    const size_t file = edits.ReadU8() % paths.size();
    std::string content = disk->ReadFile(paths[file]).value();
    // The header of a frame is where it is worth hitting: a page, then a place near its beginning.
    const size_t page = edits.ReadU8() % (content.size() / kPageSize);
    const size_t offset = page * kPageSize + edits.ReadU8();
    content[offset] = static_cast<char>(content[offset] ^ edits.ReadU8());
    disk->WriteFile(paths[file], content);
    touched[file] = true;
  }
  for (size_t i = 0; reseal && i < paths.size(); ++i) {
    if (!touched[i]) continue;
    std::string content = disk->ReadFile(paths[i]).value();
    Reseal(&content, paths[i].ends_with("/tail"));
    disk->WriteFile(paths[i], content);
  }
  // One edit is one fault; several may hit the same bytes' only proof.
  Read(*disk, /*exact=*/!reseal && input.size() < 8);
}

}  // namespace
}  // namespace partita

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace partita;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      FuzzDecoders(input);
      break;
    case 1: {
      SimDisk disk(3);
      std::string content(input);
      content.resize(AlignUp(content.size() + 1, 2 * kPageSize));
      disk.WriteFile(kDirectory + (data[0] & 4 ? "/tail" : "/000001.log"), content);
      Read(disk, /*exact=*/false);
      break;
    }
    default:
      FuzzEdits(input, data[0] % 4 == 3);
  }
  return 0;
}
