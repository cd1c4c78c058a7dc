#include "wal/log_salvage.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "wal/log_tail.h"
#include "wal/segment_pool.h"
#include "wal/segment_reader.h"

namespace partita {

namespace {

bool IsUnreadable(const Status& status) {
  return status.code() == Code::kCorruption || status.code() == Code::kIoError;
}

class LogSalvager {
 public:
  LogSalvager(FileSystem& files, const LocalLogOptions& options, LogPosition from, LogReplaySink sink)
      : files_(files), options_(options), owner_{options.store, options.shard}, from_(from) {
    sink_ = [this, sink = std::move(sink)](const LogRecord& record) {
      Status taken = sink(record);
      if (!taken.ok()) {
        refused_ = !IsUnreadable(taken);
        return taken;
      }
      if (out_.records++ == 0) out_.first = record.position;
      out_.last = record.position;
      out_.version_last = record.version;
      return taken;
    };
  }

  // What a log that recovery reads has beside its records.
  Task<Result<SalvagedLog>> LookAt() {
    PARTITA_CO_TRY(co_await FindSegments());
    PARTITA_CO_TRY(co_await FindChain());
    PARTITA_CO_TRY(co_await LookAtTheRest());
    PARTITA_CO_TRY(co_await OpenTail());
    co_return std::move(out_);
  }

  // Behind LookAt: recovery, which goes by names in headers alone, has not read all segments.
  bool reads_more_than_recovery() const { return reads_more_; }

  Task<Result<SalvagedLog>> Run() {
    PARTITA_CO_TRY(co_await FindSegments());
    PARTITA_CO_TRY(co_await FindChain());
    PARTITA_CO_TRY(co_await OpenTail());
    out_.lost = true;  // Until the walk has come to the end.
    if (!chain_.empty()) {
      PARTITA_CO_TRY(co_await Walk());
      PARTITA_CO_TRY(co_await LookAtTheRest());
    }
    // Also where the walk broke: the tail may hold what comes next.
    if (assembler_.has_value()) PARTITA_CO_TRY(co_await ReadTail());
    if (durable_ > delivered_to_) out_.lost = true;               // F31.
    if (head_id() < options_.newest_segment) out_.lost = true;    // F35.
    if (delivered_to_.value + 1 < from_.value) out_.lost = true;  // F31.
    if (out_.lost && reached_ > delivered_to_) out_.lost_to = reached_;
    co_return std::move(out_);
  }

 private:
  struct Segment {
    std::unique_ptr<File> file;
    SealedHeader sealed;
    bool has_header = true;  // Else it is made of the first frame.
    bool in_effect = true;
    bool stands_in = false;  // For the one that its successor in the chain names.
    uint64_t file_size = 0;  // 0: it cannot be told.
    const SegmentHeader& header() const { return sealed.header; }
    bool is_short() const { return file_size < header().segment_size; }  // It was cut (F57).
  };

  // ---- What there is.

  Task<Status> FindSegments() {
    PARTITA_CO_ASSIGN(const bool exists, co_await files_.Exists(options_.directory));
    if (!exists) co_return Status();
    PARTITA_CO_ASSIGN(const std::vector<DirectoryEntry> entries, co_await files_.List(options_.directory));
    for (const DirectoryEntry& entry : entries) {
      if (!SegmentPool::NumberOf(entry.name)) continue;
      const std::string path = options_.directory + "/" + entry.name;
      auto file = co_await SegmentPool::OpenFile(files_, path, OpenMode::kRead);
      if (!file.ok() && !IsUnreadable(file.status())) co_return file.status();
      if (!file.ok()) continue;  // The first attempt has said so.
      PARTITA_CO_TRY(co_await Examine(std::move(file).value()));
    }
    co_return Status();
  }

  Task<Status> Examine(std::unique_ptr<File> file) {
    Segment segment;
    auto header = co_await SegmentReader::ReadHeader(*file);
    if (!header.ok() && !IsUnreadable(header.status())) co_return header.status().WithContext(file->path());
    if (header.ok()) {
      segment.sealed = *header;
    } else {
      const std::optional<SealedHeader> made = co_await HeaderOfFirstFrame(*file);
      if (!made) co_return Status();
      segment.sealed = *made;
      segment.has_header = false;
    }
    if (segment.sealed.owner.store != owner_.store || segment.sealed.owner.shard != owner_.shard ||
        !segment.header().in_use()) {
      co_return Status();
    }
    out_.incarnation_max = std::max(out_.incarnation_max, segment.header().incarnation);
    out_.version_max = std::max(out_.version_max, segment.header().version_ceiling);
    const Result<uint64_t> size = co_await file->Size();
    segment.file_size = size.ok() ? *size : 0;
    segment.file = std::move(file);
    segment.in_effect = !segment.header().awaits_effect() || co_await TakesEffect(segment);
    segments_.emplace(segment.header().segment, std::move(segment));
    co_return Status();
  }

  // What the header of a segment said is in its first frame, too: 3.
  Task<std::optional<SealedHeader>> HeaderOfFirstFrame(File& file) {
    const Result<uint64_t> size = co_await file.Size();
    FrameHeader first;
    const Result<bool> found = co_await SegmentReader::ReadFirstFrame(file, owner_, &first);
    if (!size.ok() || !found.ok() || !*found) co_return std::nullopt;
    SealedHeader made;
    made.owner = owner_;
    made.header.segment = first.segment;
    made.header.incarnation = first.incarnation;
    made.header.segment_size = AlignDown(*size, kPageSize);
    made.header.first_position = first.first_position;
    if (first.continues()) made.header.flags = kSegmentContinues;
    made.seal = first.previous_seal;  // With it the chain of seals begins.
    co_return made;
  }

  // As LogRecoverer::InEffect, but that damage in front of the frame that says so is for the walk to meet.
  Task<bool> TakesEffect(const Segment& segment) {
    SegmentReader reader(*segment.file, segment.sealed);
    ParsedFrame frame;
    while (true) {
      Result<bool> found = co_await NextAgain(&reader, &frame);
      if (!found.ok() || !*found) break;
      if (frame.header.takes_effect()) co_return true;
    }
    const Result<FramesBeyond> beyond = co_await reader.ScanBeyond();
    if (!beyond.ok() || segment.is_short()) co_return true;  // What cannot be read may have been.
    co_return beyond->any && beyond->durable_max >= segment.header().first_position;
  }

  // From the newest segment in effect back along the names of predecessors; where that name is lost or names
  // nothing, the next older segment stands in, and positions tell whether it fits. When `from` is 0, recovery
  // reads neither that one nor one without a header, nor what is in front of them: these count only as far as
  // they are whole.
  Task<Status> FindChain() {
    auto at = segments_.end();
    for (auto i = segments_.begin(); i != segments_.end(); ++i) {
      if (i->second.in_effect) at = i;
    }
    while (at != segments_.end()) {
      Segment& segment = at->second;
      chain_.push_back(&segment);
      const SegmentId previous = segment.header().previous_segment;
      if (segment.has_header && previous.value == 0) break;  // The first of the log.
      auto older = segment.has_header ? segments_.find(previous) : segments_.end();
      const bool stands_in = older == segments_.end() && at != segments_.begin();
      if (stands_in) older = std::prev(at);
      const bool is_more =
          older != segments_.end() && (reads_more_ || stands_in || !older->second.has_header);
      if (from_.value == 0 && is_more) {
        PARTITA_CO_ASSIGN(const bool fits, co_await ReachesTo(older->second, segment.header()));
        if (!fits) older = segments_.end();
        reads_more_ = reads_more_ || fits;
      }
      if (older != segments_.end()) older->second.stands_in = stands_in;
      if (older == segments_.end() && from_.value == 0) NoteMidway(segment);
      if (older != segments_.end() && older->first >= at->first) break;
      at = older;
    }
    std::reverse(chain_.begin(), chain_.end());
    co_return Status();
  }

  // Whether the segment holds all up to where `next` begins.
  Task<Result<bool>> ReachesTo(const Segment& segment, const SegmentHeader& next) {
    SegmentReader reader(*segment.file, segment.sealed);
    LogPosition reached = segment.header().first_position;
    bool continued = segment.header().continues();
    ParsedFrame frame;
    while (reached <= next.first_position) {
      if (reached == next.first_position && (continued || !next.continues())) co_return true;
      const Result<bool> found = co_await NextAgain(&reader, &frame);
      if (!found.ok() && !IsUnreadable(found.status())) co_return found.status();
      if (!found.ok() || !*found) break;
      reached = frame.header.next_position();
      continued = frame.header.continued();
    }
    co_return false;
  }

  void NoteMidway(const Segment& oldest) {
    const SegmentHeader& header = oldest.header();
    out_.begins_midway = options_.directory + ": the log begins at position " +
                         std::to_string(header.first_position.value) + ", in " + oldest.file->path();
    out_.begins_after = oldest.has_header ? header.version_ceiling : kVersionMax;
    if (oldest.has_header) {
      out_.begins_midway +=
          ", though segment " + std::to_string(header.previous_segment.value) + " was in front of it";
    }
    out_.begins_midway += "; without a manifest nothing says that what came before is in tables (F34)";
  }

  uint64_t head_id() const { return chain_.empty() ? 0 : chain_.back()->header().segment.value; }

  // ---- The walk.

  Task<Status> Walk() {
    size_t first = 0;
    for (size_t i = 1; i < chain_.size(); ++i) {
      if (chain_[i]->header().begin().HoldsBeginOf(from_)) first = i;
    }
    const SegmentHeader& start = chain_[first]->header();
    if (from_.value > 0 && !start.begin().HoldsBeginOf(from_)) {  // A gap in front of everything.
      out_.begins_behind = start.segment;
      co_return Status();
    }
    assembler_.emplace(from_, start.first_position, start.continues());
    for (size_t i = first; i < chain_.size(); ++i) {
      PARTITA_CO_ASSIGN(const bool whole, co_await WalkSegment(i));
      delivered_to_ = LogPosition(assembler_->next().value - 1);
      if (!whole) co_return Status();
    }
    out_.lost = false;
    co_return Status();
  }

  // True when the segment holds all that its successor does not; of the last one, all that was flushed.
  Task<Result<bool>> WalkSegment(size_t index) {
    const Segment& segment = *chain_[index];
    const SegmentHeader* next = index + 1 < chain_.size() ? &chain_[index + 1]->header() : nullptr;
    const bool next_has_seal = next != nullptr && chain_[index + 1]->has_header;
    SegmentReader reader(*segment.file, segment.sealed);
    ParsedFrame frame;
    bool closed = false;
    const bool by_seal = next_has_seal && !segment.stands_in;  // Else by position: what follows is void.
    while (!by_seal || reader.last_seal() != next->previous_seal) {
      if (next != nullptr && !by_seal && IsAtBegin(*next)) break;
      Result<bool> found = co_await NextAgain(&reader, &frame);
      if (!found.ok() && !IsUnreadable(found.status())) co_return found.status();
      if (found.ok() && *found) {
        NoteVersions(frame.header);
        closed = frame.header.closes();
        Status fed = assembler_->Feed(frame, sink_);
        if (refused_) co_return fed;
        if (!fed.ok()) co_return false;
        continue;
      }
      if (next != nullptr && IsAtBegin(*next)) break;
      PARTITA_CO_ASSIGN(const bool resumed, co_await ResumeBefore(&reader));
      if (resumed) continue;
      if (next != nullptr) co_return false;
      Result<FramesBeyond> beyond = co_await reader.ScanBeyond();
      if (!beyond.ok()) co_return false;
      if (beyond->any && beyond->durable_max >= assembler_->next()) co_return false;
      if (!closed && MayBeCut(segment, reader.offset(), beyond->end)) co_return false;
      break;  // A torn tail, or the end.
    }
    if (next == nullptr || !next->continues()) assembler_->DropPartial();
    co_return next == nullptr || assembler_->next() == next->first_position;
  }

  // Whether frames may have been cut off behind the last good one, which ends at `offset`. How long the file
  // was its header says. Where that is lost, only a page that no frame had got to yet shows that there were
  // no more; `used` is where the last page ends that looks like one of a frame.
  static bool MayBeCut(const Segment& segment, uint64_t offset, uint64_t used) {
    if (segment.has_header) return segment.is_short();
    return offset + kPageSize > segment.file_size || used > offset;
  }

  bool IsAtBegin(const SegmentHeader& next) const {
    return assembler_->next() == next.first_position && (!next.continues() || assembler_->partial());
  }

  // Damage in front of `from`: on to the last later frame that begins at or before it (3).
  Task<Result<bool>> ResumeBefore(SegmentReader* reader) {
    if (from_.value == 0 || assembler_->next() > from_ || assembler_->delivered() > 0) co_return false;
    std::optional<FrameHeader> best;
    uint64_t best_at = 0;
    SegmentReader::FrameVisitor visit = [&](uint64_t offset, const ParsedFrame& frame) {
      const FrameHeader& header = frame.header;
      if (header.continues() || header.first_position > from_) return;
      if (header.first_position <= assembler_->next() && header.piece_count == 0) return;
      best = header;
      best_at = offset;
    };
    Result<FramesBeyond> beyond = co_await reader->ScanBeyond(std::move(visit));
    if (!beyond.ok() && !IsUnreadable(beyond.status())) co_return beyond.status();
    if (!best) co_return false;
    reader->ResumeAt(best_at, best->previous_seal);
    assembler_.emplace(from_, best->first_position, /*headless=*/false);
    co_return true;
  }

  Task<Result<bool>> NextAgain(SegmentReader* reader, ParsedFrame* frame) {
    auto found = co_await reader->Next(frame);
    if (found.ok() ? *found : !IsUnreadable(found.status())) co_return std::move(found);
    (void)co_await reader->Reload();
    co_return co_await reader->Next(frame);
  }

  // ---- Behind the prefix.

  void NoteVersions(const FrameHeader& header) {
    out_.version_max = std::max({out_.version_max, header.version_max, header.version_ceiling});
  }

  // Every valid frame of every segment, wherever it stands: 4.
  Task<Status> LookAtTheRest() {
    for (auto& [id, segment] : segments_) {
      SegmentReader reader(*segment.file, segment.sealed);
      SegmentReader::FrameVisitor visit = [this](uint64_t, const ParsedFrame& frame) {
        NoteVersions(frame.header);
        const uint64_t ends = frame.header.next_position().value - 1;
        durable_ = std::max(durable_, frame.header.durable_position);
        reached_ = std::max({reached_, LogPosition(ends), durable_});
      };
      Result<FramesBeyond> seen = co_await reader.ScanBeyond(std::move(visit));
      if (!seen.ok() && !IsUnreadable(seen.status())) co_return seen.status();
    }
    co_return Status();
  }

  Task<Status> OpenTail() {
    auto tail = co_await LogTail::OpenForReading(files_, options_.directory, owner_, /*must_exist=*/false);
    if (!tail.ok() && !IsUnreadable(tail.status())) co_return tail.status();
    if (!tail.ok()) co_return Status();
    tail_ = std::move(tail).value();
    out_.tail_incarnation = tail_->NewestIncarnation();
    co_return Status();
  }

  Task<Status> ReadTail() {
    if (tail_ == nullptr) {
      out_.lost = true;
      co_return Status();
    }
    PARTITA_CO_ASSIGN(const bool there, co_await files_.Exists(options_.directory + "/tail"));
    if (!there && options_.must_exist) out_.lost = true;  // Of level process, what segments do not hold.
    const auto records = tail_->ReadAll(chain_.back()->header().incarnation);
    if (!records.empty()) reached_ = std::max(reached_, records.rbegin()->first);
    auto at = records.upper_bound(delivered_to_);
    for (; at != records.end() && at->first.value == delivered_to_.value + 1; ++at) {
      const TailRecord& record = at->second;
      out_.version_max = std::max(out_.version_max, record.version);
      if (record.position >= from_) {
        Status taken = sink_(LogRecord{record.position, record.version, record.payload});
        if (refused_) co_return taken;
        if (!taken.ok()) break;
      }
      delivered_to_ = record.position;
    }
    if (at != records.end()) out_.lost = true;  // Behind what the sink cannot read, or what is nowhere.
    co_return Status();
  }

  FileSystem& files_;
  const LocalLogOptions& options_;
  const LogIdentity owner_;
  const LogPosition from_;
  LogReplaySink sink_;
  bool refused_ = false;  // The sink wants no more.
  std::map<SegmentId, Segment> segments_;
  std::vector<Segment*> chain_;    // Oldest first.
  bool reads_more_ = false;        // Than recovery.
  std::unique_ptr<LogTail> tail_;  // Null: it cannot be read.
  std::optional<RecordAssembler> assembler_;
  LogPosition delivered_to_;
  LogPosition durable_;  // What frames say was flushed,
  LogPosition reached_;  // and that or what they hold.
  SalvagedLog out_;
};

void NoteStranded(const LogRecovery& recovery, const LocalLogOptions& options, SalvagedLog* found) {
  if (recovery.records_stranded == 0) return;
  found->lost = true;
  found->lost_to = recovery.stranded_to;
  found->damages.push_back(options.directory + "/tail: position " + std::to_string(recovery.last.value + 1) +
                           " is nowhere, though " + std::to_string(recovery.records_stranded) +
                           " records behind it are there: power was lost, or the tail is damaged (F80)");
}

// As recovery reads it.
Task<Result<LogRecovery>> ReadAsRecovery(FileSystem& files, const LocalLogOptions& options, LogPosition from,
                                         LogReplaySink sink) {
  PARTITA_CO_ASSIGN(std::unique_ptr<LocalLogStore> log, co_await LocalLogStore::Open(files, options));
  Result<LogRecovery> recovered = co_await log->Recover(from, std::move(sink));
  Status closed = co_await log->Close();
  (void)closed;
  co_return recovered;
}

}  // namespace

Task<Result<SalvagedLog>> SalvageLog(FileSystem& files, LocalLogOptions options, LogPosition from,
                                     LogReplaySink sink) {
  options.read_only = true;
  options.incarnation = Incarnation(UINT32_MAX);
  // Whether it is sound, before anything is delivered.
  LogReplaySink check = [](const LogRecord&) { return Status(); };
  const Result<LogRecovery> sound = co_await ReadAsRecovery(files, options, from, std::move(check));
  if (!sound.ok() && !IsUnreadable(sound.status())) co_return sound.status();

  LogSalvager looker(files, options, from, nullptr);
  PARTITA_CO_ASSIGN(SalvagedLog found, co_await looker.LookAt());
  if (!sound.ok() || looker.reads_more_than_recovery()) {
    LogSalvager salvager(files, options, from, std::move(sink));
    PARTITA_CO_ASSIGN(found, co_await salvager.Run());
    if (!sound.ok()) {
      found.damages.push_back(sound.status().ToString());
    } else {
      NoteStranded(*sound, options, &found);
    }
    if (found.lost && found.damages.empty()) {
      found.damages.push_back(options.directory + ": what follows position " +
                              std::to_string(found.last.value) + " cannot be read (F80)");
    }
    co_return found;
  }
  found.version_max = std::max(found.version_max, sound->version_max);
  NoteStranded(*sound, options, &found);
  LogReplaySink note = [&found, &sink](const LogRecord& record) {
    Status taken = sink(record);
    if (!taken.ok()) return taken;
    if (found.records++ == 0) found.first = record.position;
    found.last = record.position;
    found.version_last = record.version;
    return taken;
  };
  const Result<LogRecovery> read = co_await ReadAsRecovery(files, options, from, std::move(note));
  if (!read.ok() && !IsUnreadable(read.status())) co_return read.status();
  if (!read.ok()) {
    // Sound frames with a record that the sink cannot read.
    found.lost = true;
    found.damages.push_back(read.status().ToString());
  }
  co_return found;
}

}  // namespace partita
