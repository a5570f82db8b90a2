// serve_rank() makes this process a rank: it computes a part of a model for an engine in another process. The engine connects to it by
// EngineOptions::rank_addresses or rank_transport.
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
  // Your own connections to one engine (rank_transport.hpp), used instead of `listen` and `secret`. RankTransport::rank() must not be 0.
  std::shared_ptr<RankTransport> transport = {};
  // The secret that an engine must send (EngineOptions::rank_secret). The secret, tokens and activations travel unencrypted: use a private
  // network or an encrypted tunnel.
  std::string secret = {};
  std::uint32_t threads = 0;             // 0: usable_threads()
  InstructionSet instruction_set = InstructionSet::automatic;
  Memory* memory = nullptr;              // for large buffers; nullptr: system_memory()
  // Limit of the bytes of weights, workspace, and pages of keys and values. 0: none. Pages are allocated when the engine's sequences need
  // them, and kept until the engine disconnects. A step for which there is no page left fails with out_of_memory.
  std::uint64_t memory_budget = 0;
  // Gets a line when an engine connects, when the rank's part is loaded, and when the engine disconnects. Without `transport` also a line
  // for each error while serving an engine.
  LogCallback log = {};
  LoadProgress progress = {};            // progress of loading the rank's part
  std::stop_token stop = {};             // ends serve_rank()
  std::function<void(const std::string& address)> listening = {};  // called once, with the address that engines can use
};

// Serves engines: waits for an engine, loads the part of the model at `path` that the engine assigns, and executes the engine's steps.
// Returns success after `stop`.
// If `options.transport` is empty: serves one engine after the other. An error while serving an engine is logged and sent to that engine;
// it does not end serve_rank().
// If `options.transport` is set: serves one engine, and returns when the engine has disconnected: success, or the error of serving it.
// Errors: those of Engine::load() that come from the file or the machine; invalid_argument or io, the address cannot be opened;
// invalid_argument, the transport's rank is 0, or is not the rank that the engine assigns.
// Security: an engine that knows the secret is trusted. The rank checks what it receives, but not against everything that a malicious
// program could send.
[[nodiscard]] Status serve_rank(const std::filesystem::path& path, const RankOptions& options) noexcept;

}  // namespace tessera
