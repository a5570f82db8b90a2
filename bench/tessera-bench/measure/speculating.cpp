#include "measure/speculating.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tessera/batch.hpp>
#include <tessera/decoding/drafters.hpp>
#include <tessera/sampling/chain.hpp>
#include <tessera/scheduler/scheduler.hpp>
#include <tessera/unstable/decoding/speculation_estimate.hpp>
#include <tessera/version.hpp>

#include "engine_setup.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "show/report.hpp"
#include "show/status_line.hpp"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::vector<Token> prompt_of(const Engine& engine, std::uint32_t sequence, std::uint32_t tokens) {
  std::vector<Token> list(std::max(tokens, 1u));
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = static_cast<Token>((std::uint64_t{sequence} * 104729 + i * 7919) % engine.spec().vocab_size);
  }
  return list;
}

// Measures what it costs to verify drafts: the median time of a step in which each of n sequences has several rows, with the logits of all
// rows.
class StepTimes {
 public:
  StepTimes(const Engine& engine, std::uint32_t n, std::uint32_t depth, std::uint32_t most) : engine_(engine), depth_(std::max(depth, 1u)) {
    for (std::uint32_t i = 0; i < n; ++i) {
      sessions_.push_back(value(engine.session({.context = depth_ + most + 1})));
      if (const auto read = sessions_.back().append(prompt_of(engine, i, depth_), {.logits = LogitsOf::none}); !read) fail(read.error());
    }
  }

  [[nodiscard]] double measure(std::uint32_t rows, std::uint32_t times) {
    std::vector<double> seconds;
    for (std::uint32_t turn = 0; turn <= times; ++turn) {
      Batch batch;
      for (std::uint32_t i = 0; i < sessions_.size(); ++i) {
        for (std::uint32_t row = 0; row < rows; ++row) {
          const auto token = static_cast<Token>((turn * 31 + i * 17 + row) % engine_.spec().vocab_size);
          check(batch.add(sessions_[i], Row{.token = token, .want = Want::logits}));
        }
      }
      const auto begin = Clock::now();
      const Outputs outputs = value(engine_.forward(batch));
      const double spent = seconds_since(begin);
      check(outputs.status());
      for (Session& session : sessions_) check(session.truncate(depth_));
      if (turn > 0) seconds.push_back(spent);  // the first turn warms up and does not count
      throw_if_interrupted();
    }
    std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2));
    return seconds[seconds.size() / 2];
  }

 private:
  const Engine& engine_;
  std::uint32_t depth_;
  std::vector<Session> sessions_;
};

// The time that a drafter took, and the number of drafts that it made.
struct DraftTime {
  double seconds = 0.0;
  std::uint64_t drafts = 0;
};

// A drafter with a given acceptance rate a, to measure what speculation gains at this rate. It knows the text that the model will write,
// and drafts a wrong token with probability 1 - a, at the same positions in each run. `maker`: a real drafter, or nullptr. It drafts
// first, so that the time of real drafting is counted; then its drafts are replaced by as many of this drafter.
class FixedRate final : public Drafter {
 public:
  FixedRate(std::shared_ptr<const std::vector<Token>> sequence, double acceptance, std::shared_ptr<const Drafter> maker, DraftTime& spent)
      : sequence_(std::move(sequence)), acceptance_(acceptance), maker_(std::move(maker)), spent_(&spent) {}

  Result<std::unique_ptr<Drafter>> start(const Engine& engine) const override {
    auto started = std::make_unique<FixedRate>(sequence_, acceptance_, maker_, *spent_);
    if (maker_ != nullptr) {
      auto making = maker_->start(engine);
      if (!making) return std::move(making).error();
      started->making_ = *std::move(making);
    }
    return std::unique_ptr<Drafter>(std::move(started));
  }

  Result<std::size_t> propose(const DraftContext& context, std::span<Token> out) override {
    if (making_ != nullptr) {
      const auto begin = Clock::now();
      const auto made = making_->propose(context, out);
      if (!made || *made == 0) return made;
      spent_->seconds += seconds_since(begin);
      spent_->drafts += *made;
      out = out.first(*made);
    }
    std::size_t n = 0;
    for (std::size_t at = context.history.size(); n < out.size() && at < sequence_->size(); ++at, ++n) {
      const Token right = (*sequence_)[at];
      out[n] = sampling::philox_uniform(7, at, 0, 0) < acceptance_ ? right : (right == 0 ? 1 : 0);
    }
    return n;
  }

  [[nodiscard]] double cost(std::size_t n) const noexcept override { return making_ != nullptr ? making_->cost(n) : 0.0; }

 private:
  std::shared_ptr<const std::vector<Token>> sequence_;
  double acceptance_;
  std::shared_ptr<const Drafter> maker_;
  DraftTime* spent_;
  std::unique_ptr<Drafter> making_;
};

struct Served {
  double seconds = 0.0;
  std::uint64_t tokens = 0;
  std::vector<std::vector<Token>> sequences;  // the requests' tokens, prompts included
  SchedulerFigures figures;
  DraftTime drafting;
};

// Serves `n` greedy requests at once through a scheduler, and measures the time from the moment at which all of them have a first token.
// `known`: the texts of these requests, from an earlier call without drafts; the drafter drafts them. If `known` is empty, there are no
// drafts.
Served serve(const Engine& engine, std::uint32_t n, const Options& options, double acceptance,
             std::span<const std::vector<Token>> known = {}) {
  Scheduler scheduler = value(Scheduler::create(engine, {.limits = {.seconds = 10.0}, .max_unread = std::size_t{options.steps} + 1}));
  std::vector<RequestHandle> handles;
  Served served;
  const std::uint32_t depth = std::max(options.batch_depth, 1u);
  for (std::uint32_t i = 0; i < n; ++i) {
    served.sequences.push_back(prompt_of(engine, i, depth));
    GenerateOptions generate{.max_tokens = options.steps, .end_of_generation = EndOfGeneration::ignore};
    if (!known.empty()) {
      auto maker = options.speculate.mtp ? value(head_drafter()) : nullptr;
      auto sequence = std::make_shared<const std::vector<Token>>(known[i]);
      generate.speculate = {.drafter = std::make_shared<FixedRate>(std::move(sequence), acceptance, std::move(maker), served.drafting),
                            .max_drafts = options.speculate.most};
    }
    handles.push_back(value(scheduler.submit({.prompt = served.sequences.back(), .session_options = {.context = depth + options.steps + options.speculate.most + 1}, .generate = std::move(generate)})));
  }
  // The time at which all requests have their first token. Measuring begins there, so that prompts do not count.
  std::optional<Clock::time_point> begin;
  std::uint64_t before = 0;
  while (!scheduler.idle()) {
    (void)value(scheduler.step());
    throw_if_interrupted();
    if (begin) continue;
    if (std::ranges::all_of(handles, [](const RequestHandle& handle) { return handle.figures().first_token >= 0; })) {
      begin = Clock::now();
      before = scheduler.figures().tokens;
    }
  }
  served.seconds = begin ? seconds_since(*begin) : 0.0;
  served.figures = scheduler.figures();
  served.tokens = served.figures.tokens - before;
  for (std::uint32_t i = 0; i < n; ++i) {
    while (auto piece = handles[i].try_next()) served.sequences[i].push_back(piece->piece.token);
    if (const Status status = handles[i].status(); !status) fail(status.error());
  }
  return served;
}

struct Line {
  std::uint32_t batch = 1, drafts = 0;
  double acceptance = 0.0, target = 0.0, verify = 0.0, draft = 0.0;  // seconds
  SpeculationEstimate estimate;
  double measured = 0.0;  // speedup
  std::uint64_t drafted = 0, accepted = 0;
};

// Returns the line with the highest estimated speedup among all numbers of drafts from 1 on.
Line best_of(std::uint32_t batch, double acceptance, double draft_seconds, std::span<const double> steps) {
  std::optional<Line> best;
  for (std::uint32_t k = 1; k < steps.size(); ++k) {
    Line row{.batch = batch, .drafts = k, .acceptance = acceptance, .target = steps[0], .verify = steps[k], .estimate = {}};
    row.estimate = value(estimate_speculation({.target_seconds = steps[0],
                                               .draft_seconds = draft_seconds * batch,
                                               .verify_seconds = steps[k],
                                               .acceptance = acceptance,
                                               .drafts = k}));
    if (!best || row.estimate.speedup > best->estimate.speedup) best = row;
  }
  return *best;
}

void show(const Options& options, const Subject& setting, const Line& row) {
  if (options.json) {
    const Json json = {{"test", "speculate"},
                       {"shape", setting.shape},
                       {"format", setting.format},
                       {"batch", row.batch},
                       {"depth", std::max(options.batch_depth, 1u)},
                       {"acceptance", row.acceptance},
                       {"drafts", row.drafts},
                       {"target_ms", 1e3 * row.target},
                       {"verify_ms", 1e3 * row.verify},
                       {"draft_ms", 1e3 * row.draft},
                       {"tokens_a_cycle", row.estimate.tokens},
                       {"cycle_ms", 1e3 * row.estimate.cycle_seconds},
                       {"speedup", row.estimate.speedup},
                       {"break_even", row.estimate.break_even ? Json(*row.estimate.break_even) : Json()},
                       {"measured_speedup", row.measured},
                       {"drafted", row.drafted},
                       {"accepted", row.accepted},
                       {"threads", setting.threads},
                       {"isa", setting.isa},
                       {"machine", setting.machine},
                       {"version", version()}};
    print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    return;
  }
  print(fmt::format("{:>5}{:>8.2f}{:>8}{:>11}{:>11}{:>10}{:>10.2f}{:>10}{:>9.2f}{:>12}{:>10.2f}{:>17}\n", row.batch, row.acceptance, row.drafts,
                    number(1e3 * row.target), number(1e3 * row.verify), number(1e3 * row.draft), row.estimate.tokens, number(1e3 * row.estimate.cycle_seconds),
                    row.estimate.speedup, row.estimate.break_even ? fmt::format("{:.2f}", *row.estimate.break_even) : "never",
                    row.measured, fmt::format("{} of {}", row.accepted, row.drafted)));
}

}  // namespace

void measure_speculation(const Options& options) {
  StatusLine status;
  const auto model = open_model(options);
  const Engine engine = load_engine(*model, options, status);
  throw_if_interrupted();
  const Subject setting = subject_of(*model, engine, options);
  if (!options.json) {
    print(heading(setting) + fmt::format("{:<10}{} tokens before\n\n", "sequences", std::max(options.batch_depth, 1u)));
    print(fmt::format("{:>5}{:>8}{:>8}{:>11}{:>11}{:>10}{:>10}{:>10}{:>9}{:>12}{:>10}{:>17}\n", "batch", "right", "drafts", "step ms", "verify ms",
                      "draft ms", "tokens", "cycle ms", "speedup", "break-even", "measured", "accepted"));
  }
  std::vector<std::uint32_t> pays(options.speculate.acceptance.size(), 0);  // the largest batch at which drafts pay
  const Counts batches = options.batches.empty() ? Counts{1, 2, 4, 8, 16} : options.batches;
  for (const std::uint32_t n : batches) {
    status.show(fmt::format("{} sequences: the costs of a step", n));
    std::vector<double> steps;
    {
      StepTimes times(engine, n, options.batch_depth, options.speculate.most + 1);
      for (std::uint32_t k = 0; k <= options.speculate.most; ++k) steps.push_back(times.measure(k + 1, 2 + options.repeat));
    }
    for (std::size_t i = 0; i < options.speculate.acceptance.size(); ++i) {
      const double acceptance = options.speculate.acceptance[i];
      status.show(fmt::format("{} sequences: with drafts, of which {:.2f} are right", n, acceptance));
      // Measures without and with drafts by turns, so that other programs disturb both alike, and takes the best of each.
      double plain = 0.0, drafting = 0.0;
      DraftTime spent;
      SchedulerFigures figures;
      for (std::uint32_t turn = 0; turn < options.repeat; ++turn) {
        const Served without = serve(engine, n, options, acceptance);
        const Served with = serve(engine, n, options, acceptance, without.sequences);
        if (with.sequences != without.sequences) throw Failure("drafts have changed the tokens, which is a defect: please report it");
        plain = std::max(plain, static_cast<double>(without.tokens) / without.seconds);
        drafting = std::max(drafting, static_cast<double>(with.tokens) / with.seconds);
        figures = with.figures;
        spent.seconds += with.drafting.seconds;
        spent.drafts += with.drafting.drafts;
      }
      const double draft_seconds = spent.drafts > 0 ? spent.seconds / static_cast<double>(spent.drafts) : 1e-3 * options.speculate.draft_ms;
      Line row = best_of(n, acceptance, draft_seconds, steps);
      if (row.estimate.speedup > 1.0) pays[i] = std::max(pays[i], n);
      row.draft = draft_seconds;
      row.drafted = figures.drafted;
      row.accepted = figures.accepted;
      row.measured = drafting / plain;
      status.clear();
      show(options, setting, row);
    }
  }
  if (options.json) return;
  for (std::size_t i = 0; i < pays.size(); ++i) {
    const std::string until = pays[i] == 0               ? "it does not pay at any of these batch sizes"
                              : pays[i] == batches.back() ? fmt::format("it pays up to {} sequences, the most that were measured", pays[i])
                                                          : fmt::format("it stops to pay beyond {} sequences", pays[i]);
    print(fmt::format("{}with {:.2f} of the drafts right, {}\n", i == 0 ? "\n" : "", options.speculate.acceptance[i], until));
  }
}

}  // namespace tessera::bench
