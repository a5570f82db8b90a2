// What was measured.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/engine.hpp>

#include "limits.hpp"

namespace tessera::bench {

enum class Test { prefill, decode, batch, depth };

[[nodiscard]] constexpr std::string_view to_string(Test test) noexcept {
  switch (test) {
    case Test::prefill: return "prefill";
    case Test::decode: return "decode";
    case Test::batch: return "batch";
    case Test::depth: return "depth";
  }
  return "?";
}

[[nodiscard]] constexpr std::string_view to_string(BackendKind backend) noexcept {
  return backend == BackendKind::cpu ? "cpu" : "cuda";
}

struct Measurement {
  Test test = Test::decode;
  std::uint32_t rows = 1;      // computed together: a prompt's tokens, or one of each sequence
  std::uint32_t batch = 1;     // sequences
  std::uint32_t depth = 0;     // tokens that each has before
  std::vector<double> rates;   // tokens a second of each run, ascending, at least one
  double bytes_per_token = 0;
  double flop_per_token = 0;
  Limits limits;               // of the machine, at about that time, or unknown

  [[nodiscard]] double slowest() const noexcept { return rates.front(); }
  [[nodiscard]] double fastest() const noexcept { return rates.back(); }
  [[nodiscard]] double median() const noexcept {
    const std::size_t half = rates.size() / 2;
    return rates.size() % 2 == 1 ? rates[half] : (rates[half - 1] + rates[half]) / 2;
  }
  [[nodiscard]] double bytes_per_second() const noexcept { return bytes_per_token * median(); }
  [[nodiscard]] double flop_per_second() const noexcept { return flop_per_token * median(); }
  // Infinite where the limits are unknown.
  [[nodiscard]] double share_of_read() const noexcept { return bytes_per_second() / limits.read; }
  [[nodiscard]] double share_of_matrix() const noexcept { return flop_per_second() / limits.matrix; }
};

// What holds for all results of a run.
struct Setting {
  BackendKind backend = BackendKind::cpu;
  std::string machine, shape, format, isa, numerics, family, kv_dtype, kv_layout, matrix_unit;
  std::string isa_remark;            // " (why not a better one)", or empty
  std::vector<std::string> kernels;  // "linear: kernel (family)", a line each
  std::size_t threads = 0;
  std::uint64_t weights_per_token = 0, kv_per_token = 0, read_buffer = 0;  // bytes; no buffer: the limits are given
};

}  // namespace tessera::bench
