// A trace of requests: when they arrive, how long they are, and which beginnings their prompts share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera::tool {

struct TraceRequest {
  double arrival = 0.0;               // seconds from the first request
  std::uint32_t prompt = 0;           // tokens, at least 1
  std::uint32_t output = 0;           // tokens drawn, at least 1
  std::uint32_t tenant = 0;
  std::int32_t priority = 0;          // lower comes first
  double deadline = std::numeric_limits<double>::infinity();  // latest time of the last token, in seconds from the first request
  std::vector<std::uint64_t> blocks;  // a hash for each block_tokens tokens of the prompt, the last block perhaps in part; equal
                                      // beginnings have equal hashes. Empty: not known.
};

struct Trace {
  std::string name;
  std::uint32_t block_tokens = 512;
  std::vector<TraceRequest> requests;  // sorted by arrival

  [[nodiscard]] double seconds() const noexcept { return requests.empty() ? 0.0 : requests.back().arrival; }
};

// Reads a trace in one of two forms, which the first byte of the file tells apart: Azure's CSV (TIMESTAMP,ContextTokens,GeneratedTokens),
// or Mooncake's JSON lines (timestamp in ms, input_length, output_length, hash_ids). Errors name the line.
[[nodiscard]] Result<Trace> read_trace(const std::filesystem::path& path);

struct MadeUpTrace {
  double rate = 1.0;              // requests a second, as a Poisson process
  std::uint64_t requests = 1000;
  double prompt = 256, output = 64;  // tokens on average, exponentially distributed
  std::uint64_t seed = 1;
};
[[nodiscard]] Trace make_trace(const MadeUpTrace& how);

// Keeps the first `most` requests (0: all). Divides all lengths by `lengths` (but keeps at least one token) and all times by `speed`.
void scale(Trace& trace, double lengths, double speed, std::uint64_t most);

// Returns the share of the prompts' tokens that an unlimited prefix cache would save.
[[nodiscard]] double ideal_prefix_hit(const Trace& trace);

}  // namespace tessera::tool
