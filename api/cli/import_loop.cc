#include "api/cli/import_loop.h"

#include <chrono>

namespace partita {

namespace {

// Prints the first bad records and counts the others.
class BadRecordList {
 public:
  BadRecordList(Progress& progress, uint32_t printed_max) : progress_(progress), printed_max_(printed_max) {}

  void Add(const std::string& text) {
    if (printed_ == printed_max_) progress_.Message("(further bad records are counted, not listed)");
    if (printed_++ < printed_max_) progress_.Message(text);
  }

 private:
  Progress& progress_;
  const uint64_t printed_max_;
  uint64_t printed_ = 0;
};

// What the table refused since the last look; true when there was something.
bool ListRefusals(ImportPipeline& pipeline, BadRecordList* bad_records) {
  const std::vector<ImportPipeline::Refusal> refusals = pipeline.TakeRefusals();
  for (const ImportPipeline::Refusal& refusal : refusals) {
    bad_records->Add("line " + std::to_string(refusal.line) + ": " + refusal.status.message() + " (" +
                     std::string(CodeName(refusal.status.code())) + ")");
  }
  return !refusals.empty();
}

// Whichever comes first: an input may be slow, or the store.
constexpr uint64_t kRecordsBetweenLooks = 64;
constexpr std::chrono::milliseconds kTimeBetweenLooks{100};

// When to look at how it goes.
class Looks {
 public:
  // At each record.
  bool IsDue() {
    const auto now = std::chrono::steady_clock::now();
    if (++records_ < kRecordsBetweenLooks && now - last_ < kTimeBetweenLooks) return false;
    records_ = 0;
    last_ = now;
    return true;
  }

 private:
  uint64_t records_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

ImportOutcome ImportRecords(RecordReader& reader, ImportPipeline& pipeline, Progress& progress,
                            const ImportLoopOptions& options) {
  BadRecordList bad_records(progress, options.errors_max);
  ImportOutcome outcome;
  Looks looks;
  while (outcome.end == ImportEnd::kWhole) {
    if (options.stop && options.stop()) {
      outcome.end = ImportEnd::kStopped;
      break;
    }
    std::optional<Result<Entity>> record = reader.Next();
    // Asked again: whoever wrote the input may have been stopped with this process, amid a record.
    if (options.stop && options.stop()) {
      outcome.end = ImportEnd::kStopped;
      break;
    }
    if (!record.has_value()) break;
    const ImportPipeline::Place place{reader.line_number(), reader.resume_offset(), reader.resume_line()};
    if (record->ok()) {
      if (options.each_record) options.each_record(record->value(), place.line);
      pipeline.Submit(std::move(*record).value(), place);
    } else if (record->code() != Code::kInvalidArgument) {
      outcome = {ImportEnd::kFailed, record->status()};
      break;
    } else {
      bad_records.Add(record->status().message());
      if (options.each_bad_record) options.each_bad_record(place.line);
      pipeline.SkipBad(place);
      if (options.strict) outcome.end = ImportEnd::kStrict;
    }
    if (!looks.IsDue()) continue;
    if (ListRefusals(pipeline, &bad_records) && options.strict) outcome.end = ImportEnd::kStrict;
    Status state = pipeline.failure();
    if (state.ok() && options.now_and_then) state = options.now_and_then();
    if (!state.ok()) outcome = {ImportEnd::kFailed, state};
    progress.Update(place.next_offset, pipeline.imported() + pipeline.bad());
  }
  pipeline.Drain();
  // Stopped meanwhile it no longer tries what the store was too busy for.
  if (outcome.end == ImportEnd::kWhole && options.stop && options.stop()) outcome.end = ImportEnd::kStopped;
  if (ListRefusals(pipeline, &bad_records) && options.strict && outcome.end == ImportEnd::kWhole) {
    outcome.end = ImportEnd::kStrict;
  }
  if (Status failed = pipeline.failure(); !failed.ok()) outcome = {ImportEnd::kFailed, failed};
  progress.Finish();
  return outcome;
}

}  // namespace partita
