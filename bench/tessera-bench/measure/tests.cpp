#include "measure/tests.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <tessera/batch.hpp>
#include <tessera/session.hpp>

#include "failure.hpp"
#include "interrupt.hpp"

namespace tessera::bench {

std::vector<Request> requests_of(const Options& options) {
  std::vector<Request> list;
  for (const std::uint32_t tokens : options.prefill) list.push_back({Test::prefill, tokens});
  if (options.decode) list.push_back({Test::decode, 1, options.steps});
  for (const std::uint32_t sequences : options.batches) list.push_back({Test::batch, sequences, options.steps});
  Counts depths = options.depths;
  std::sort(depths.begin(), depths.end());
  depths.erase(std::unique(depths.begin(), depths.end()), depths.end());
  for (const std::uint32_t depth : depths) list.push_back({Test::depth, depth, options.steps});
  return list;
}

Tests::Tests(const Engine& engine, const ModelCosts& costs, const Options& options, Machine& machine,
             StatusLine& status, Tell tell)
    : engine_(engine), costs_(costs), options_(options), machine_(machine), status_(status), tell_(std::move(tell)) {
  Session once = session(std::min<std::uint32_t>(2, options_.context()));
  extend(once, 1, "warming up", LogitsOf::last);
}

void Tests::run(const Request& request) {
  switch (request.test) {
    case Test::prefill: return prefill(request.count);
    case Test::decode: return decode(request.steps);
    case Test::batch: return batch(request.count, request.steps);
    case Test::depth: return decode_at(request.count, request.steps);
  }
}

// Returns token i of the made-up text: tokens vary, and are the same in every run.
Token Tests::token(std::uint64_t i) const noexcept { return static_cast<Token>(i * 7919 % engine_.spec().vocab_size); }

std::vector<Token> Tests::tokens(std::size_t first, std::size_t count) const {
  std::vector<Token> list(count);
  for (std::size_t i = 0; i < count; ++i) list[i] = token(first + i);
  return list;
}

Session Tests::session(std::uint32_t context) const {
  SessionOptions options;
  options.context = context;
  return value(engine_.session(options));
}

// Appends `count` tokens outside of the measured time. `what`: the text of the status line meanwhile.
void Tests::extend(Session& session, std::size_t count, std::string_view what, LogitsOf logits) {
  AppendOptions options;
  options.logits = logits;
  options.progress = [&](std::size_t done, std::size_t total) {
    status_.show(fmt::format("{}: {} of {} tokens", what, done, total));
    return stop_requested == 0;
  };
  (void)value(session.append(tokens(session.tokens().size(), count), options));
  throw_if_interrupted();
}

// Appends `steps` tokens, one at a time.
void Tests::step(Session& session, std::uint32_t steps, std::string_view what) {
  for (std::uint32_t i = 0; i < steps; ++i) {
    const Token next = token(session.tokens().size());
    (void)value(session.append({&next, 1}));
    status_.show(fmt::format("{}: {} of {} tokens", what, i + 1, steps));
    throw_if_interrupted();
  }
}

// Returns the limits with which the run that has just ended is compared: measures the machine's limits now, and returns of each limit the
// higher of this value and the value from before the run. The new values are kept, as the values from before the next run.
Limits Tests::limits_around() {
  const Limits after = machine_.measure();
  Limits most = before_.read > after.read ? before_ : after;
  most.matrix = std::max(before_.matrix, after.matrix);
  before_ = after;
  return most;
}

// Measures a test: calls prepare() and then once() as many times as --repeat says, times once(), and passes on `result` with these runs.
// `tokens`: how many tokens one run computes. `cost`: the bytes and operations of these tokens.
template <class Prepare, class Once>
void Tests::measure(Measurement result, const Cost& cost, std::uint64_t tokens, const Prepare& prepare, const Once& once) {
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
  } catch (const Interrupted&) {  // shows the runs that have ended
    if (!result.runs.empty()) show(result);
    throw;
  }
  show(result);
}

void Tests::show(const Measurement& result) {
  status_.clear();
  tell_(result);
}

void Tests::prefill(std::uint32_t count) {
  Measurement result;
  result.test = Test::prefill;
  result.rows = count;
  Session prompt = session(count);
  const Cost cost = costs_.prefill(count, EngineOptions{}.step_rows);
  measure(result, cost, count, [&] { check(prompt.clear()); },
          [&](std::string_view what) { extend(prompt, count, what, LogitsOf::last); });
}

void Tests::decode(std::uint32_t steps) {
  Measurement result;
  result.test = Test::decode;
  Session sequence = session(steps + 1);
  extend(sequence, 1, "decode");
  measure(result, costs_.decode(1, 1, steps), steps, [&] { check(sequence.truncate(1)); },
          [&](std::string_view what) { step(sequence, steps, what); });
}

void Tests::batch(std::uint32_t count, std::uint32_t steps) {
  Measurement result;
  result.test = Test::batch;
  result.rows = result.batch = count;
  result.depth = options_.batch_depth;
  const std::uint32_t depth = options_.batch_depth;
  std::vector<Session> sequences;
  sequences.push_back(session(depth + steps + 1));
  if (depth > 0) extend(sequences.front(), depth, fmt::format("batch of {}: the prompt", count));
  // Copies have their own keys and values, as sequences of different users have.
  while (sequences.size() < count) sequences.push_back(value(sequences.front().clone()));
  const auto rewind = [&] {
    for (Session& sequence : sequences) check(sequence.truncate(depth));
  };
  Batch batch;
  const Cost cost = costs_.decode(count, depth, steps);
  measure(result, cost, std::uint64_t{count} * steps, rewind, [&](std::string_view what) {
    for (std::uint32_t i = 0; i < steps; ++i) {
      batch.clear();
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        check(batch.add(sequences[s], {.token = token(depth + i + s), .embedding = {}, .want = Want::logits}));
      }
      check(value(engine_.forward(batch)).status());
      status_.show(fmt::format("{}: {} of {} steps", what, i + 1, steps));
      throw_if_interrupted();
    }
  });
}

// Measures decoding at a depth. Keeps the sequence of the last call, and computes only the tokens that are missing for this depth.
void Tests::decode_at(std::uint32_t depth, std::uint32_t steps) {
  Measurement result;
  result.test = Test::depth;
  result.depth = depth;
  if (!deep_) deep_ = session(options_.context());
  const std::size_t filled = deep_->tokens().size();
  if (filled > depth) check(deep_->truncate(depth));
  if (filled < depth) extend(*deep_, depth - filled, fmt::format("filling a context of {}", depth));
  measure(result, costs_.decode(1, depth, steps), steps, [&] { check(deep_->truncate(depth)); },
          [&](std::string_view what) { step(*deep_, steps, what); });
  check(deep_->truncate(depth));
}

}  // namespace tessera::bench
