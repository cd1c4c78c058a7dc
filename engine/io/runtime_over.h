#pragma once
#include "engine/io/runtime.h"

namespace partita {

// A runtime with other files: everything else is that of the one beneath. For a store that is read
// without being changed, or that lies in a subdirectory. Both arguments outlive it.
class RuntimeOver final : public Runtime {
 public:
  RuntimeOver(Runtime& runtime, FileSystem& files) : runtime_(runtime), files_(files) {}

  FileSystem& files() override { return files_; }
  Clock& clock() override { return runtime_.clock(); }
  uint64_t RandomU64() override { return runtime_.RandomU64(); }
  Executor& shard_executor(ShardId shard) override { return runtime_.shard_executor(shard); }
  uint32_t shard_count() const override { return runtime_.shard_count(); }
  Executor& background(BackgroundClass background_class) override {
    return runtime_.background(background_class);
  }
  void Run(Task<void> root) override { runtime_.Run(std::move(root)); }
  const char* name() const override { return runtime_.name(); }

 private:
  Runtime& runtime_;
  FileSystem& files_;
};

}  // namespace partita
