#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/large_memory.h"
#include "engine/io/file.h"
#include "engine/io/transfer.h"

namespace partita {

// True where a store to a mapped page may need new space on the disk: on file systems that never write over
// what is there. A full disk then ends the process by SIGBUS, as no call is there to fail.
bool StoresNeedSpace(int descriptor);

// What to use there: memory whose pages the file gets by a call for each Stored(), which costs a system call
// (4.5 us instead of 0.1: wal/log_tail.h) and can fail.
class WrittenMapping final : public SharedMapping {
 public:
  // `descriptor` is the mapping's from here on. kIoError, kResourceExhausted.
  static Result<std::unique_ptr<SharedMapping>> Make(int descriptor, uint64_t size, std::string name);
  ~WrittenMapping() override;

  std::span<uint8_t> bytes() override { return {memory_.data(), memory_.size()}; }
  Status Stored(uint64_t offset, uint64_t size) override;

 private:
  WrittenMapping(int descriptor, uint64_t size, std::string name);

  const FileHandle file_;
  LargeMemory memory_;
};

}  // namespace partita
