// Samples: several texts that are drawn after one prompt. Each sample is a fork of the session with its own Decoding. A step computes the
// rows of all samples in one run.
#include <tessera/decoding/samples.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <utility>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "decoding/decoding.hpp"
#include "decoding/drive.hpp"
#include "engine/views.hpp"

namespace tessera {

using detail::Decoding;
using detail::guard;
using detail::make_error;
using detail::Run;

namespace {

constexpr std::uint32_t kMostSamples = 1024;

}  // namespace

struct [[gnu::visibility("hidden")]] Samples::State {
  State(std::shared_ptr<const Engine::State> engine, const SamplesOptions& how) : shared(std::move(engine)), options(how) {
    strips_top = options.best_by != BestBy::nothing && options.generate.logprobs == 0;
    // BestBy ranks samples by the log-probabilities of their tokens, so each piece must have them. If the caller did not ask for
    // log-probabilities (strips_top), they are removed from the pieces again.
    if (strips_top) options.generate.logprobs = 1;
  }

  // The order of the members matters: the decoding must be destroyed before the session and the sampler to which it refers.
  struct Sample {
    std::optional<Session> session;
    std::optional<Sampler> sampler;
    std::unique_ptr<Decoding> decoding;
    double logprob = 0.0;

    [[nodiscard]] bool goes_on() const noexcept { return decoding->finish_reason() == FinishReason::none; }
  };

  Status step();
  void give(std::uint32_t index, Piece piece);
  void end(Error why) noexcept {
    ends_with = why.code() == ErrorCode::cancelled ? FinishReason::cancelled : FinishReason::error;
    error.emplace(std::move(why));
    for (Sample& sample : samples) {
      if (sample.goes_on()) sample.decoding->leave();
    }
  }

  std::shared_ptr<const Engine::State> shared;
  SamplesOptions options;
  bool strips_top = false;
  std::vector<Sample> samples;
  std::deque<SamplePiece> pieces;  // pieces that were drawn but not yet returned
  std::optional<Error> error;      // an error of a step, which ends all samples
  FinishReason ends_with = FinishReason::none;  // finish reason of the samples that this error has ended
};

Samples::Samples(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Samples::Samples() noexcept = default;
Samples::Samples(Samples&&) noexcept = default;
Samples& Samples::operator=(Samples&&) noexcept = default;
Samples::~Samples() = default;

Result<Samples> Samples::start(const Session& session, const Sampler& sampler, const SamplesOptions& options) noexcept {
  return guard([&]() -> Result<Samples> {
    if (session.state_ == nullptr) return detail::empty_handle("Session");
    if (options.samples == 0 || options.samples > kMostSamples) {
      return make_error(ErrorCode::invalid_argument, "{} samples; choose 1 to {}", options.samples, kMostSamples);
    }
    if (options.best_by < BestBy::nothing || options.best_by > BestBy::sum_logprob) {
      return make_error(ErrorCode::invalid_argument, "a best_by of kind {}; choose nothing, mean_logprob or sum_logprob",
                        static_cast<int>(options.best_by));
    }
    TESSERA_TRY_STATUS(detail::check_sampler(sampler, session.engine()));
    TESSERA_TRY_STATUS(detail::TextState::check(options.generate));
    auto state = std::make_unique<State>(detail::view_of(*session.state_).shared, options);
    state->samples.reserve(options.samples);
    const bool shares = session.kv().kind() == KvKind::paged;
    for (std::uint32_t i = 0; i < options.samples; ++i) {
      State::Sample& sample = state->samples.emplace_back();
      TESSERA_TRY(sample.session, shares ? session.fork() : session.clone());
      TESSERA_TRY(sample.sampler, sampler.clone());
      sample.sampler->reseed(sampler.seed(), sampler.stream() + i);
      sample.decoding = std::make_unique<Decoding>(*sample.session->state_, *sample.sampler, state->options.generate);
      TESSERA_TRY_STATUS(sample.decoding->start_drafting());
    }
    return Samples(std::move(state));
  });
}

void Samples::State::give(std::uint32_t index, Piece piece) {
  pieces.push_back({.sample = index, .piece = std::move(piece)});
  Piece& given = pieces.back().piece;
  if (options.best_by != BestBy::nothing) samples[index].logprob += static_cast<double>(given.logprob);
  if (strips_top) given.top.clear();
}

Status Samples::State::step() {
  std::vector<std::uint32_t> members;
  members.reserve(samples.size());
  const auto offer = [&](Run& run) -> Status {
    for (std::uint32_t i = 0; i < samples.size(); ++i) {
      if (!samples[i].goes_on()) continue;
      TESSERA_TRY_STATUS(samples[i].decoding->offer_ready(run, detail::view_of(*shared).options.step_rows));
      members.push_back(i);
    }
    return {};
  };
  // Every sample reads its results, even if another sample fails.
  const auto take = [&](Run& run) -> Status {
    Status status;
    for (const std::uint32_t i : members) {
      const Status taken = guard([&] { return samples[i].decoding->take_all(run, [&](Piece piece) { give(i, std::move(piece)); }); });
      if (status) status = taken;
    }
    return status;
  };
  return detail::drive_step(*shared, options.generate.stop, "the next tokens of the samples", offer, take);
}

std::optional<SamplePiece> Samples::next() noexcept {
  if (state_ == nullptr) return std::nullopt;
  State& s = *state_;
  const auto goes_on = [&] { return s.ends_with == FinishReason::none && std::ranges::any_of(s.samples, &State::Sample::goes_on); };
  while (s.pieces.empty() && goes_on()) {
    if (Status status = guard([&] { return s.step(); }); !status) s.end(std::move(status).error());
  }
  if (s.pieces.empty()) return std::nullopt;
  std::optional<SamplePiece> next(std::move(s.pieces.front()));
  s.pieces.pop_front();
  return next;
}

Status Samples::status() const noexcept {
  return guard([&]() -> Status {
    if (state_ == nullptr) return detail::empty_handle("Samples");
    return state_->error ? Status(*state_->error) : Status();
  });
}

std::uint32_t Samples::size() const noexcept { return state_ == nullptr ? 0 : static_cast<std::uint32_t>(state_->samples.size()); }

FinishReason Samples::finish_reason(std::uint32_t sample) const noexcept {
  if (sample >= size()) return FinishReason::error;
  const State::Sample& one = state_->samples[sample];
  return one.goes_on() ? state_->ends_with : one.decoding->finish_reason();
}

Figures Samples::figures(std::uint32_t sample) const noexcept {
  return sample < size() ? state_->samples[sample].decoding->figures() : Figures{};
}

double Samples::logprob(std::uint32_t sample) const noexcept { return sample < size() ? state_->samples[sample].logprob : 0.0; }

double Samples::score(std::uint32_t sample) const noexcept {
  const std::size_t tokens = figures(sample).tokens;
  if (tokens == 0) return -std::numeric_limits<double>::infinity();
  return state_->options.best_by == BestBy::mean_logprob ? logprob(sample) / static_cast<double>(tokens) : logprob(sample);
}

std::optional<std::uint32_t> Samples::best() const noexcept {
  if (size() == 0 || state_->options.best_by == BestBy::nothing) return std::nullopt;
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < size(); ++i) {
    if (score(i) > score(best)) best = i;
  }
  return best;
}

std::optional<Session> Samples::take_session(std::uint32_t sample) noexcept {
  if (sample >= size() || finish_reason(sample) == FinishReason::none) return std::nullopt;
  return std::exchange(state_->samples[sample].session, std::nullopt);
}

}  // namespace tessera
