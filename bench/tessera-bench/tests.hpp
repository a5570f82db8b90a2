// The tests themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include <tessera/engine.hpp>
#include <tessera/session.hpp>

#include "costs.hpp"
#include "limits.hpp"
#include "measurement.hpp"
#include "options.hpp"
#include "status_line.hpp"

namespace tessera::bench {

struct Request {
  Test test = Test::decode;
  std::uint32_t count = 1;  // tokens of a prompt, sequences of a batch, tokens before; of decode nothing
  std::uint32_t steps = 0;  // of decode, batch and depth
};

// What the command line asks for, in the order in which it is measured.
[[nodiscard]] std::vector<Request> requests_of(const Options& options);

// Runs tests of one engine, one after another, and passes on each result as it is there.
class Tests {
 public:
  using Tell = std::function<void(const Measurement&)>;

  // Warms up: weights come into the page tables.
  Tests(const Engine& engine, const ModelCosts& costs, const Options& options, Machine& machine, StatusLine& status,
        Tell tell);

  // Throws Interrupted after Ctrl-C. The context must be within the options'.
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
  Limits before_;                // the run that comes
  std::optional<Session> deep_;  // grows from depth to depth
};

}  // namespace tessera::bench
