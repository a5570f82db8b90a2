// The figures of a served trace. A real run (tessera-bench --trace) and a simulated run have the same figures.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <tessera/extend/scheduler/histogram.hpp>

namespace tessera::tool {

// The times within which a request must be served to count as well served.
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
  std::uint64_t well_served = 0;           // requests that finished within the level
  std::uint64_t missed = 0;                // requests that finished after their deadline
  double seconds = 0.0;                    // from the first arrival to the last token
  double prefix_ideal = 0.0;
  std::string costs;                       // the costs that the scheduler learnt, in the form that tessera-simulate reads

  // Counts a request that has ended. The times are seconds since its arrival: `waited` until its first row, `first` until its first token,
  // `all` until its last token.
  void add_finished(double waited, double first, double all, std::uint64_t tokens) noexcept;
  void merge(const ServingFigures& other) noexcept;

  [[nodiscard]] double tokens_per_second() const noexcept;
  [[nodiscard]] double goodput() const noexcept;     // well-served requests a second
  [[nodiscard]] double prefix_hit() const noexcept;  // share of the prompts' tokens that came from the prefix index
};

// A time in the report: its key, its title, and its histogram.
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
// Returns two tables: one with a row for each run, one with a row for each time of each run.
[[nodiscard]] std::string to_text(std::span<const ServingFigures> all);

}  // namespace tessera::tool
