#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/partita.h"
#include "engine/base/ids.h"
#include "engine/write_request.h"

namespace partita {

// Writes of one partition on their way to the engine, checked and encoded one by one. It holds all bytes that
// it needs: neither the entities that it was made of nor its caller need stay.
//
// Of one thread at a time. Lifecycle: Reserve, Add*, Link; then request() goes to the Store, and the batch
// stays until that has answered.
class EncodedBatch {
 public:
  explicit EncodedBatch(TableId table) : table_(table) {}
  EncodedBatch(const EncodedBatch&) = delete;  // Its views point into itself.
  EncodedBatch& operator=(const EncodedBatch&) = delete;

  // Room for so many operations of so many bytes encoded, about; more grows.
  void Reserve(size_t operations, size_t bytes);

  // Checks the entity (ValidateEntity; of a delete its keys) and the condition, and adds the operation.
  // kInvalidArgument: nothing was added. That all operations are of one partition and each of another row
  // is the caller's to see to.
  Status Add(const Write& write);

  size_t size() const { return ops_.size(); }
  size_t size_bytes() const { return bytes_.size(); }
  // The entity record as given; empty for a delete. Valid until the next Add.
  std::string_view record(size_t i) const {
    return std::string_view(bytes_).substr(places_[i].content, places_[i].end - places_[i].content);
  }

  // What Add has gathered becomes a request. REQUIRES: size() > 0; no Add follows.
  void Link(DurabilityLevel durability);
  const WriteRequest& request() const { return request_; }

 private:
  struct Place {
    size_t key = 0;  // Where it begins in bytes_; the content lies behind it.
    size_t content = 0;
    size_t end = 0;
  };

  const TableId table_;
  std::string bytes_;  // One piece of memory for all keys and contents.
  std::vector<Place> places_;
  std::vector<WriteOp> ops_;
  WriteRequest request_;
};

// About what the encoded form takes of entities that have so many bytes by EntitySizeBoundBytes, which counts
// text twice.
size_t EncodedRoom(uint64_t bytes_bound, size_t operations);

}  // namespace partita
