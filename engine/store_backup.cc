#include <algorithm>
#include <functional>
#include <set>

#include "engine/backup.h"
#include "engine/catalog_change.h"
#include "engine/store.h"

// The online half of a backup: one moment of each shard, held until the files are elsewhere (backup.h).

namespace partita {

// What the level sets hold now, and the files kept from removal until they are dropped again. The level
// sets are a prefix of the shard's log: memtables are flushed oldest first, and each edit is published
// under the mutex that is held here, together with the position up to which it holds everything. An edit that
// cannot be saved holds it until it can, which on a full disk may be never: whoever asks is told (F54).
Task<Result<Manifest>> Shard::PinFiles() {
  PARTITA_CO_ASSIGN(AsyncMutex::Guard structure, co_await LockStructure());
  Manifest manifest;
  {
    ViewPin view = views_.Pin();
    manifest = BuildManifest(*view, LogPosition(0));
  }
  // What comes next here is above its clock, too, which may be ahead of the wall's though nothing was
  // written.
  std::function<void()> note_clock = [this, &manifest] {
    manifest.version_ceiling =
        std::max({manifest.version_ceiling, clock_->last(), Version(clock_->NowTicks())});
  };
  co_await OnStrand(std::move(note_clock));
  manifest.log_segment = 0;  // No log goes along.
  manifest.prepared = PreparedFiles();
  std::set<ObjectId> once;
  for (const FileMeta& file : manifest.files) {
    if (once.insert(file.info->id).second) context_.references.Add(file.info->id);
  }
  co_return manifest;
}

Task<Status> Store::DropPins(const StoreImage& image) {
  Status first;
  for (const Manifest& manifest : image.manifests) {
    std::set<ObjectId> once;
    for (const FileMeta& file : manifest.files) {
      if (!once.insert(file.info->id).second || !references_.Drop(file.info->id)) continue;
      Status removed = co_await objects_->Remove(file.info->id);
      if (first.ok()) first = removed;
    }
  }
  co_return first;
}

Task<Status> Store::PinAll(StoreImage* image) {
  // Tables are neither made nor dropped between the catalog and the shards' moments.
  PARTITA_CO_ASSIGN(ChangePtr no_change, co_await BeginChange());
  image->catalog = no_change->next;
  for (auto& shard : shards_) {
    PARTITA_CO_ASSIGN(Manifest manifest, co_await shard->PinFiles());
    image->manifests.push_back(std::move(manifest));
  }
  co_return Status();
}

Task<Result<BackupReport>> Store::Backup(FileSystem& to, FileSystem* base, BackupOptions options) {
  if (degraded()) {
    co_return Status::Corruption("there is no backup of a store of which a shard is damaged: " +
                                 report_.damaged_shards.front());
  }
  // What a move brings along would be in its new owner's log only, which does not go along.
  PARTITA_CO_ASSIGN(AsyncMutex::Guard no_move, co_await BeginMove());
  PARTITA_CO_TRY(co_await FlushMemtables());
  StoreImage image;
  image.meters = BackgroundMeters();
  const Status pinned = co_await PinAll(&image);
  no_move.Release();
  if (!pinned.ok()) {
    (void)co_await DropPins(image);
    co_return pinned;
  }
  Result<BackupReport> report =
      co_await WriteBackup(runtime_.clock(), reserve_.files(), image, to, base, options);
  // What could not be removed is a leftover that the next opening removes (F37).
  (void)co_await DropPins(image);
  co_return report;
}

}  // namespace partita
