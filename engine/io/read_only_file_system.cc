#include "engine/io/read_only_file_system.h"

#include <string>

namespace partita {

namespace {

Status Refused(const char* what, std::string_view path) {
  return Status::Unsupported(std::string(what) + " \"" + std::string(path) +
                             "\": the store was opened for reading only (F64)");
}

// A name for a coroutine: the caller's need not live until it runs.
Task<Status> RefusedTask(Status refused) { co_return refused; }

Task<Result<std::unique_ptr<File>>> RefusedFile(Status refused) { co_return refused; }

}  // namespace

Task<Result<std::unique_ptr<File>>> ReadOnlyFileSystem::Open(std::string_view path, OpenMode mode,
                                                             FileIo io) {
  const bool existing = mode == OpenMode::kRead || mode == OpenMode::kReadWrite;
  if (!existing) return RefusedFile(Refused("create", path));
  return files_.Open(path, OpenMode::kRead, io);
}

Task<Status> ReadOnlyFileSystem::Remove(std::string_view path) {
  return RefusedTask(Refused("remove", path));
}

Task<Status> ReadOnlyFileSystem::Rename(std::string_view from, std::string_view) {
  return RefusedTask(Refused("rename", from));
}

Task<Status> ReadOnlyFileSystem::CreateDirectory(std::string_view path) {
  return RefusedTask(Refused("create directory", path));
}

Result<std::unique_ptr<SharedMapping>> ReadOnlyFileSystem::Map(std::string_view path, uint64_t) {
  return Refused("map", path);
}

}  // namespace partita
