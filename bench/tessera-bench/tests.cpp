#include "tests.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include <fmt/format.h>

#include <tessera/batch.hpp>
#include <tessera/session.hpp>

#include "failure.hpp"
#include "interrupt.hpp"

namespace tessera::bench {

namespace {

class Tests {
 public:
  Tests(const Engine& engine, const ModelCosts& costs, const Options& options, Machine& machine, StatusLine& status,
        const std::function<void(const Measurement&)>& tell)
      : engine_(engine), costs_(costs), options_(options), machine_(machine), status_(status), tell_(tell) {}

  void run() {
    warm_up();
    for (const std::uint32_t tokens : options_.prefill) prefill(tokens);
    if (options_.decode) decode();
    for (const std::uint32_t sequences : options_.batches) batch(sequences);
    run_depths();
  }

 private:
  // Not the same token again and again, and the same ones in every run.
  [[nodiscard]] Token token(std::uint64_t i) const noexcept {
    return static_cast<Token>(i * 7919 % engine_.spec().vocab_size);
  }
  [[nodiscard]] std::vector<Token> tokens(std::size_t first, std::size_t count) const {
    std::vector<Token> list(count);
    for (std::size_t i = 0; i < count; ++i) list[i] = token(first + i);
    return list;
  }
  [[nodiscard]] Session session(std::uint32_t context) const {
    SessionOptions options;
    options.context = context;
    return value(engine_.session(options));
  }

  // Appends without counting the time; `what` is shown while it lasts.
  void extend(Session& session, std::size_t count, std::string_view what, LogitsOf logits = LogitsOf::none) {
    AppendOptions options;
    options.logits = logits;
    options.progress = [&](std::size_t done, std::size_t total) {
      status_.show(fmt::format("{}: {} of {} tokens", what, done, total));
      return stop_requested == 0;
    };
    (void)value(session.append(tokens(session.tokens().size(), count), options));
    throw_if_interrupted();
  }

  // The better of what the machine gave before the run that has just ended and what it gives now, which is before the
  // next.
  [[nodiscard]] Limits limits_around() {
    const Limits after = machine_.measure();
    Limits most = before_.read > after.read ? before_ : after;
    most.matrix = std::max(before_.matrix, after.matrix);
    before_ = after;
    return most;
  }

  // Weights into the page tables.
  void warm_up() {
    Session once = session(std::min<std::uint32_t>(2, options_.context()));
    extend(once, 1, "warming up", LogitsOf::last);
  }

  // Runs `once` as often as asked; it computes `tokens` tokens, after `prepare`.
  template <class Prepare, class Once>
  void measure(Measurement result, const Cost& cost, std::uint64_t tokens, const Prepare& prepare, const Once& once) {
    using Clock = std::chrono::steady_clock;
    result.bytes_per_token = cost.bytes / static_cast<double>(tokens);
    result.flop_per_token = cost.flop / static_cast<double>(tokens);
    before_ = machine_.measure();
    try {
      for (std::uint32_t run = 0; run < options_.repeat; ++run) {
        const std::string what = fmt::format("{} of {}{}, run {} of {}", to_string(result.test), result.rows,
                                             result.depth > 0 ? fmt::format(" at {}", result.depth) : "", run + 1,
                                             options_.repeat);
        prepare();
        const auto begin = Clock::now();
        once(what);
        const std::chrono::duration<double> seconds = Clock::now() - begin;
        result.runs.push_back({static_cast<double>(tokens) / seconds.count(), limits_around()});
        throw_if_interrupted();
      }
    } catch (const Interrupted&) {  // the runs that have ended count
      if (!result.runs.empty()) show(result);
      throw;
    }
    show(result);
  }

  void show(const Measurement& result) {
    status_.clear();
    tell_(result);
  }

  // One token at a time.
  void step(Session& session, std::string_view what) {
    for (std::uint32_t i = 0; i < options_.steps; ++i) {
      const Token next = token(session.tokens().size());
      (void)value(session.append({&next, 1}));
      status_.show(fmt::format("{}: {} of {} tokens", what, i + 1, options_.steps));
      throw_if_interrupted();
    }
  }

  void prefill(std::uint32_t count) {
    Measurement result;
    result.test = Test::prefill;
    result.rows = count;
    Session prompt = session(count);
    const Cost cost = costs_.prefill(count, EngineOptions{}.step_rows);
    measure(result, cost, count, [&] { prompt.clear(); },
            [&](std::string_view what) { extend(prompt, count, what, LogitsOf::last); });
  }

  void decode() {
    Measurement result;
    result.test = Test::decode;
    Session sequence = session(options_.steps + 1);
    extend(sequence, 1, "decode");
    measure(result, costs_.decode(1, 1, options_.steps), options_.steps, [&] { sequence.truncate(1); },
            [&](std::string_view what) { step(sequence, what); });
  }

  void batch(std::uint32_t count) {
    Measurement result;
    result.test = Test::batch;
    result.rows = result.batch = count;
    result.depth = options_.batch_depth;
    const std::uint32_t depth = options_.batch_depth, steps = options_.steps;
    std::vector<Session> sequences;
    sequences.push_back(session(depth + steps + 1));
    if (depth > 0) extend(sequences.front(), depth, fmt::format("batch of {}: the prompt", count));
    // Copies have keys and values of their own, as sequences of different users have.
    while (sequences.size() < count) sequences.push_back(value(sequences.front().clone()));
    const auto rewind = [&] {
      for (Session& sequence : sequences) sequence.truncate(depth);
    };
    Batch batch;
    const Cost cost = costs_.decode(count, depth, steps);
    measure(result, cost, std::uint64_t{count} * steps, rewind, [&](std::string_view what) {
      for (std::uint32_t i = 0; i < steps; ++i) {
        batch.clear();
        for (std::size_t s = 0; s < sequences.size(); ++s) {
          check(batch.add(sequences[s], {.token = token(depth + i + s), .embedding = {}, .want = Want::logits}));
        }
        (void)value(engine_.forward(batch));
        status_.show(fmt::format("{}: {} of {} steps", what, i + 1, steps));
        throw_if_interrupted();
      }
    });
  }

  // One sequence that grows from depth to depth.
  void run_depths() {
    if (options_.depths.empty()) return;
    Counts depths = options_.depths;
    std::sort(depths.begin(), depths.end());
    depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
    Session sequence = session(depths.back() + options_.steps);
    for (const std::uint32_t depth : depths) {
      Measurement result;
      result.test = Test::depth;
      result.depth = depth;
      sequence.truncate(sequence.tokens().empty() ? 0 : filled_);
      extend(sequence, depth - filled_, fmt::format("filling a context of {}", depth));
      filled_ = depth;
      measure(result, costs_.decode(1, depth, options_.steps), options_.steps, [&] { sequence.truncate(depth); },
              [&](std::string_view what) { step(sequence, what); });
    }
  }

  const Engine& engine_;
  const ModelCosts& costs_;
  const Options& options_;
  Machine& machine_;
  StatusLine& status_;
  const std::function<void(const Measurement&)>& tell_;
  Limits before_;             // the run that comes
  std::uint32_t filled_ = 0;  // of the sequence that grows
};

}  // namespace

void run_tests(const Engine& engine, const ModelCosts& costs, const Options& options, Machine& machine,
               StatusLine& status, const std::function<void(const Measurement&)>& tell) {
  Tests(engine, costs, options, machine, status, tell).run();
}

}  // namespace tessera::bench
