#include "api/cli/nearest_name.h"

#include <algorithm>

namespace partita {

namespace {

// No name is longer; what is has the time and the memory of all its characters against all of another's.
constexpr size_t kTypedMax = 255;

// Characters to insert, delete, replace or swap with their neighbour to make `b` of `a`.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({replace, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view typed, const std::vector<std::string>& names) {
  std::string nearest;
  if (typed.size() > kTypedMax) return nearest;
  size_t least = std::max<size_t>(1, typed.size() / 3) + 1;
  for (const std::string& name : names) {
    // A beginning counts as near: `--dura` for `--durability`.
    const bool beginning = typed.size() >= 3 && name.starts_with(typed);
    const size_t differ = std::max(typed.size(), name.size()) - std::min(typed.size(), name.size());
    if (!beginning && differ >= least) continue;  // So many changes at least.
    const size_t distance = beginning ? 1 : EditDistance(typed, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(std::string_view typed, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(typed, names);
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace partita
