#include "engine/base/stall_log.h"

#include <algorithm>
#include <string_view>

namespace partita {

namespace {

// Without the directories above the last.
std::string_view ShortFile(std::string_view path) {
  const size_t name = path.rfind('/');
  if (name == std::string_view::npos || name == 0) return path;
  const size_t folder = path.rfind('/', name - 1);
  return folder == std::string_view::npos ? path : path.substr(folder + 1);
}

// "Task<Status> partita::(anonymous namespace)::Reader::Read(int)" is "Reader::Read".
std::string ShortFunction(std::string_view signature) {
  std::string name(signature);
  for (const std::string_view noise : {"(anonymous namespace)::", "partita::"}) {
    for (size_t at = name.find(noise); at != std::string::npos; at = name.find(noise)) {
      name.erase(at, noise.size());
    }
  }
  name.resize(std::min(name.size(), name.find('(')));
  return name.substr(name.rfind(' ') + 1);  // From the start when there is no space.
}

bool IsSame(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && std::string_view(a.file_name()) == b.file_name();
}

}  // namespace

void StallCounts::Add(const Stall& stall) {
  Add({1, uint64_t{stall.IsOwn()}, stall.lasted_ns, stall.ran_ns, stall.lasted_ns});
}

void StallCounts::Add(const StallCounts& other) {
  stalls += other.stalls;
  own += other.own;
  lasted_ns += other.lasted_ns;
  ran_ns += other.ran_ns;
  lasted_ns_max = std::max(lasted_ns_max, other.lasted_ns_max);
}

std::string PlaceName(const std::source_location& place) {
  if (place.line() == 0) return "";
  return std::string(ShortFile(place.file_name())) + ":" + std::to_string(place.line()) + " " +
         ShortFunction(place.function_name());
}

StallReport::Place* StallLog::PlaceOf(const std::source_location& from) {
  const auto end = places_.begin() + static_cast<ptrdiff_t>(places_used_);
  const auto found = std::find_if(places_.begin(), end,
                                  [&](const StallReport::Place& place) { return IsSame(place.from, from); });
  if (found != end) return &*found;
  if (places_used_ == kPlacesMax) return nullptr;
  places_[places_used_].from = from;
  return &places_[places_used_++];
}

void StallLog::Note(const Stall& stall) {
  std::lock_guard lock(mutex_);
  last_[total_.stalls % kLastMax] = stall;
  total_.Add(stall);
  if (StallReport::Place* place = PlaceOf(stall.from)) place->counts.Add(stall);
}

StallReport StallLog::Read() const {
  StallReport report;
  {
    std::lock_guard lock(mutex_);
    report.total = total_;
    report.places.assign(places_.begin(), places_.begin() + static_cast<ptrdiff_t>(places_used_));
    const uint64_t kept = std::min<uint64_t>(total_.stalls, kLastMax);
    for (uint64_t i = 1; i <= kept; ++i) report.last.push_back(last_[(total_.stalls - i) % kLastMax]);
  }
  std::sort(report.places.begin(), report.places.end(),
            [](const auto& a, const auto& b) { return a.counts.lasted_ns > b.counts.lasted_ns; });
  return report;
}

}  // namespace partita
