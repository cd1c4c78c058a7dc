#include <charconv>

#include "test/support/simulation.h"

// Making a failing simulation smaller: largest pieces first, each left out for good when it still fails.

namespace partita {

namespace {

constexpr uint32_t kFaultNumbers[] = {StoreLife::kFullDisk,
                                      1,
                                      2,
                                      3,
                                      StoreLife::kOpeningFault,
                                      StoreLife::kOpeningFault + 1,
                                      StoreLife::kDamage,
                                      StoreLife::kDamage + 1,
                                      StoreLife::kDamage + 2};

// "5.1.0-7" -> {5, 1, 0, 7}.
std::optional<std::vector<uint32_t>> Numbers(std::string_view text) {
  std::vector<uint32_t> numbers;
  while (!text.empty()) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text[0] != '.' && text[0] != '-') return std::nullopt;
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  return numbers;
}

bool AddCut(std::string_view item, SimulationCuts* cuts) {
  const size_t dot = item.find('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view kind = item.substr(0, dot);
  const auto numbers = Numbers(item.substr(dot + 1));
  if (!numbers) return false;
  const std::vector<uint32_t>& n = *numbers;
  if (kind == "life" && n.size() == 1) {
    cuts->lives.insert(n[0]);
  } else if (kind == "crash" && n.size() == 1) {
    cuts->crashes.insert(n[0]);
  } else if (kind == "damage" && n.size() == 1) {
    cuts->damages.insert(n[0]);
  } else if (kind == "fault" && n.size() == 2) {
    cuts->faults.insert({n[0], n[1]});
  } else if (kind == "request" && n.size() == 4 && n[2] <= n[3] && n[3] - n[2] < 1'000'000) {
    for (uint32_t i = n[2]; i <= n[3]; ++i) cuts->requests[{n[0], n[1]}].insert(i);
  } else {
    return false;
  }
  return true;
}

class Minimiser {
 public:
  Minimiser(Simulation failing, uint32_t tries_max, const std::function<bool(const Simulation&)>& fails)
      : smallest_(std::move(failing)), tries_left_(tries_max), fails_(fails) {}

  SimulationCuts Run(uint32_t lives_run) {
    CutLivesAfter(lives_run);
    for (uint32_t life = smallest_.lives; life-- > 0;) {
      Try([&](SimulationCuts& cuts) { return cuts.lives.insert(life).second; });
    }
    for (uint32_t life = smallest_.lives; life-- > 0;) {
      if (smallest_.cuts.lives.contains(life)) continue;
      Try([&](SimulationCuts& cuts) { return cuts.crashes.insert(life).second; });
      Try([&](SimulationCuts& cuts) { return cuts.damages.insert(life).second; });
      for (uint32_t number : kFaultNumbers) {
        Try([&](SimulationCuts& cuts) { return cuts.faults.insert({life, number}).second; });
      }
    }
    for (uint32_t size = smallest_.requests; size > 0; size /= 2) CutRequests(size);
    return smallest_.cuts;
  }

 private:
  // All at once, as nothing after the violation was run.
  void CutLivesAfter(uint32_t lives_run) {
    Try([&](SimulationCuts& cuts) {
      uint32_t run = 0;
      for (uint32_t life = 0; life < smallest_.lives; ++life) {
        if (!cuts.lives.contains(life) && ++run > lives_run) cuts.lives.insert(life);
      }
      return run > lives_run;
    });
  }

  void CutRequests(uint32_t size) {
    for (uint32_t life = 0; life < smallest_.lives; ++life) {
      if (smallest_.cuts.lives.contains(life)) continue;
      for (uint32_t actor = 0; actor <= smallest_.clients; ++actor) {
        for (uint32_t first = 0; first < smallest_.requests; first += size) {
          Try([&](SimulationCuts& cuts) {
            bool any = false;
            for (uint32_t i = first; i < std::min(first + size, smallest_.requests); ++i) {
              any = cuts.requests[{life, actor}].insert(i).second || any;
            }
            return any;
          });
        }
      }
    }
  }

  template <typename Change>
  void Try(Change change) {
    Simulation candidate = smallest_;
    if (tries_left_ == 0 || !change(candidate.cuts)) return;
    --tries_left_;
    if (fails_(candidate)) smallest_ = std::move(candidate);
  }

  Simulation smallest_;
  uint32_t tries_left_;
  const std::function<bool(const Simulation&)>& fails_;
};

}  // namespace

std::optional<SimulationCuts> SimulationCuts::Parse(std::string_view text) {
  SimulationCuts cuts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (!AddCut(text.substr(0, comma), &cuts)) return std::nullopt;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return cuts;
}

std::string SimulationCuts::ToString() const {
  std::string text;
  auto item = [&](const std::string& cut) { text += (text.empty() ? "" : ",") + cut; };
  auto number = [](uint32_t value) { return "." + std::to_string(value); };
  for (uint32_t life : lives) item("life" + number(life));
  for (uint32_t life : crashes) item("crash" + number(life));
  for (uint32_t life : damages) item("damage" + number(life));
  for (const auto& [life, fault] : faults) item("fault" + number(life) + number(fault));
  for (const auto& [of, cut] : requests) {
    for (auto first = cut.begin(); first != cut.end();) {
      auto last = first;
      while (std::next(last) != cut.end() && *std::next(last) == *last + 1) ++last;
      item("request" + number(of.first) + number(of.second) + number(*first) + "-" + std::to_string(*last));
      first = std::next(last);
    }
  }
  return text;
}

SimulationCuts MinimiseSimulation(Simulation failing, uint32_t lives_run, uint32_t tries_max,
                                  const std::function<bool(const Simulation&)>& fails) {
  return Minimiser(std::move(failing), tries_max, fails).Run(lives_run);
}

}  // namespace partita
