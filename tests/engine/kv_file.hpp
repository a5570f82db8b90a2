// Engines with a file for their KV pages, and waiting for what is written behind.
#pragma once

#include <unistd.h>

#include <chrono>
#include <thread>

#include "engine/models.hpp"

namespace tessera::test {

inline std::filesystem::path scratch_file(const char* name) {
  return std::filesystem::temp_directory_path() / (std::string("tessera-") + name + "-" + std::to_string(::getpid()));
}

inline EngineOptions with_file(const char* name, std::uint64_t bytes) {
  EngineOptions options;
  options.threads = 2;
  options.kv_file = scratch_file(name);
  options.kv_file_bytes = bytes;
  return options;
}

// Waits for what goes on behind.
template <class Done>
bool eventually(Done done) {
  for (int i = 0; i < 2000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

}  // namespace tessera::test
