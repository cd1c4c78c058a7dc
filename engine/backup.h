#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/maintenance.h"
#include "engine/base/result.h"
#include "engine/base/task.h"
#include "engine/catalog.h"
#include "engine/io/file.h"
#include "engine/manifest.h"

namespace partita {

class BackgroundMeter;
class Store;
class Runtime;

// Backups of a store, and stores made from them (F68).
//
// A backup is a directory like a store's, without logs: a catalog, a manifest for each shard, and the
// table files that they name. What a level set holds is a prefix of its shard's commit order with whole
// batches, since memtables are flushed oldest first and a batch lies in one memtable; so nothing but table
// files is needed, and they never change. Two meta keys say what such a directory is:
//
//   meta/unfinished   from the first moment on until everything is verified; such a directory is no store
//                     and no backup, and can only be made anew
//   meta/backup       a complete backup: BackupRecord. It can be opened for reading only, or restored
//
// Writing one, in this order, each step durable before the next: unfinished; table files; manifests;
// everything read back from the medium, each block's seal checked; catalog, then backup, each read back;
// unfinished removed. A crash anywhere leaves it unfinished or complete.
//
// A restored store keeps its store id, which every seal contains. Its versions begin above all that the
// backup's shards could have shown and above the wall clock, by as much as they were ahead of it and a lease,
// so that no ETag is given a second time although the original went on after the backup (F17); a wall clock
// that is behind that time is refused. That holds where the original's wall clock was not set back since the
// backup, and this one is behind it by no more than the lease: nothing here shows either.
// Its incarnation is a random number above the backup's by kLifeJumpMin or more: neither the original nor
// another store from the same backup gives its files and log segments the same names and identities (F30,
// F41).
inline constexpr const char* kUnfinishedKey = "unfinished";
inline constexpr const char* kBackupKey = "backup";
// Openings raise the incarnation by one each; a restore or a repair by this much at least, so that what had
// been told of the store before (import --resume) is known not to be of it.
inline constexpr uint32_t kLifeJumpMin = 1u << 16;

// The value of meta/backup (little-endian): u16 format · u64 created_ticks · u64 files · u64 bytes ·
// u64 entries · u64 hash of the catalog · varint manifests { u64 hash }. The hashes are Hash64 of the
// encoded values: a catalog or manifest of another backup in its place shows.
struct BackupRecord {
  uint64_t created_ticks = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t catalog_hash = 0;
  std::vector<uint64_t> manifest_hashes;
};
inline constexpr uint16_t kBackupFormat = 1;
std::string EncodeBackupRecord(const BackupRecord& record);
Result<BackupRecord> DecodeBackupRecord(std::string_view bytes);  // kCorruption, kUnsupported.

// What a backup says of a store at one moment: the catalog, and for each shard a manifest without log.
struct StoreImage {
  Catalog catalog;
  std::vector<Manifest> manifests;
  std::vector<BackgroundMeter*> meters;  // By shard: whose work the copying is. Empty: nobody's.
};

// Writes and verifies a backup of `image`, whose table files lie in `store` and stay there meanwhile, to
// the empty directory `to`. `base` may be null. kAlreadyExists when something is there.
Task<Result<BackupReport>> WriteBackup(Clock& clock, FileSystem& store, const StoreImage& image,
                                       FileSystem& to, FileSystem* base, const BackupOptions& options);

// Makes a store of the backup in `from` in the directory `to`, which is empty or holds an unfinished
// restore; verified when it returns. kInvalidArgument: `from` is no complete backup. `random`: any number.
// Where it fails it removes what it has copied, or says that this is left there.
Task<Result<BackupReport>> RestoreBackup(Clock& clock, uint64_t random, FileSystem& from, FileSystem& to,
                                         const BackupOptions& options);

// Removes what an interrupted attempt left, which has its mark. kAlreadyExists when anything else is there.
Task<Status> MakeRoom(FileSystem& to);

// Whether there is a complete backup, by what its meta files say; as RestoreBackup.
Task<Status> CheckIsBackup(FileSystem& from);

// kInvalidArgument when the directory holds an unfinished backup or restore, or is a backup and `writing`.
Task<Status> CheckIsNoBackup(FileSystem& files, bool writing);

// A finished backup's directory `from` gets its name; and a directory to restore to is made. Durable when
// they return.
Task<Status> TakeBackupName(FileSystem& parent, std::string from, std::string name);
Task<Status> MakeRestoreDirectory(FileSystem& parent, std::string name);

// ---- On real directories.

// A backup of the open store in the new directory `directory`; beside everything else that happens in
// the store. The directory appears under its name when it is complete: it grows under "DIRECTORY.partial",
// where what a crash left of an earlier attempt is removed first; kAlreadyExists, when there is anything
// else. kBusy: another one is being made there. Blocks; not to be called on a worker.
Result<BackupReport> BackUpStore(Runtime& runtime, Store& store, const std::string& directory,
                                 const BackupOptions& options);

// A store in `directory`, which is made when it is missing and `backup` is one. Blocks.
Result<BackupReport> RestoreStore(const std::string& backup, const std::string& directory,
                                  const BackupOptions& options);

}  // namespace partita
