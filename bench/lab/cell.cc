#include "bench/lab/cell.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "bench/lab/arrival_schedule.h"
#include "bench/lab/sliced_wait.h"
#include "engine/io/thread_setup.h"

// One thread a client. Each takes the next operation of the one stream, sleeps until it is due, does it, and
// records its latency from when it was due: who waits because all clients are busy has waited (no coordinated
// omission).
namespace partita::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLateStart_s = 1e-3;
// What is due and not begun so long after the end is given up and counted.
constexpr double kOverrunMax_s = 5;
constexpr double kMeasuredMin_s = 1e-3;
// Of the measured time: what is due in its last part tells how far all lag behind.
constexpr double kLastPart = 0.1;

struct Due {
  Operation operation;
  double at = 0;  // Seconds from the start.
};

// From when to when measured operations were due, and were done.
struct Span {
  double first_due = std::numeric_limits<double>::infinity(), first_start = first_due;
  double last_due = 0, last_end = 0;

  void Add(const Span& other) {
    first_due = std::min(first_due, other.first_due);
    first_start = std::min(first_start, other.first_start);
    last_due = std::max(last_due, other.last_due);
    last_end = std::max(last_end, other.last_end);
  }
  // `lags`: what those of the last part took from when they were due. Their median is taken: one that waits
  // long, as for its second try, is no lag of the others.
  double SecondsOf(double asked_s, const bench::Histogram& lags) const {
    if (last_end == 0) return asked_s;
    const double lag_s =
        lags.count() == 0 ? last_end - last_due : static_cast<double>(lags.Percentile(0.5)) * 1e-9;
    return std::max(asked_s + lag_s - (first_start - first_due), kMeasuredMin_s);
  }
};

// The stream and its schedule, shared by the clients.
class Dispatcher {
 public:
  Dispatcher(const RecordGenerator& generator, const Arrival& arrival, double rate, Clock::time_point started)
      : arrival_(arrival),
        started_(started),
        stream_(generator),
        schedule_(arrival_, rate, generator.experiment().seed) {}

  std::optional<Due> Next() {
    const std::lock_guard lock(mutex_);
    if (is_stopped()) return std::nullopt;
    std::optional<double> at;
    if (arrival_.model == ArrivalModel::kClosed) {
      if (Now() < end()) at = Now();
    } else {
      at = schedule_.Next();
    }
    if (!at) return std::nullopt;
    return Due{.operation = stream_.Next(), .at = *at};
  }
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

  double Now() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }
  double end() const { return arrival_.warmup_s + arrival_.duration_s; }
  // From when on what is due is of the last part; never, where nothing is due before it begins.
  double last_part() const {
    if (arrival_.model == ArrivalModel::kClosed) return std::numeric_limits<double>::infinity();
    return end() - arrival_.duration_s * kLastPart;
  }
  const Arrival& arrival() const { return arrival_; }
  bool is_stopped() const { return stopped_.load(std::memory_order_relaxed); }
  // Or until it is stopped: operations may be far apart.
  void SleepUntil(double at) const {
    const auto since = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at));
    (void)SlicedWaitUntil(started_ + since, [this] { return !is_stopped(); });
  }

 private:
  const Arrival& arrival_;
  const Clock::time_point started_;
  std::mutex mutex_;
  OperationStream stream_;
  ArrivalSchedule schedule_;
  std::atomic<bool> stopped_{false};
};

// What some of the clients count. Several share one, so that memory does not grow with their number: one is
// some 0.2 MB, 0.04 MB for each operation of the experiment, and 40 bytes for each second.
class Recorder {
 public:
  void Begin(const Dispatcher& dispatcher, size_t rows, size_t ops) {
    last_part_ = dispatcher.last_part();
    figures_.ops.resize(ops);
    figures_.timeline = Timeline(dispatcher.end(), rows);
  }

  void WasDue(const Due& due, bool measured) {
    const std::lock_guard lock(mutex_);
    if (measured) ++figures_.ops[due.operation.op].operations;
    ++Second(due.at).due;
    figures_.timeline.Due(due.at);
  }

  // It is begun so much later than it was due; `was_free`: its client waited for it.
  void Started(const Due& due, double late_s, bool was_free) {
    const std::lock_guard lock(mutex_);
    const bool is_late = late_s > kLateStart_s;
    // Whoever is free takes the next operation ahead of its time.
    if (!was_free && is_late) ++figures_.ops[due.operation.op].waited;
    if (!was_free) return;
    ++figures_.on_time_possible;
    if (is_late) ++figures_.late_starts;
  }
  void GivenUp(const Due& due, bool was_free) {
    const std::lock_guard lock(mutex_);
    ++figures_.ops[due.operation.op].unfinished;
    if (!was_free) ++figures_.ops[due.operation.op].waited;
  }

  void Ended(const Due& due, double start, double now, const Outcome& outcome, bool measured) {
    const std::lock_guard lock(mutex_);
    const auto latency = static_cast<uint64_t>((now - due.at) * 1e9);
    NoteTime(now, latency, outcome);
    if (!measured) return;
    OpFigures& figures = figures_.ops[due.operation.op];
    span_.Add({.first_due = due.at, .first_start = start, .last_due = due.at, .last_end = now});
    if (due.at >= last_part_) last_lags_.Record(latency);
    if (outcome.throttled) ++figures.throttled;
    if (outcome.throttled && outcome.by_account) ++figures.throttled_by_account;
    if (outcome.missing) ++figures.missing;
    if (outcome.status.ok()) {
      ++figures.completed;
      figures.requests += outcome.requests;
      figures.scanned += outcome.scanned;
      if (!outcome.tells_scanned) ++figures.untold;
      if (outcome.client_filters) ++figures.unfiltered;
      figures.returned += outcome.returned;
      figures.written += outcome.written;
      figures.bytes += outcome.bytes;
      figures.latency.Record(latency);
      figures.service.Record(static_cast<uint64_t>((now - start) * 1e9));
    } else if (outcome.status.code() == Code::kThrottled) {
      ++figures.dropped;
    } else {
      ++figures.failed;
      if (figures.first_error.empty()) figures.first_error = outcome.status.ToString();
    }
  }

  // REQUIRES: nobody counts any more.
  const CellFigures& figures() const { return figures_; }
  const Span& span() const { return span_; }
  const bench::Histogram& last_lags() const { return last_lags_; }

 private:
  SecondFigures& Second(double at) {
    const auto second = static_cast<size_t>(at);
    if (figures_.seconds.size() <= second) figures_.seconds.resize(second + 1);
    return figures_.seconds[second];
  }
  void NoteTime(double now, uint64_t latency, const Outcome& outcome) {
    SecondFigures& second = Second(now);
    for (const Touch& touch : outcome.touches) figures_.timeline.Touched(now, touch);
    ++second.ended;
    figures_.timeline.Ended(now);
    if (outcome.throttled) {
      ++second.throttled;
      figures_.timeline.Throttled(now);
    }
    if (outcome.status.ok()) {
      figures_.timeline.Completed(now, latency);
      ++second.completed;
      second.latency_max_ns = std::max(second.latency_max_ns, latency);
    }
  }

  std::mutex mutex_;  // Of all that follows.
  CellFigures figures_;
  Span span_;
  double last_part_ = 0;
  bench::Histogram last_lags_;  // Of what was due from then on.
};
constexpr size_t kRecordersMax = 8;

class Client {
 public:
  Client(const Target& target, Dispatcher* dispatcher, Recorder* recorder)
      : target_(target), dispatcher_(*dispatcher), recorder_(*recorder) {}

  void Run() {
    while (const std::optional<Due> due = dispatcher_.Next()) {
      Do(*due);
      const double think = dispatcher_.arrival().think_s;
      if (dispatcher_.arrival().model == ArrivalModel::kClosed && think > 0) {
        dispatcher_.SleepUntil(std::min(dispatcher_.Now() + think, dispatcher_.end()));
      }
    }
  }

 private:
  void Do(const Due& due) {
    const bool measured = due.at >= dispatcher_.arrival().warmup_s;
    recorder_.WasDue(due, measured);
    const bool was_free = dispatcher_.Now() < due.at;
    if (was_free) dispatcher_.SleepUntil(due.at);
    if (dispatcher_.is_stopped()) return;
    const double start = dispatcher_.Now();
    if (start > dispatcher_.end() + kOverrunMax_s) {
      if (measured) recorder_.GivenUp(due, was_free);
      return;
    }
    if (measured) recorder_.Started(due, start - due.at, was_free);
    const Outcome outcome = target_.Execute(due.operation);
    recorder_.Ended(due, start, dispatcher_.Now(), outcome, measured);
  }

  const Target& target_;
  Dispatcher& dispatcher_;
  Recorder& recorder_;
};

void AddTo(CellFigures* all, const CellFigures& one) {
  for (size_t op = 0; op < one.ops.size(); ++op) all->ops[op].Add(one.ops[op]);
  if (all->seconds.size() < one.seconds.size()) all->seconds.resize(one.seconds.size());
  for (size_t i = 0; i < one.seconds.size(); ++i) {
    SecondFigures& second = all->seconds[i];
    second.due += one.seconds[i].due;
    second.completed += one.seconds[i].completed;
    second.throttled += one.seconds[i].throttled;
    second.ended += one.seconds[i].ended;
    second.latency_max_ns = std::max(second.latency_max_ns, one.seconds[i].latency_max_ns);
  }
  all->timeline.Add(one.timeline);
  all->late_starts += one.late_starts;
  all->on_time_possible += one.on_time_possible;
}

}  // namespace

void OpFigures::Add(const OpFigures& other) {
  operations += other.operations;
  completed += other.completed;
  throttled += other.throttled;
  throttled_by_account += other.throttled_by_account;
  dropped += other.dropped;
  failed += other.failed;
  missing += other.missing;
  unfinished += other.unfinished;
  waited += other.waited;
  requests += other.requests;
  scanned += other.scanned;
  untold += other.untold;
  unfiltered += other.unfiltered;
  returned += other.returned;
  written += other.written;
  bytes += other.bytes;
  latency.Merge(other.latency);
  service.Merge(other.service);
  if (first_error.empty()) first_error = other.first_error;
}

bool CellFigures::clients_limited() const {
  uint64_t waited = 0, operations = 0;
  for (const OpFigures& figures : ops) {
    waited += figures.waited;
    operations += figures.operations;
  }
  return waited * 100 > operations;
}

Result<CellFigures> RunCell(const Target& target, const RecordGenerator& generator, double rate,
                            const std::function<bool(double seconds)>& progress) {
  const Experiment& experiment = generator.experiment();
  // The clients begin before the first operation is due.
  constexpr std::chrono::milliseconds kLead{20};
  Dispatcher dispatcher(generator, experiment.ArrivalOf(target.layout()), rate, Clock::now() + kLead);
  const double started_unix_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch() + kLead).count();
  const size_t rows = target.key_rows().labels().size();
  std::vector<Recorder> recorders(std::min<size_t>(experiment.arrival.clients, kRecordersMax));
  for (Recorder& recorder : recorders) recorder.Begin(dispatcher, rows, experiment.ops.size());
  std::vector<Client> clients;
  for (uint32_t i = 0; i < experiment.arrival.clients; ++i) {
    clients.emplace_back(target, &dispatcher, &recorders[i % recorders.size()]);
  }
  std::mutex mutex;
  std::condition_variable all_done;
  size_t running = clients.size();  // Under the mutex.
  std::vector<std::thread> threads;
  Status started;
  for (Client& client : clients) {
    Result<std::thread> thread = StartThread("partita-client", [&client, &mutex, &all_done, &running] {
      client.Run();
      const std::lock_guard lock(mutex);
      if (--running == 0) all_done.notify_one();
    });
    if (!thread.ok()) {
      started = thread.status();
      dispatcher.Stop();
      const std::lock_guard lock(mutex);
      running -= clients.size() - threads.size();
      break;
    }
    threads.push_back(std::move(*thread));
  }
  constexpr std::chrono::milliseconds kBetweenTellings{50};
  for (std::unique_lock lock(mutex);
       !all_done.wait_for(lock, kBetweenTellings, [&] { return running == 0; });) {
    if (!progress(std::clamp(dispatcher.Now(), 0.0, dispatcher.end()))) dispatcher.Stop();
  }
  for (std::thread& thread : threads) thread.join();
  PARTITA_TRY(started);
  CellFigures figures;
  figures.ops.resize(experiment.ops.size());
  figures.timeline = Timeline(dispatcher.end(), rows);
  Span span;
  bench::Histogram last_lags;
  for (const Recorder& recorder : recorders) {
    AddTo(&figures, recorder.figures());
    span.Add(recorder.span());
    last_lags.Merge(recorder.last_lags());
  }
  figures.started_unix_s = started_unix_s;
  figures.measured_s = span.SecondsOf(experiment.arrival.duration_s, last_lags);
  return figures;
}

}  // namespace partita::lab
