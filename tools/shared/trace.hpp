// Requests as they arrived somewhere: when, how long, and what their prompts have in common.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <tessera/core/result.hpp>

namespace tessera::tool {

struct TraceRequest {
  double arrival = 0.0;               // seconds from the first one
  std::uint32_t prompt = 0;           // tokens, at least 1
  std::uint32_t output = 0;           // tokens drawn, at least 1
  std::uint32_t tenant = 0;
  std::int32_t priority = 0;          // lower comes first
  double deadline = std::numeric_limits<double>::infinity();  // of its last token, as `arrival` counts
  std::vector<std::uint64_t> blocks;  // a hash for each block_tokens of the prompt, the last one perhaps in part; equal
                                      // beginnings have equal hashes. Empty: nothing is known.
};

struct Trace {
  std::string name;
  std::uint32_t block_tokens = 512;
  std::vector<TraceRequest> requests;  // by arrival

  [[nodiscard]] double seconds() const noexcept { return requests.empty() ? 0.0 : requests.back().arrival; }
};

// Azure's CSV (TIMESTAMP,ContextTokens,GeneratedTokens) or Mooncake's JSON lines (timestamp in ms, input_length,
// output_length, hash_ids), told apart by their first byte. Errors name the line.
[[nodiscard]] Result<Trace> read_trace(const std::filesystem::path& path);

struct MadeUpTrace {
  double rate = 1.0;              // requests a second, as a Poisson process
  std::uint64_t requests = 1000;
  double prompt = 256, output = 64;  // tokens on average, exponentially distributed
  std::uint64_t seed = 1;
};
[[nodiscard]] Trace make_trace(const MadeUpTrace& how);

// All lengths divided by `lengths` (at least a token stays), all times by `speed`; the first `most` requests (0: all).
void scale(Trace& trace, double lengths, double speed, std::uint64_t most);

// The share of the prompts' tokens that a prefix cache without bounds would save.
[[nodiscard]] double ideal_prefix_hit(const Trace& trace);

}  // namespace tessera::tool
