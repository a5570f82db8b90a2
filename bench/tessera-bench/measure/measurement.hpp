// The results of measurements.
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

// One run of a test. If other programs use the machine too, its bandwidth and clock rate change within seconds. So a run is compared with
// limits of its own: the machine's limits are measured right before and right after the run, and of each limit the higher value counts.
struct Run {
  double rate = 0;  // tokens a second
  Limits limits;    // the limits to compare with; they may be unknown
};

struct Measurement {
  Test test = Test::decode;
  std::uint32_t rows = 1;      // rows that are computed together: a prompt's tokens, or a token of each sequence
  std::uint32_t batch = 1;     // number of sequences
  std::uint32_t depth = 0;     // tokens that each sequence has before the test
  std::vector<Run> runs;       // at least one
  double bytes_per_token = 0;
  double flop_per_token = 0;

  [[nodiscard]] double slowest() const { return std::ranges::min(runs, {}, &Run::rate).rate; }
  [[nodiscard]] double fastest() const { return std::ranges::max(runs, {}, &Run::rate).rate; }
  [[nodiscard]] double median() const { return median_of([](const Run& run) { return run.rate; }); }
  [[nodiscard]] double bytes_per_second() const { return bytes_per_token * median(); }
  [[nodiscard]] double flop_per_second() const { return flop_per_token * median(); }
  // Return the median, over the runs, of the share of the run's own limit that it reached; infinite if limits are unknown.
  [[nodiscard]] double share_of_read() const {
    return median_of([&](const Run& run) { return bytes_per_token * run.rate / run.limits.read; });
  }
  [[nodiscard]] double share_of_matrix() const {
    return median_of([&](const Run& run) { return flop_per_token * run.rate / run.limits.matrix; });
  }
  [[nodiscard]] double read_limit() const { return median_of([](const Run& run) { return run.limits.read; }); }
  [[nodiscard]] double matrix_limit() const { return median_of([](const Run& run) { return run.limits.matrix; }); }
  // Returns the name of the read kernel that gave the highest read limit of all runs.
  [[nodiscard]] const std::string& read_kernel() const {
    const auto limit = [](const Run& run) { return run.limits.read; };
    return std::ranges::max_element(runs, {}, limit)->limits.read_kernel;
  }

 private:
  template <class Value>
  [[nodiscard]] double median_of(const Value& value) const {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(value(run));
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  }
};

// The facts that hold for all results of one call of the program: machine, model and engine.
struct Subject {
  BackendKind backend = BackendKind::cpu;
  std::string machine, shape, format, isa, numerics, family, kv_dtype, kv_layout, matrix_unit;
  std::string isa_remark;            // the reason why no better instruction set is used, " (...)", or empty
  std::vector<std::string> kernels;  // "linear: kernel (family)", a line each
  std::size_t threads = 0;
  std::uint64_t weights_per_token = 0, kv_per_token = 0, read_buffer = 0;  // bytes; read_buffer 0: the limits were given, not measured
};

}  // namespace tessera::bench
