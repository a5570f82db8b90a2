// Beam search as transformers' generate() has it (5.24, GenerationMixin._beam_search): of all continuations of the beams
// by one token, the best `beams` that go on are followed; those of the best `beams` that have ended are finished.
#include <tessera/decoding/beam_search.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "decoding/text_state.hpp"
#include "engine/edit.hpp"
#include "engine/log_probs.hpp"
#include "engine/streams.hpp"
#include "support/error.hpp"
#include "support/fp_state.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using detail::Run;

namespace {

constexpr std::uint32_t kMostBeams = 1024;

struct Hypothesis {
  std::vector<Token> tokens;
  double logprob = 0.0;  // of the tokens, added up
  double score = 0.0;    // of a finished one
  FinishReason finish = FinishReason::none;
};

struct Candidate {
  std::size_t parent;  // of the running beams
  Token token;
  double logprob;      // the parent's and the token's
};

Status check(const BeamOptions& options) {
  if (options.beams == 0 || options.beams > kMostBeams) {
    return make_error(ErrorCode::invalid_argument, "{} beams; choose 1 to {}", options.beams, kMostBeams);
  }
  if (options.results > options.beams) {
    return make_error(ErrorCode::invalid_argument, "{} results of {} beams; choose as many beams at least", options.results,
                      options.beams);
  }
  if (!std::isfinite(options.length_penalty)) {
    return make_error(ErrorCode::invalid_argument, "a length penalty of {}; choose a finite number", options.length_penalty);
  }
  if (options.early_stopping < EarlyStopping::likely || options.early_stopping > EarlyStopping::never) {
    return make_error(ErrorCode::invalid_argument, "an early_stopping of kind {}; choose likely, first or never",
                      static_cast<int>(options.early_stopping));
  }
  return detail::TextState::check({.end_of_generation = options.end_of_generation});
}

}  // namespace

struct [[gnu::visibility("hidden")]] BeamSearch::State {
  struct Running {
    Session session;  // its last token is pending, but for the first one's
    Hypothesis path;
  };

  Status begin(Session first);
  Status compute_logits();
  Status collect();
  void finish_ended(std::size_t tokens);
  Status follow();
  void look_whether_done(std::size_t tokens) noexcept;
  [[nodiscard]] FinishReason finish_of(Token token, std::size_t tokens) const noexcept;
  [[nodiscard]] double scored(double logprob, std::size_t tokens) const noexcept {
    return logprob / std::pow(static_cast<double>(tokens), static_cast<double>(options.length_penalty));
  }
  [[nodiscard]] std::size_t vocab() const noexcept { return shared->model.spec.vocab_size; }

  std::shared_ptr<const Engine::State> shared;
  BeamOptions options;
  std::size_t most = 0;                // tokens of a sequence
  TextStart text_start = TextStart::sequence;
  std::vector<Token> end_tokens;
  std::size_t length = 0;              // tokens of each running beam
  std::vector<Running> running;        // the likeliest first
  std::vector<Hypothesis> finished;    // the best first, at most as many as beams
  detail::LogitsBuffer logits;         // after each running beam  [beams, vocab]
  bool knows_first = false;            // the first one's logits are there
  std::vector<Candidate> candidates;   // of the step, the best first
  bool has_ended = false;
};

BeamSearch::BeamSearch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
BeamSearch::BeamSearch(BeamSearch&&) noexcept = default;
BeamSearch& BeamSearch::operator=(BeamSearch&&) noexcept = default;
BeamSearch::~BeamSearch() = default;

Result<BeamSearch> BeamSearch::start(const Session& session, const BeamOptions& options) noexcept {
  return guard([&]() -> Result<BeamSearch> {
    if (session.state_ == nullptr) return detail::moved_from("session");
    TESSERA_TRY_STATUS(check(options));
    if (session.kv().kind() != KvKind::paged) {
      return make_error(ErrorCode::unsupported, "beams share pages, and this session has none: make it with KvKind::paged, or convert() it");
    }
    auto state = std::make_unique<State>();
    state->shared = session.state_->shared;
    state->options = options;
    TESSERA_TRY(Session first, session.fork());
    TESSERA_TRY_STATUS(state->begin(std::move(first)));
    return BeamSearch(std::move(state));
  });
}

Status BeamSearch::State::begin(Session first) {
  Session::State& session = *first.state_;
  const std::size_t tokens = session.tokens.size(), capacity = session.kv.capacity();
  if (tokens == 0) {
    return make_error(ErrorCode::invalid_state, "the session is empty: append the tokens that the beams are to follow first");
  }
  const std::size_t room = capacity + 1 - std::min(tokens, capacity + 1);  // the last token is not computed
  most = options.max_tokens != 0 ? options.max_tokens : room;
  if (most > room || room == 0) {
    return make_error(ErrorCode::cache_full, "{} tokens after {} in a context of {}; there is room for {}", std::max<std::size_t>(most, 1),
                      tokens, capacity, room);
  }
  text_start = detail::text_start(session);
  for (Token token = 0; static_cast<std::size_t>(token) < vocab(); ++token) {
    const bool is_stop = std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end();
    const bool is_end = options.end_of_generation == EndOfGeneration::stop && shared->tokenizer.is_end_of_generation(token);
    if (is_stop || is_end) end_tokens.push_back(token);
  }
  const detail::RunOptions all = detail::all_layers(*shared);
  TESSERA_TRY_STATUS(Run(*shared, all).check_range(session));
  TESSERA_TRY_STATUS(logits.ensure(*shared->options.memory, options.beams, vocab()));
  if (session.knows_logits()) {
    std::ranges::copy(session.last_logits(), logits.values().begin());
    knows_first = true;
  } else if (!session.has_pending()) {
    TESSERA_TRY_STATUS(detail::uncompute_last(session));
  }
  running.push_back({.session = std::move(first), .path = {}});
  return {};
}

// Of all running beams, in one step.
Status BeamSearch::State::compute_logits() {
  if (std::exchange(knows_first, false)) return {};
  Run run(*shared, detail::all_layers(*shared, options.stop));
  for (std::size_t i = 0; i < running.size(); ++i) {
    const std::size_t part = run.begin_part(*running[i].session.state_);
    detail::RunRow& last = run.rows(part).back();
    last.output = detail::RowOutput::logits;
    last.to = logits.values().data() + i * vocab();
  }
  for (std::size_t part = 0; part < run.parts(); ++part) TESSERA_TRY_STATUS(detail::make_ready(run, part));
  run.compute();
  for (std::size_t part = 0; part < run.parts(); ++part) TESSERA_TRY_STATUS(run.outcome(part));
  for (std::size_t part = 0; part < run.parts(); ++part) run.commit(part);
  return {};
}

// The likeliest continuations of the beams: the best `beams`, and as many that do not end. Of one beam no more than these
// can be among them.
Status BeamSearch::State::collect() {
  candidates.clear();
  std::vector<TokenLogprob> top;
  for (std::size_t i = 0; i < running.size(); ++i) {
    const auto row = std::span<const float>(logits.values()).subspan(i * vocab(), vocab());
    TESSERA_TRY(const double log_sum, detail::log_sum_exp(row));
    const std::span<const Token> suppressed = shared->tokenizer.suppressed();
    detail::top_log_probs(row, log_sum, options.beams + end_tokens.size() + suppressed.size(), top);
    for (const TokenLogprob& one : top) {
      if (std::ranges::binary_search(suppressed, one.token)) continue;
      candidates.push_back({.parent = i, .token = one.token, .logprob = running[i].path.logprob + static_cast<double>(one.logprob)});
    }
  }
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) { return a.logprob > b.logprob; });
  return {};
}

FinishReason BeamSearch::State::finish_of(Token token, std::size_t tokens) const noexcept {
  if (std::ranges::find(options.stop_tokens, token) != options.stop_tokens.end()) return FinishReason::stop_token;
  if (std::ranges::binary_search(end_tokens, token)) return FinishReason::end_of_generation;
  return tokens == most ? FinishReason::max_tokens : FinishReason::none;
}

// Only the best `beams` candidates can finish. Those beyond them are there to be followed.
void BeamSearch::State::finish_ended(std::size_t tokens) {
  for (const Candidate& candidate : std::span(candidates).first(std::min<std::size_t>(options.beams, candidates.size()))) {
    const FinishReason finish = finish_of(candidate.token, tokens);
    if (finish == FinishReason::none) continue;
    Hypothesis done{.tokens = running[candidate.parent].path.tokens,
                    .logprob = candidate.logprob,
                    .score = scored(candidate.logprob, tokens),
                    .finish = finish};
    done.tokens.push_back(candidate.token);
    const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    finished.insert(std::ranges::upper_bound(finished, done, better), std::move(done));
    if (finished.size() > options.beams) finished.pop_back();
  }
}

// The best candidates that have not ended are the beams now: forks of their parents, whose last child takes the parent's
// session itself.
Status BeamSearch::State::follow() {
  std::vector<const Candidate*> next;
  std::vector<std::size_t> children(running.size());
  for (const Candidate& candidate : candidates) {
    if (next.size() == options.beams) break;
    if (finish_of(candidate.token, length + 1) != FinishReason::none) continue;
    next.push_back(&candidate);
    ++children[candidate.parent];
  }
  std::vector<Running> followed;
  followed.reserve(next.size());
  for (const Candidate* candidate : next) {
    Running& parent = running[candidate->parent];
    std::optional<Session> session;
    if (--children[candidate->parent] > 0) {
      TESSERA_TRY(session, parent.session.fork());
    } else {
      session = std::move(parent.session);
    }
    TESSERA_TRY_STATUS(session->add_pending(candidate->token));
    Running& beam = followed.emplace_back(Running{.session = *std::move(session), .path = {.tokens = parent.path.tokens, .logprob = candidate->logprob}});
    beam.path.tokens.push_back(candidate->token);
  }
  running = std::move(followed);
  return {};
}

// Whether what is unfinished can still be among the best.
void BeamSearch::State::look_whether_done(std::size_t tokens) noexcept {
  if (running.empty()) has_ended = true;
  if (has_ended || finished.size() < options.beams) return;
  const bool grows = options.early_stopping == EarlyStopping::never && options.length_penalty > 0.0f;
  const double best = scored(running.front().path.logprob, grows ? most : tokens);
  has_ended = options.early_stopping == EarlyStopping::first || !(best > finished.back().score);
}

Result<bool> BeamSearch::step() noexcept {
  return guard([&]() -> Result<bool> {
    if (state_ == nullptr) return detail::moved_from("beam search");
    State& s = *state_;
    if (s.has_ended) return false;
    const detail::FpState fp_state;
    const Status status = guard([&]() -> Status {
      if (s.options.stop.stop_requested()) return make_error(ErrorCode::cancelled, "stopped before the beams' next token");
      TESSERA_TRY_STATUS(s.compute_logits());
      TESSERA_TRY_STATUS(s.collect());
      s.finish_ended(s.length + 1);
      return s.follow();
    });
    if (!status) {
      s.has_ended = true;
      s.running.clear();
      return status.error();
    }
    s.look_whether_done(++s.length);
    if (s.has_ended) s.running.clear();
    return !s.has_ended;
  });
}

Result<std::vector<Beam>> BeamSearch::results() const noexcept {
  return guard([&]() -> Result<std::vector<Beam>> {
    if (state_ == nullptr) return detail::moved_from("beam search");
    const State& s = *state_;
    const std::size_t wanted = s.options.results != 0 ? s.options.results : s.options.beams;
    std::vector<Beam> results;
    for (const Hypothesis& one : std::span(s.finished).first(std::min(wanted, s.finished.size()))) {
      Beam& beam = results.emplace_back(Beam{.tokens = one.tokens, .text = {}, .score = one.score, .logprob = one.logprob, .finish = one.finish});
      const Tokenizer& tokenizer = s.shared->tokenizer;
      Detokenizer detokenizer(tokenizer, {.control = ControlText::omit, .start = s.text_start});
      const bool ends = one.finish != FinishReason::max_tokens;
      for (const Token token : std::span(one.tokens).first(one.tokens.size() - (ends ? 1 : 0))) {
        if (static_cast<std::size_t>(token) >= tokenizer.vocab_size()) continue;  // a row of a padded table
        TESSERA_TRY(const std::string text, detokenizer.push(token));
        beam.text += text;
      }
      beam.text += detokenizer.finish();
    }
    return results;
  });
}

std::vector<const Session*> BeamSearch::running() const {
  std::vector<const Session*> sessions;
  if (state_ == nullptr) return sessions;
  for (const State::Running& beam : state_->running) sessions.push_back(&beam.session);
  return sessions;
}

Result<std::vector<Beam>> beam_search(const Session& session, const BeamOptions& options) noexcept {
  return guard([&]() -> Result<std::vector<Beam>> {
    TESSERA_TRY(BeamSearch search, BeamSearch::start(session, options));
    for (bool more = true; more;) {
      TESSERA_TRY(more, search.step());
    }
    return search.results();
  });
}

}  // namespace tessera
