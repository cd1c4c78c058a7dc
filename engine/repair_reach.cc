#include "engine/repair_reach.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "engine/base/checksum.h"

namespace partita {

void RepairReach::AddManifest(const Manifest& manifest) {
  if (manifest.prepared.attempt != 0) contradiction_ = true;  // Whether the move was made, the catalog knew.
  for (const FileMeta& file : manifest.files) {
    const bool ends_before = !file.upper.empty() && file.upper <= file.info->largest;
    File reached{.first = std::max(file.lower, file.info->smallest),
                 .last = ends_before ? file.upper : file.info->largest + '\0',
                 .shard = manifest.shard,
                 .version_max = file.info->version_max};
    if (reached.first < reached.last) files_.push_back(std::move(reached));  // Else none of its keys count.
  }
}

void RepairReach::CutToStretches() {
  cut_ = true;
  struct End {
    std::string_view at;
    bool begins = false;
    const File* file = nullptr;
  };
  std::vector<End> ends;
  for (const File& file : files_) {
    ends.push_back({file.first, true, &file});
    ends.push_back({file.last, false, &file});
  }
  std::sort(ends.begin(), ends.end(),
            [](const End& a, const End& b) { return std::tie(a.at, a.begins) < std::tie(b.at, b.begins); });
  std::map<ShardId, std::multiset<Version>> open;
  for (size_t i = 0; i < ends.size(); ++i) {
    const File& file = *ends[i].file;
    std::multiset<Version>& of_shard = open[file.shard];
    if (ends[i].begins)
      of_shard.insert(file.version_max);
    else
      of_shard.erase(of_shard.find(file.version_max));
    if (of_shard.empty()) open.erase(file.shard);
    if (open.size() > 1) contradiction_ = true;
    if (i + 1 < ends.size() && ends[i + 1].at == ends[i].at) continue;
    Stretch stretch{.begin = ends[i].at, .has_files = !open.empty(), .shard = {}, .version_max = {}};
    if (!open.empty()) {
      stretch.shard = open.begin()->first;
      stretch.version_max = *open.begin()->second.rbegin();
    }
    stretches_.push_back(stretch);
  }
}

bool RepairReach::KnownOtherwise(ShardId shard, std::string_view user_key, Version version) const {
  const auto behind =
      std::upper_bound(stretches_.begin(), stretches_.end(), user_key,
                       [](std::string_view key, const Stretch& stretch) { return key < stretch.begin; });
  if (behind == stretches_.begin() || !(behind - 1)->has_files) return false;
  return (behind - 1)->shard != shard || (behind - 1)->version_max >= version;
}

void RepairReach::AddLogged(ShardId shard, std::string_view user_key, Version version) {
  if (!cut_) CutToStretches();
  if (contradiction_) return;
  if (logged_.size() <= shard.value) logged_.resize(shard.value + 1);
  logged_[shard.value].push_back(Hash64(user_key));
  contradiction_ = KnownOtherwise(shard, user_key, version);
}

bool RepairReach::Contradicts() {
  if (!cut_) CutToStretches();
  std::vector<uint64_t> all;
  for (std::vector<uint64_t>& hashes : logged_) {
    if (contradiction_) break;
    std::sort(hashes.begin(), hashes.end());
    hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
    std::vector<uint64_t> merged;
    merged.reserve(all.size() + hashes.size());
    std::merge(all.begin(), all.end(), hashes.begin(), hashes.end(), std::back_inserter(merged));
    contradiction_ = std::adjacent_find(merged.begin(), merged.end()) != merged.end();
    all = std::move(merged);
    hashes = {};
  }
  return contradiction_;
}

}  // namespace partita
