// The adapters that a loaded model keeps in memory. An adapter is loaded when a request first names it, or at the start (main.cpp). If the engine's budget for adapters
// is full, the least recently used adapters are dropped. A dropped adapter that requests still use is freed when these requests end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include <tessera/engine.hpp>

namespace server {

// Any thread may call. One adapter is loaded at a time.
class AdapterShelf {
 public:
  // `base`: the file or folder of the model; empty: `embedded` is the model.
  AdapterShelf(tessera::Engine engine, std::filesystem::path base, std::shared_ptr<const tessera::ModelSource> embedded)
      : engine_(std::move(engine)), base_(std::move(base)), embedded_(std::move(embedded)) {}

  // Returns the adapter of a file. Errors: ApiError of status 400, the file is no adapter for this model; 503, no memory is left.
  [[nodiscard]] tessera::Adapter take(const std::filesystem::path& path);
  // Drops the adapter, if it is loaded.
  void drop(const std::filesystem::path& path);

 private:
  struct Kept {
    std::filesystem::path path;
    tessera::Adapter adapter;
  };
  [[nodiscard]] tessera::Result<tessera::Adapter> load(const std::filesystem::path& path) const;

  tessera::Engine engine_;
  std::filesystem::path base_;
  std::shared_ptr<const tessera::ModelSource> embedded_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the most recently used adapter first
};

}  // namespace server
