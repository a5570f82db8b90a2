// Runs the tests: prefill, decode, batch and depth.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "measure/costs.hpp"
#include "measure/limits.hpp"
#include "measure/measurement.hpp"
#include "options.hpp"
#include "show/status_line.hpp"

namespace tessera::bench {

struct Request {
  Test test = Test::decode;
  std::uint32_t count = 1;  // prefill: tokens of the prompt; batch: sequences; depth: tokens before the test; decode: not used
  std::uint32_t steps = 0;  // decode, batch and depth: decode steps
};

// Returns the tests that the command line names, in the order in which they are measured.
[[nodiscard]] std::vector<Request> requests_of(const Options& options);

// Runs tests of one engine one after another, and passes each result to `tell` as soon as it is measured.
class Tests {
 public:
  using Tell = std::function<void(const Measurement&)>;

  // Computes a few tokens to warm up, so that all weights have been touched and their pages are mapped.
  Tests(const Engine& engine, const ModelCosts& costs, const Options& options, Machine& machine, StatusLine& status,
        Tell tell);

  // Runs one test. The test must fit options.context(). Throws Interrupted after Ctrl-C.
  void run(const Request& request);

 private:
  [[nodiscard]] Token token(std::uint64_t i) const noexcept;
  [[nodiscard]] std::vector<Token> tokens(std::size_t first, std::size_t count) const;
  [[nodiscard]] Session session(std::uint32_t context) const;
  void extend(Session& session, std::size_t count, std::string_view what, LogitsOf logits = LogitsOf::none);
  void step(Session& session, std::uint32_t steps, std::string_view what);
  [[nodiscard]] Limits limits_around();

  template <class Prepare, class Once>
  void measure(Measurement result, const Cost& cost, std::uint64_t tokens, const Prepare& prepare, const Once& once);
  void show(const Measurement& result);

  void prefill(std::uint32_t count);
  void decode(std::uint32_t steps);
  void batch(std::uint32_t count, std::uint32_t steps);
  void decode_at(std::uint32_t depth, std::uint32_t steps);

  const Engine& engine_;
  const ModelCosts& costs_;
  const Options& options_;
  Machine& machine_;
  StatusLine& status_;
  Tell tell_;
  Limits before_;                // the machine's limits, measured before the next run
  std::optional<Session> deep_;  // the sequence of the depth tests; it grows from depth to depth
};

}  // namespace tessera::bench
