#include "wal/log_recoverer.h"

#include <algorithm>

#include "engine/base/assert.h"
#include "engine/base/site.h"

namespace partita {
namespace {

std::string At(const File& file, uint64_t offset) {
  return file.path() + ", offset " + std::to_string(offset) + ": ";
}

std::string Number(LogPosition position) { return std::to_string(position.value); }

}  // namespace

Status NewestSegmentLost(const std::string& directory, SegmentId reached, SegmentId newest) {
  return Status::Corruption(directory + ": segment " + std::to_string(reached.value) +
                            " of the log is missing or its header is lost; the newest one found is " +
                            std::to_string(newest.value) + " (F35)");
}

Task<Result<LogRecoverer::Outcome>> LogRecoverer::Run(std::vector<std::unique_ptr<File>> segment_files,
                                                      LogPosition from, LogReplaySink sink) {
  if (SiteIsOn("wal.recovery.dirflush")) {
    PARTITA_CO_TRY(co_await files_.FlushDirectory(options_.directory));  // F29: names too.
  }
  for (std::unique_ptr<File>& file : segment_files) {
    PARTITA_CO_TRY(co_await Examine(std::move(file)));
  }
  PARTITA_CO_TRY(co_await FindHead());
  PARTITA_CO_TRY(CheckNoLaterSegment());
  if (head_ == nullptr) {
    if (from.value > 1 || options_.must_exist) {
      co_return Status::Corruption(options_.directory + ": there is no log, but records from position " +
                                   Number(from) + " on are expected (F35)");
    }
  } else {
    PARTITA_CO_TRY(BuildChain(from));
    PARTITA_CO_TRY(co_await ReplayChain(from, sink));
    PARTITA_CO_TRY(ReplayTail(from, sink));
    // Behind the tail: a recovery that was killed may have got that far, and flushed it to tables.
    const LogPosition end = out_.report.last;
    if (from.value > end.value + 1) {
      co_return Status::Corruption(At(*head_->file, 0) + "the log ends at position " + Number(end) +
                                   ", but records from " + Number(from) + " on are expected (F31)");
    }
  }
  Deliver();
  co_return std::move(out_);
}

Task<Status> LogRecoverer::Examine(std::unique_ptr<File> file) {
  if (SiteIsOn("wal.recovery.flush")) PARTITA_CO_TRY(co_await file->Flush());  // F29.
  PARTITA_CO_TRY(co_await file->DropCache());
  Candidate candidate;
  auto header = co_await SegmentReader::ReadHeader(*file);
  if (header.code() == Code::kCorruption) {  // A rotten transfer is good the second time (F52).
    PARTITA_CO_TRY(co_await file->DropCache());
    header = co_await SegmentReader::ReadHeader(*file);
  }
  if (header.ok()) {
    candidate.valid = true;
    candidate.sealed = header.value();
  } else if (header.code() != Code::kCorruption) {
    co_return header.status().WithContext(file->path());
  }
  // Zero-written to its full size before its header said so (F57): what is shorter was cut.
  PARTITA_CO_ASSIGN(const uint64_t size, co_await file->Size());
  candidate.is_short = candidate.valid && size < candidate.header().segment_size;
  if (candidate.in_use() && candidate.is_short) {
    co_return Status::Corruption(At(*file, size) + "the file ends, though its header says that it has " +
                                 std::to_string(candidate.header().segment_size) + " bytes (F35)");
  }
  PARTITA_CO_ASSIGN(candidate.has_first_frame,
                    co_await SegmentReader::ReadFirstFrame(*file, owner_, &candidate.first_frame));
  candidate.file = std::move(file);
  PARTITA_CO_TRY(CheckOwner(candidate));
  candidates_.push_back(std::move(candidate));
  co_return Status();
}

Status LogRecoverer::CheckOwner(const Candidate& candidate) const {
  if (!candidate.valid) return Status();
  const LogIdentity& owner = candidate.sealed.owner;
  if (owner.store != owner_.store || owner.shard != owner_.shard) {
    return Status::Corruption(
        At(*candidate.file, 0) + "the segment is of store " + std::to_string(owner.store.value) + ", shard " +
        std::to_string(owner.shard.value) + ", expected store " + std::to_string(owner_.store.value) +
        ", shard " + std::to_string(owner_.shard.value) + " (F66)");
  }
  if (candidate.header().incarnation >= options_.incarnation) {
    return Status::Corruption(At(*candidate.file, 0) + "the segment is of incarnation " +
                              std::to_string(candidate.header().incarnation.value) +
                              ", but this open was given " + std::to_string(options_.incarnation.value) +
                              ": what counts incarnations is older than the log (F30)");
  }
  return Status();
}

Task<Status> LogRecoverer::FindHead() {
  std::vector<Candidate*> used;
  for (Candidate& candidate : candidates_) {
    if (candidate.in_use()) used.push_back(&candidate);
  }
  std::sort(used.begin(), used.end(),
            [](Candidate* a, Candidate* b) { return a->header().segment > b->header().segment; });
  for (size_t i = 0; i + 1 < used.size(); ++i) {
    if (used[i]->header().segment == used[i + 1]->header().segment) {
      co_return Status::Corruption(At(*used[i]->file, 0) + "the file and " + used[i + 1]->file->path() +
                                   " both say that they are log segment " +
                                   std::to_string(used[i]->header().segment.value) + " (F41)");
    }
  }
  for (Candidate* candidate : used) {
    out_.start.segment_max = std::max(out_.start.segment_max, candidate->header().segment);
    PARTITA_CO_ASSIGN(const bool in_effect, co_await InEffect(*candidate));
    if (in_effect) {
      head_ = candidate;
      break;
    }
  }
  co_return Status();
}

// Only a segment whose making was interrupted is not in effect; then nobody relied on it.
Task<Result<bool>> LogRecoverer::InEffect(Candidate& candidate) {
  if (!candidate.header().awaits_effect()) co_return true;
  SegmentReader reader(*candidate.file, candidate.sealed);
  ParsedFrame frame;
  while (true) {
    PARTITA_CO_ASSIGN(const bool found, co_await NextAgain(&reader, &frame));
    if (!found) break;
    if (frame.header.takes_effect()) co_return true;
  }
  PARTITA_CO_ASSIGN(const FramesBeyond beyond, co_await reader.ScanBeyond());
  if (beyond.any && beyond.durable_max >= candidate.header().first_position) {
    co_return Status::Corruption(
        At(*candidate.file, reader.offset()) + "the frame is bad, though the one at offset " +
        std::to_string(beyond.durable_at) + " was written after it was flushed (F31)");
  }
  co_return false;
}

Status LogRecoverer::CheckNoLaterSegment() const {
  const SegmentId head = head_ != nullptr ? head_->header().segment : SegmentId{0};
  for (const Candidate& candidate : candidates_) {
    if (!candidate.has_first_frame || candidate.first_frame.segment < head) continue;
    const FrameHeader& frame = candidate.first_frame;
    if (candidate.valid && candidate.header().segment == frame.segment) {
      if (candidate.header().incarnation == frame.incarnation) continue;
      return Status::Corruption(At(*candidate.file, 0) + "the header is of incarnation " +
                                std::to_string(candidate.header().incarnation.value) +
                                ", though the frame behind it, of the same segment, is of " +
                                std::to_string(frame.incarnation.value) +
                                ": one process wrote over what another had written (F31, F64)");
    }
    if (frame.segment == head) continue;
    return Status::Corruption(At(*candidate.file, 0) +
                              "the header is bad, though the frame behind it is of segment " +
                              std::to_string(candidate.first_frame.segment.value) + ", later than " +
                              std::to_string(head.value) + ", the last one found (F31)");
  }
  if (head.value < options_.newest_segment) {
    return NewestSegmentLost(options_.directory, SegmentId(options_.newest_segment), head);
  }
  return Status();
}

Status LogRecoverer::BuildChain(LogPosition from) {
  for (Candidate* at = head_; at != nullptr;) {
    at->in_chain = true;
    chain_.push_back(static_cast<size_t>(at - candidates_.data()));
    const SegmentId previous = at->header().previous_segment;
    const LogPosition first = at->header().first_position;
    at = nullptr;
    for (Candidate& candidate : candidates_) {
      if (!candidate.in_use() || candidate.header().segment != previous) continue;
      if (candidate.header().first_position > first) {
        return Status::Corruption(At(*candidate.file, 0) + "the segment begins at position " +
                                  Number(candidate.header().first_position) + ", above " + Number(first) +
                                  ", where its successor begins (F34)");
      }
      at = &candidate;
    }
  }
  std::reverse(chain_.begin(), chain_.end());
  const Candidate& oldest = candidates_[chain_.front()];
  const SegmentHeader& header = oldest.header();
  if (from.value == 0 || header.begin().HoldsBeginOf(from)) return Status();
  const SegmentId missing = header.previous_segment;
  std::string text = options_.directory + ": the log begins at position " + Number(header.first_position) +
                     ", in " + oldest.file->path() + ", but records from " + Number(from) +
                     " on are expected; segment " + std::to_string(missing.value) + " is missing (F34)";
  for (const Candidate& candidate : candidates_) {
    if (candidate.has_first_frame && candidate.first_frame.segment == missing) {
      text += "; the header of " + candidate.file->path() + ", offset 0, is bad, but frames of it are there";
    }
  }
  return Status::Corruption(text);
}

Task<Status> LogRecoverer::ReplayChain(LogPosition from, const LogReplaySink& sink) {
  Status replayed = co_await ReplaySegments(from, sink);
  co_await reads_.Join();
  co_return replayed;
}

Task<Status> LogRecoverer::ReplaySegments(LogPosition from, const LogReplaySink& sink) {
  size_t first = 0;  // The last segment that holds the beginning of `from`.
  for (size_t i = 1; i < chain_.size(); ++i) {
    if (candidates_[chain_[i]].header().begin().HoldsBeginOf(from)) first = i;
  }
  const SegmentHeader& begin = candidates_[chain_[first]].header();
  RecordAssembler assembler(from, begin.first_position, begin.continues());
  for (size_t i = first; i < chain_.size(); ++i)
    replay_bytes_ += candidates_[chain_[i]].header().segment_size;
  for (size_t i = first; i + 1 < chain_.size(); ++i) {
    PARTITA_CO_TRY(co_await ReplayEnded(i, &assembler, sink));
    replayed_bytes_ += candidates_[chain_[i]].header().segment_size;
  }
  PARTITA_CO_TRY(co_await ReplayHead(&assembler, sink));
  TellReplayed(head_->header().segment_size);
  const LogPosition end{assembler.next().value - 1};
  out_.start.end = end;
  out_.report.first = assembler.first_delivered();
  out_.report.last = end;
  out_.report.records = assembler.delivered();
  co_return Status();
}

void LogRecoverer::TellReplayed(uint64_t of_segment) const {
  if (options_.replayed) options_.replayed(replayed_bytes_ + of_segment, replay_bytes_);
}

Status LogRecoverer::Feed(const Candidate& from, uint64_t offset, const ParsedFrame& frame,
                          RecordAssembler* assembler, const LogReplaySink& sink) {
  out_.start.version_max = std::max(out_.start.version_max, frame.header.version_max);
  out_.start.version_ceiling = std::max(out_.start.version_ceiling, frame.header.version_ceiling);
  TellReplayed(offset);
  Status fed = assembler->Feed(frame, sink);
  return fed.ok() ? fed : fed.WithContext(from.file->path() + ", offset " + std::to_string(offset));
}

Task<Result<bool>> LogRecoverer::NextAgain(SegmentReader* reader, ParsedFrame* frame) {
  auto found = co_await reader->Next(frame);
  const bool bad = found.ok() ? !found.value() : found.code() == Code::kCorruption;
  if (!bad) co_return std::move(found);
  PARTITA_CO_TRY(co_await reader->Reload());
  co_return co_await reader->Next(frame);
}

Task<Status> LogRecoverer::ReplayEnded(size_t index, RecordAssembler* assembler, const LogReplaySink& sink) {
  Candidate& segment = candidates_[chain_[index]];
  const SegmentHeader& next = candidates_[chain_[index + 1]].header();
  out_.start.version_ceiling = std::max(out_.start.version_ceiling, segment.header().version_ceiling);
  SegmentReader reader(*segment.file, segment.sealed, &reads_);
  ParsedFrame frame;
  while (reader.last_seal() != next.previous_seal) {
    const uint64_t offset = reader.offset();
    PARTITA_CO_ASSIGN(const bool found, co_await NextAgain(&reader, &frame));
    if (!found) {
      co_return Status::Corruption(At(*segment.file, offset) + "the frame with position " +
                                   Number(assembler->next()) + " is bad, though segment " +
                                   std::to_string(next.segment.value) + " goes on after it at position " +
                                   Number(next.first_position) + " (F31)");
    }
    PARTITA_CO_TRY(Feed(segment, offset, frame, assembler, sink));
  }
  if (!next.continues()) assembler->DropPartial();
  if (assembler->next() != next.first_position) {
    co_return Status::Corruption(At(*segment.file, reader.offset()) + "the segment ends before position " +
                                 Number(assembler->next()) + ", but its successor begins at " +
                                 Number(next.first_position) + " (F34)");
  }
  co_return Status();
}

Task<Status> LogRecoverer::ReplayHead(RecordAssembler* assembler, const LogReplaySink& sink) {
  out_.start.version_ceiling = std::max(out_.start.version_ceiling, head_->header().version_ceiling);
  SegmentReader reader(*head_->file, head_->sealed, &reads_);
  ParsedFrame frame;
  bool closed = false;
  while (true) {
    const uint64_t offset = reader.offset();
    PARTITA_CO_ASSIGN(const bool found, co_await NextAgain(&reader, &frame));
    if (!found) break;
    closed = frame.header.closes();
    PARTITA_CO_TRY(Feed(*head_, offset, frame, assembler, sink));
  }
  PARTITA_CO_ASSIGN(const FramesBeyond beyond, co_await reader.ScanBeyond());
  // The one place that tells a torn tail from damage: the watermark, not mere validity (F31).
  bool proof = beyond.any && beyond.durable_max >= assembler->next();
  if (options_.planted == LogDefect::kEveryBadIsTorn) proof = false;
  if (options_.planted == LogDefect::kValidityIsProof) proof = beyond.any;
  if (proof) {
    co_return Status::Corruption(At(*head_->file, reader.offset()) + "the frame with position " +
                                 Number(assembler->next()) + " is bad, though the one at offset " +
                                 std::to_string(beyond.durable_at) + " says that position " +
                                 Number(beyond.durable_max) + " was flushed before it was written (F31)");
  }
  out_.report.torn_bytes = beyond.end - reader.offset();
  out_.report.torn_behind = LogPosition{assembler->next().value - 1};
  out_.report.clean = closed && out_.report.torn_bytes == 0;
  out_.start.last_seal = reader.last_seal();
  assembler->DropPartial();
  co_return Status();
}

Status LogRecoverer::ReplayTail(LogPosition from, const LogReplaySink& sink) {
  if (options_.planted == LogDefect::kForgetTail) return Status();
  const auto records = tail_.ReadAll(head_->header().incarnation);
  LogRecovery& report = out_.report;
  auto at = records.upper_bound(report.last);
  for (; at != records.end() && at->first.value == report.last.value + 1; ++at) {
    const TailRecord& record = at->second;
    out_.tail_records.push_back(record);
    report.last = record.position;
    report.clean = false;
    out_.start.version_max = std::max(out_.start.version_max, record.version);
    if (record.position < from) continue;
    if (report.records++ == 0) report.first = record.position;
    const Status taken = sink(LogRecord{record.position, record.version, record.payload});
    if (!taken.ok())
      return taken.WithContext(options_.directory + "/tail, record with position " + Number(record.position));
  }
  if (at == records.end()) return Status();
  report.records_stranded = static_cast<uint64_t>(std::distance(at, records.end()));
  report.stranded_to = records.rbegin()->first;
  report.clean = false;
  return Status();
}

// Sorts the files by what may be done with them from here on.
void LogRecoverer::Deliver() {
  out_.report.version_max = std::max(out_.start.version_max, out_.start.version_ceiling);
  const SegmentId head = head_ != nullptr ? head_->header().segment : SegmentId{0};
  for (size_t index : chain_) {
    Candidate& candidate = candidates_[index];
    const SegmentHeader& header = candidate.header();
    out_.start.segments.push_back({.file = std::move(candidate.file),
                                   .id = header.segment,
                                   .begin = header.begin(),
                                   .reusable = header.segment_size == options_.segment_size,
                                   .used = header.segment_size});
  }
  for (Candidate& candidate : candidates_) {
    if (candidate.in_chain) continue;
    const bool is_whole = candidate.valid && !candidate.is_short;
    if (!is_whole || candidate.header().segment_size != options_.segment_size) {
      out_.leftovers.push_back(std::move(candidate.file));
    } else if (candidate.header().segment > head) {
      // Its frames carry an id above the head's: were its header torn now, it would look like a
      // later segment that lost it.
      out_.late_spares.push_back(std::move(candidate.file));
    } else {
      out_.spares.push_back(std::move(candidate.file));
    }
  }
}

}  // namespace partita
