#include "engine/repair_reach.h"

#include <algorithm>
#include <iterator>

#include "engine/base/checksum.h"

namespace partita {

void RepairReach::AddManifest(const Manifest& manifest) {
  if (manifest.prepared.attempt != 0) contradiction_ = true;  // Whether the move was made, the catalog knew.
  for (const FileMeta& file : manifest.files) {
    const bool ends_before = !file.upper.empty() && file.upper <= file.info.largest;
    files_.push_back({.first = std::max(file.lower, file.info.smallest),
                      .last = ends_before ? file.upper : file.info.largest + '\0',
                      .shard = manifest.shard,
                      .version_max = file.info.version_max});
  }
}

void RepairReach::SortFiles() {
  sorted_ = true;
  std::sort(files_.begin(), files_.end(), [](const Reach& a, const Reach& b) { return a.first < b.first; });
  std::vector<std::pair<ShardId, std::string_view>> reached;
  std::string_view last;
  for (Reach& file : files_) {
    auto own = reached.end();
    for (auto at = reached.begin(); at != reached.end(); ++at) {
      if (at->first == file.shard)
        own = at;
      else if (file.first < at->second)
        contradiction_ = true;
    }
    if (own == reached.end()) own = reached.insert(own, {file.shard, {}});
    own->second = std::max<std::string_view>(own->second, file.last);
    last = std::max<std::string_view>(last, file.last);
    file.last_so_far = last;
  }
}

bool RepairReach::KnownOtherwise(ShardId shard, std::string_view user_key, Version version) const {
  auto at = std::upper_bound(files_.begin(), files_.end(), user_key,
                             [](std::string_view key, const Reach& file) { return key < file.first; });
  while (at != files_.begin() && (--at)->last_so_far > user_key) {
    if (at->last > user_key && (at->shard != shard || at->version_max >= version)) return true;
  }
  return false;
}

void RepairReach::AddLogged(ShardId shard, std::string_view user_key, Version version) {
  if (!sorted_) SortFiles();
  if (contradiction_) return;
  if (logged_.size() <= shard.value) logged_.resize(shard.value + 1);
  logged_[shard.value].push_back(Hash64(user_key));
  contradiction_ = KnownOtherwise(shard, user_key, version);
}

bool RepairReach::Contradicts() {
  if (!sorted_) SortFiles();
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
  }
  return contradiction_;
}

}  // namespace partita
