#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/base/log_store.h"
#include "engine/io/file.h"
#include "wal/local_log_store.h"
#include "wal/log_appender.h"
#include "wal/log_tail.h"
#include "wal/segment_reader.h"

namespace partita {

// What is to say when a log is known to have reached a segment, and its newest one is an older one (F35).
Status NewestSegmentLost(const std::string& directory, SegmentId reached, SegmentId newest);

// Reads a log back and decides where it ends. Changes nothing on disk.
//
//  1. Every file, and the directory, is flushed, and its cached pages dropped: what is read then is
//     durable and stays what it is, so a recovery that is killed and repeated decides alike
//     (F28, F29). That a flush once failed does not show in the cache any more.
//  2. The *head* is the segment with the highest id that is in effect (segment_format.h). Its
//     header names the segment before it, and so on: the chain. Files outside the chain are spares.
//     A file whose first frame is of a later segment than the head has lost its header: damage.
//  3. A segment with a successor must hold every record below the successor's first position, up
//     to the frame whose seal the successor names. What is missing there is damage (F31, F34).
//  4. The head may end anywhere. At the first bad frame, with E the last record before it:
//       - some later frame of this segment says that E + 1 was known flushed: damage;
//       - none does: a torn tail. It may well be that later frames are valid: what was not flushed
//         survives in any order, so validity proves nothing, only the watermark does (F31).
//     This is the hard case; what it cannot decide is the last group before an unclean stop (F32).
//  5. The tail of the head's incarnation goes on after E, as far as its positions are dense. What it
//     holds beyond is given up and counted: it may be damage, or what a loss of power has left.
//
// After it the caller starts a new segment at E + 1, with the records of 5 in it, which voids what
// older files hold from there on (F33).
class LogRecoverer {
 public:
  struct Outcome {
    AppenderStart start;                   // The chain, up to E.
    LogRecovery report;                    // Tail records included.
    std::vector<TailRecord> tail_records;  // Views into the tail's mapping; to be copied.
    // Not of the chain: spares that may be used at once; those that may only once the new segment
    // is in effect; and files to remove then: no valid header and no sign of use, another size, or
    // cut short.
    std::vector<std::unique_ptr<File>> spares;
    std::vector<std::unique_ptr<File>> late_spares;
    std::vector<std::unique_ptr<File>> leftovers;
  };

  LogRecoverer(FileSystem& files, const LocalLogOptions& options, const LogTail& tail)
      : files_(files), options_(options), owner_{options.store, options.shard}, tail_(tail) {}

  // `segment_files`: every segment file of the directory, open for writing.
  Task<Result<Outcome>> Run(std::vector<std::unique_ptr<File>> segment_files, LogPosition from,
                            LogReplaySink sink);

 private:
  struct Candidate {
    std::unique_ptr<File> file;
    bool valid = false;     // The header.
    bool is_short = false;  // The file has fewer bytes than the header says.
    SealedHeader sealed;
    bool has_first_frame = false;
    FrameHeader first_frame;
    bool in_chain = false;

    const SegmentHeader& header() const { return sealed.header; }
    bool in_use() const { return valid && sealed.header.in_use(); }
  };

  Task<Status> Examine(std::unique_ptr<File> file);
  Status CheckOwner(const Candidate& candidate) const;
  Task<Status> FindHead();
  Task<Result<bool>> InEffect(Candidate& candidate);
  Status CheckNoLaterSegment() const;
  Status BuildChain(LogPosition from);
  Task<Status> ReplayChain(LogPosition from, const LogReplaySink& sink);
  Task<Status> ReplaySegments(LogPosition from, const LogReplaySink& sink);
  Task<Status> ReplayEnded(size_t index, RecordAssembler* assembler, const LogReplaySink& sink);
  Task<Status> ReplayHead(RecordAssembler* assembler, const LogReplaySink& sink);
  void TellReplayed(uint64_t of_segment) const;
  Status Feed(const Candidate& from, uint64_t offset, const ParsedFrame& frame, RecordAssembler* assembler,
              const LogReplaySink& sink);
  // After a bad frame that should be good: reads it once more past all caches (F52).
  Task<Result<bool>> NextAgain(SegmentReader* reader, ParsedFrame* frame);
  Status ReplayTail(LogPosition from, const LogReplaySink& sink);
  void Deliver();

  FileSystem& files_;
  const LocalLogOptions& options_;
  const LogIdentity owner_;
  const LogTail& tail_;
  std::vector<Candidate> candidates_;
  std::vector<size_t> chain_;  // Indices, oldest first; the head is the last.
  Candidate* head_ = nullptr;
  uint64_t replayed_bytes_ = 0, replay_bytes_ = 0;  // Of segments: of those that are done, and of all.
  TaskGroup reads_;  // Ahead, in files of candidates_; running only within ReplayChain.
  Outcome out_;
};

}  // namespace partita
