#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/manifest.h"

namespace partita {

// Whether manifests and logs alone say what a store holds, when its catalog is lost.
//
// They do as long as no range has moved: each key is in one shard, whose log is newer than its files. Of a
// range that moved, its old owner's log may still tell, and an import that was never made, and which of two
// counts only the catalog knew. So this looks for a key that two shards know, or that a log knows older than
// a file. Not thread-safe.
class RepairReach {
 public:
  // What a manifest names. All before the first key of a log.
  void AddManifest(const Manifest& manifest);
  // A key in the log of `shard`, behind what its manifest says is flushed. One binary search.
  void AddLogged(ShardId shard, std::string_view user_key, Version version);
  // Whether the manifests and what was logged contradict each other. To be asked once.
  bool Contradicts();

 private:
  struct File {
    std::string first, last;  // The key behind the last one.
    ShardId shard;
    Version version_max;
  };
  // From `begin` up to the next one's the files of one shard, or none, have keys.
  struct Stretch {
    std::string_view begin;
    bool has_files = false;
    ShardId shard;
    Version version_max;
  };

  void CutToStretches();
  bool KnownOtherwise(ShardId shard, std::string_view user_key, Version version) const;

  bool cut_ = false;
  bool contradiction_ = false;
  std::vector<File> files_;
  std::vector<Stretch> stretches_;
  std::vector<std::vector<uint64_t>> logged_;  // By shard: hashes of keys.
};

}  // namespace partita
