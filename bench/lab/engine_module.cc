#include "bench/lab/engine_module.h"

#include <dlfcn.h>

#include <filesystem>

namespace partita::lab {

Result<std::unique_ptr<OrderedStore>> OpenEngineModule(const std::string& engine,
                                                       const OrderedStoreConfig& config) {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::string path = program.parent_path() / ("partita_lab_" + engine + ".so");
  // It stays loaded: the engine has threads and statics of its own.
  void* const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return Status::Unsupported(
        "target " + engine + " is not there: it takes partita_lab_" + engine +
        ".so beside the program, which is built where the engine's development package "
        "is installed (" +
        dlerror() + ")");
  }
  const auto open = reinterpret_cast<OpenOrderedStore>(dlsym(module, kOrderedStoreEntry));
  if (open == nullptr) return Status::Unsupported(path + " is no module of this lab");
  std::string error;
  std::unique_ptr<OrderedStore> store(open(config, &error));
  if (store == nullptr) return Status::IoError(engine + ": " + error);
  return store;
}

}  // namespace partita::lab
