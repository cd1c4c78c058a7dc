#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/assert.h"
#include "engine/base/user_key.h"
#include "engine/page_scan.h"
#include "engine/scan_ahead.h"
#include "engine/scan_meter.h"
#include "engine/store.h"

// A scan goes range by range, in key order; when few rows pass, other shards work ahead (scan_ahead.h).

namespace partita {

namespace {

// Cuts off the scan's near end what no interval wants; false when nothing is left that one does.
bool SkipUnwanted(std::span<const ScanInterval> only, bool forward, ScanRequest* part) {
  if (forward) {
    const auto ends_before = [](const ScanInterval& interval, const std::string& key) {
      return interval.upper <= key;
    };
    const auto found = std::lower_bound(only.begin(), only.end(), part->lower, ends_before);
    if (found == only.end()) return false;
    part->lower = std::max(part->lower, found->lower);
  } else {
    PARTITA_ASSERT(!part->upper.empty());
    const auto begins_before = [](const ScanInterval& interval, const std::string& key) {
      return interval.lower < key;
    };
    const auto behind = std::lower_bound(only.begin(), only.end(), part->upper, begins_before);
    if (behind == only.begin()) return false;
    part->upper = std::min(part->upper, std::prev(behind)->upper);
  }
  return true;
}

}  // namespace

// How far a scan is.
struct Store::ScanCourse {
  const ScanRequest& whole;
  ScanAhead::Piece piece;  // In turn.
  ScanRequest rest;        // Behind it; without a lower bound at the end.

  bool forward() const { return whole.direction == Direction::kForward; }
  bool at_end() const { return rest.lower.empty(); }
  // The piece in turn is to be routed again.
  void StepBack() {
    if (forward()) {
      rest.lower = piece.request.lower;
    } else {
      rest.lower = whole.lower;
      rest.upper = piece.request.upper;
    }
  }
};

// The part of `rest` that lies in the range it comes to first, which is cut off; nothing when none is left,
// when no range is there, `*routed` becomes false.
std::optional<ScanAhead::Piece> Store::NextPiece(ScanRequest* rest, bool* routed) {
  const bool forward = rest->direction == Direction::kForward;
  if (rest->lower.empty()) return std::nullopt;
  if (!rest->only.empty() && !SkipUnwanted(rest->only, forward, rest)) return std::nullopt;
  if (!rest->upper.empty() && rest->lower >= rest->upper) return std::nullopt;
  ScanAhead::Piece piece{.request = *rest};
  ScanRequest& request = piece.request;
  const Route route = routes_.With([&](const RangeMap& map) {
    const RangeDescriptor* range = forward ? map.Find(rest->lower) : map.FindBelow(rest->upper);
    if (range == nullptr || (!range->upper.empty() && range->upper <= rest->lower)) return Route();
    request.lower = std::max(rest->lower, range->lower);
    request.upper = NearerEnd(rest->upper, range->upper);
    return map.IsInDoubt(*range) ? Route{nullptr, &deletion_in_doubt_} : RouteOf(range->owner);
  });
  piece.shard = route.shard;
  piece.damage = route.damage;
  if (piece.shard == nullptr && piece.damage == nullptr) {
    *routed = false;
    return std::nullopt;
  }
  // On to the neighbour.
  if (forward) {
    const bool last = request.upper.empty() || request.upper == rest->upper;
    rest->lower = last ? std::string() : request.upper;
  } else if (request.lower == rest->lower) {
    rest->lower.clear();
  } else {
    rest->upper = request.lower;
  }
  return piece;
}

Task<Result<ScanAnswer>> Store::Scan(const ScanRequest& request, RowSink* sink) {
  ScanCourse course{.whole = request, .piece = {}, .rest = request};
  if (request.deadline_ns == 0) course.rest.deadline_ns = runtime_.clock().MonotonicNanos() + kPageNanosMax;
  bool routed = true;
  std::optional<ScanAhead::Piece> first = NextPiece(&course.rest, &routed);
  if (!routed) co_return NoSuchTable();
  if (!first) co_return ScanAnswer{.done = true};
  course.piece = std::move(*first);
  if (throttle_.on()) co_return co_await ScanMetered(&course, sink);
  if (course.at_end() || sink == nullptr || request.skip_damage)
    co_return co_await ScanOn(&course, sink, nullptr);

  const auto router = [this](ScanRequest* rest) {
    bool unused;
    std::optional<ScanAhead::Piece> piece = NextPiece(rest, &unused);
    if (piece && piece->shard == nullptr) piece.reset();  // The scan says so in its turn.
    return piece;
  };
  ScanAhead ahead(runtime_, scans_ahead_, course.piece, course.rest, sink, router);
  Result<ScanAnswer> answer = co_await ScanOn(&course, ahead.sink(), &ahead);
  co_await ahead.Close();
  co_return answer;
}

// The same within throughput targets. Nobody works ahead: rows that the page does not come to would be
// charged, and whoever has limits needs no second core.
Task<Result<ScanAnswer>> Store::ScanMetered(ScanCourse* course, RowSink* sink) {
  ScanMeter meter(throttle_, course->whole.entries_per_slice);
  const ScanRequest& first = course->piece.request;
  Status admitted = meter.Admit(first.lower, first.upper, first.direction);
  const bool is_known = !meter.refused_partition().empty();
  PARTITA_CO_TRY(NoteThrottled(is_known ? meter.refused_partition() : first.lower, 1, std::move(admitted)));
  course->piece.request.meter = course->rest.meter = &meter;
  Result<ScanAnswer> answer = co_await ScanOn(course, sink, nullptr);
  meter.Close();
  if (!meter.refused_partition().empty()) NoteRefused(meter.refused_partition(), 1);
  co_return answer;
}

// Scans the piece in turn and all behind it. `ahead` may be null.
Task<Result<ScanAnswer>> Store::ScanOn(ScanCourse* course, RowSink* sink, ScanAhead* ahead) {
  const ScanRequest& whole = course->whole;
  ScanAnswer total;
  for (int moved = 0; true;) {
    ScanRequest& request = course->piece.request;
    request.limit = whole.limit - static_cast<uint32_t>(total.rows);
    request.bytes_limit = whole.bytes_limit - total.bytes;
    // When more than was expected has been looked at, nothing is known of how much more will be.
    request.entries_expected = whole.entries_expected - std::min(whole.entries_expected, total.scanned);
    Result<ScanAnswer> answer = ScanAnswer();
    if (course->piece.damage != nullptr && whole.skip_damage) {
      answer->done = true;
      answer->skipped.push_back({request.lower, request.upper, kVersionMax, *course->piece.damage});
    } else if (course->piece.damage != nullptr) {
      answer = *course->piece.damage;
    } else if (ahead != nullptr && ahead->Has(request)) {
      answer = co_await ahead->Take(request);
    } else {
      if (ahead != nullptr) ahead->BeginTurn();
      answer = co_await course->piece.shard->Scan(request, sink);
    }
    const bool again = answer.code() == Code::kMoved && ++moved < kRoutesMax;
    if (!answer.ok() && !again) {
      // Rows already given stand; the continuation asks again at the damage (F44).
      if (total.rows == 0) co_return answer.code() == Code::kMoved ? NoRoute(request.lower) : answer.status();
      total.next_key = course->forward() ? request.lower : request.upper;
      co_return total;
    }
    if (again) {
      course->StepBack();
      co_await PauseBeforeRoute(moved);
    } else {
      total.rows += answer->rows;
      total.bytes += answer->bytes;
      total.scanned += answer->scanned;
      total.blocks += answer->blocks;
      std::move(answer->skipped.begin(), answer->skipped.end(), std::back_inserter(total.skipped));
      if (!answer->done) {
        total.next_key = std::move(answer->next_key);
        co_return total;
      }
      const bool is_full = total.rows >= whole.limit || total.bytes >= whole.bytes_limit;
      // A page whose ranges hold little looks at the time and the sink here, too.
      const bool goes_on = runtime_.clock().MonotonicNanos() <= course->rest.deadline_ns &&
                           (sink == nullptr || sink->GoOn()) &&
                           (request.meter == nullptr || request.meter->Settle());
      if ((is_full || !goes_on) && !course->at_end()) {
        total.next_key = course->forward() ? course->rest.lower : course->rest.upper;
        co_return total;
      }
    }
    bool routed = true;
    std::optional<ScanAhead::Piece> next = NextPiece(&course->rest, &routed);
    if (!routed) co_return NoSuchTable();
    if (!next) break;
    course->piece = std::move(*next);
  }
  total.done = true;
  co_return total;
}

}  // namespace partita
