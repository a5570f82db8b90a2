// Serves as a rank: computes a part of a model for an engine in another process (EngineOptions::rank_addresses, rank_transport).
//
//   tessera::RankOptions options{.listen = "0.0.0.0:7070", .secret = secret};
//   if (auto status = tessera::serve_rank("model.gguf", options); !status) std::fprintf(stderr, "%s\n", status.error().text().c_str());
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/core/log.hpp>
#include <tessera/core/result.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/backend/rank_transport.hpp>
#include <tessera/extend/core/memory.hpp>

namespace tessera {

struct RankOptions {
  std::string listen = {};               // "HOST:PORT" or "unix:PATH"; with port 0 the system chooses one
  // Instead of `listen`: connections of your own (rank_transport.hpp), to one engine. Its rank() must not be 0. `secret` is not used.
  std::shared_ptr<RankTransport> transport = {};
  // An engine must bring the same text (EngineOptions::rank_secret). It travels as it is, and so do tokens and activations: use a network of
  // your own, or a tunnel.
  std::string secret = {};
  std::uint32_t threads = 0;             // 0: usable_threads()
  InstructionSet instruction_set = InstructionSet::automatic;
  Memory* memory = nullptr;              // for large buffers; nullptr: system_memory()
  // Bytes that weights, workspace and pages of keys and values may take. 0: no limit. Pages are taken as the engine's sequences need them,
  // and kept until the engine is gone; a step for which there are none fails with out_of_memory.
  std::uint64_t memory_budget = 0;
  LogCallback log = {};                  // one line for each engine that comes, is ready and goes
  LoadProgress progress = {};            // of loading the rank's part
  std::stop_token stop = {};             // ends serve_rank()
  std::function<void(const std::string& address)> listening = {};  // called once, with the address that engines can use
};

// Waits for an engine, loads the part of the model at `path` that the engine gives it, and executes the engine's steps. When the engine is
// gone, or has failed, waits for the next one; an error in serving one engine is logged and sent to that engine. With a transport it serves one
// engine, and returns when that engine is gone: success, or the error of serving it. Returns success after `stop`. Errors: the errors of
// Engine::load() that come from the file or the machine; invalid_argument or io, the address or the transport's rank. An engine that brings the
// secret is trusted: the rank checks what it sends, but not everything that a malicious program could think of.
[[nodiscard]] Status serve_rank(const std::filesystem::path& path, const RankOptions& options) noexcept;

}  // namespace tessera
