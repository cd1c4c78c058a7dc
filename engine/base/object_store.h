#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/task.h"

namespace partita {

// Upper seam: immutable objects (table files). No path, descriptor, alignment or errno above it.

// Builds one object, front to back. One user at a time. Must end with Finish or Abandon.
class ObjectWriter {
 public:
  virtual ~ObjectWriter() = default;

  // Adds bytes; they are copied or written before it returns. An error may be that of bytes added before.
  // After one only Abandon is useful: a failed object is discarded and written anew under another id (F22).
  virtual Task<Status> Append(std::string_view bytes) = 0;

  // Begins what Finish does, which goes on while the writer's user does other things, where that is possible;
  // Finish, or Abandon, is awaited all the same. Nothing may be added any more. Errors as Append.
  virtual Task<Status> BeginFinish() = 0;

  // Makes data, length and name durable; only then may anything refer to the object (F25).
  virtual Task<Status> Finish() = 0;

  // Removes what was written.
  virtual Task<void> Abandon() = 0;

  virtual uint64_t size() const = 0;
};

enum class ReadCaching : uint8_t {
  kNormal,
  kPastCaches,  // Read the medium again, past every cache (F52).
};

// One read of a batch. Fastest when offset, size and the buffer's address are multiples of
// kPageSize (no copy); any other combination is allowed.
struct ObjectRead {
  uint64_t offset = 0;
  std::span<uint8_t> buffer;
};

// An open object. Thread-safe; reads from several threads and executors at once are fine.
class ObjectReader {
 public:
  virtual ~ObjectReader() = default;

  virtual ObjectId id() const = 0;
  virtual uint64_t size() const = 0;
  // For messages, e.g. "tables/000000000012.sst".
  virtual const std::string& name() const = 0;

  // Performs all reads, concurrently where it can; ok only when every buffer was filled.
  // kIoError on failure or when a read passes the end. Buffers are untouched by the store after
  // it returns. The span's reads must stay alive meanwhile.
  virtual Task<Status> Read(std::span<const ObjectRead> reads, ReadCaching caching) = 0;

  // One read.
  Task<Status> ReadOne(uint64_t offset, std::span<uint8_t> buffer,
                       ReadCaching caching = ReadCaching::kNormal) {
    ObjectRead read{offset, buffer};
    co_return co_await Read(std::span<const ObjectRead>(&read, 1), caching);
  }
};

struct ObjectInfo {
  ObjectId id;
  uint64_t size = 0;
};

// Thread-safe.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // kNoSpace, kIoError; kAlreadyExists when the id is taken.
  virtual Task<Result<std::unique_ptr<ObjectWriter>>> Create(ObjectId id) = 0;

  // kNotFound when there is no such object (for the caller that is damage: F35).
  virtual Task<Result<std::shared_ptr<ObjectReader>>> Open(ObjectId id) = 0;

  // Removes the object; readers that are open go on. Not finding it is ok.
  virtual Task<Status> Remove(ObjectId id) = 0;

  // Every object, finished or not, in no order.
  virtual Task<Result<std::vector<ObjectInfo>>> List() = 0;
};

}  // namespace partita
