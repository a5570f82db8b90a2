// The figures of a served trace: the same for a real run (tessera-bench --trace) and for a simulated run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <tessera/extend/scheduler/histogram.hpp>

namespace tessera::tool {

// The times within which a request counts as served well.
struct ServiceLevel {
  double ttft = 2.0;  // seconds to the first token
  double tpot = 0.2;  // seconds a token after the first, on average
};

struct ServingFigures {
  std::string test, batching, policy, router;  // names for the report; router: empty if there is none
  std::uint32_t replicas = 1;
  ServiceLevel level;
  Histogram ttft, itl, tpot, e2e, queue;   // seconds: to the first token, between tokens, a token after the first, in all, waiting
  Histogram step, scheduler;               // seconds of a step, and of the scheduler itself in it
  Histogram batch;                         // rows of a step
  std::uint64_t requests = 0, finished = 0, refused = 0, preempted = 0;
  std::uint64_t prompt_tokens = 0, output_tokens = 0, prefix_tokens = 0, recomputed_tokens = 0;
  std::uint64_t well_served = 0;           // finished within the level
  std::uint64_t missed = 0;                // finished after their deadline
  double seconds = 0.0;                    // from the first arrival to the last token
  double prefix_ideal = 0.0;
  std::string costs;                       // the costs that the scheduler learnt, in the form that tessera-simulate takes

  // Counts a request that has ended. Seconds after its arrival: `waited` to its first row, `first` to its first token, `all` to its
  // last token.
  void add_finished(double waited, double first, double all, std::uint64_t tokens) noexcept;
  void merge(const ServingFigures& other) noexcept;

  [[nodiscard]] double tokens_per_second() const noexcept;
  [[nodiscard]] double goodput() const noexcept;     // requests a second within the level
  [[nodiscard]] double prefix_hit() const noexcept;  // share of the prompts' tokens
};

// A time of the report: its key, its title, and its histogram.
struct ServingTime {
  const char *key, *title;
  Histogram ServingFigures::*of;
};
inline constexpr std::array<ServingTime, 5> kServingTimes = {{{"ttft_ms", "to the first token", &ServingFigures::ttft},
                                                              {"itl_ms", "between tokens", &ServingFigures::itl},
                                                              {"tpot_ms", "a token, on average", &ServingFigures::tpot},
                                                              {"e2e_ms", "to the last token", &ServingFigures::e2e},
                                                              {"queue_ms", "waiting", &ServingFigures::queue}}};

// Returns an object with the fields that docs/howto/measure-load.md lists.
[[nodiscard]] nlohmann::ordered_json to_json(const ServingFigures& figures);
// Returns two tables: with a row for each run, and with a row for each time of each run.
[[nodiscard]] std::string to_text(std::span<const ServingFigures> all);

}  // namespace tessera::tool
