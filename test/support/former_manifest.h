#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/coding.h"
#include "engine/manifest.h"

namespace partita {

// As versions wrote it that knew no later format than this one, 1 to 4. What the format has no place for is
// left out.
inline std::string EncodeFormerManifest(const Manifest& manifest, uint16_t format) {
  std::string bytes;
  AppendLe16(&bytes, format);
  AppendLe32(&bytes, manifest.shard.value);
  AppendLe32(&bytes, manifest.layout);
  AppendLe64(&bytes, manifest.replay_from.value);
  AppendLe64(&bytes, manifest.version_ceiling.value);
  if (format >= 2) AppendLe64(&bytes, manifest.log_segment);
  const auto append = [&bytes](const std::vector<FileMeta>& files) {
    AppendVarint(&bytes, files.size());
    for (const FileMeta& file : files) AppendFileMeta(&bytes, file);
  };
  append(manifest.files);
  if (format < 3) return bytes;
  AppendLe64(&bytes, manifest.prepared.attempt);
  append(manifest.prepared.files);
  return bytes;
}

}  // namespace partita
