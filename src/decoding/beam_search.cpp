// Beam search as in transformers' generate() (5.24, GenerationMixin._beam_search). A step ranks all continuations of all beams by one
// token. A continuation that ends the text becomes a finished sequence if it is among the best `beams` continuations. The next beams are
// the best `beams` continuations that do not end the text, whatever their rank.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include <tessera/sampling/chain.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "decoding/beam_search_state.hpp"
#include "decoding/drive.hpp"
#include "decoding/text_state.hpp"
#include "engine/run/streams.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/growth.hpp"
#include "engine/views.hpp"

namespace tessera {

using detail::guard;
using detail::make_error;
using detail::Run;

namespace {

constexpr std::uint32_t kMostBeams = 1024;

}  // namespace

Status BeamSearch::State::check(const BeamOptions& options) {
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

Result<std::size_t> BeamSearch::State::most_tokens(const BeamOptions& options, std::size_t tokens, std::size_t capacity) noexcept {
  // The free capacity plus one, because the last token of a beam is not computed.
  const std::size_t room = capacity + 1 - std::min(tokens, capacity + 1);
  const std::size_t most = options.max_tokens != 0 ? options.max_tokens : room;
  if (most > room || room == 0) {
    return make_error(ErrorCode::cache_full,
                      "no room for {} tokens after {}: a context of {} has room for {} more. Ask for fewer tokens or a larger context",
                      std::max<std::size_t>(most, 1), tokens, capacity, room);
  }
  return most;
}

Result<std::unique_ptr<BeamSearch::State>> BeamSearch::State::begin(Session first, const BeamOptions& options) {
  TESSERA_TRY_STATUS(check(options));
  auto state = std::make_unique<State>();
  state->shared_ = detail::view_of(*first.state_).shared;
  state->engine_ = first.engine();
  state->options_ = options;
  TESSERA_TRY_STATUS(state->begin_with(std::move(first)));
  return state;
}

Status BeamSearch::State::begin_with(Session first) {
  Session::State& session = *first.state_;
  if (first.tokens().empty()) {
    return make_error(ErrorCode::invalid_state, "the session is empty: append the tokens that the beams are to follow first");
  }
  TESSERA_TRY(most_, most_tokens(options_, first.tokens().size(), first.kv().capacity()));
  text_start_ = detail::text_start(session);
  const std::size_t vocab = engine_.spec().vocab_size;
  for (Token token = 0; static_cast<std::size_t>(token) < vocab; ++token) {
    const bool is_stop = std::ranges::find(options_.stop_tokens, token) != options_.stop_tokens.end();
    const bool is_end = options_.end_of_generation == EndOfGeneration::stop && engine_.tokenizer().is_end_of_generation(token);
    if (is_stop || is_end) end_tokens_.push_back(token);
  }
  // The number of likeliest tokens of a beam that a step may need: `beams` tokens that do not end the text. In the worst case they come
  // after all tokens that end the text and all suppressed tokens.
  const std::size_t likeliest = options_.beams + end_tokens_.size() + engine_.tokenizer().suppressed().size();
  samplers_.reserve(options_.beams);  // so that the vector never moves its elements: draws_ points to them
  for (std::uint32_t i = 0; i < options_.beams; ++i) {
    samplers_.push_back(sampling::chain().greedy().build());
    if (!samplers_.back().status()) return detail::out_of_memory_error();  // a greedy chain can have no other error
    draws_.push_back({.sampler = &samplers_.back(), .logprobs = static_cast<std::uint32_t>(std::min(likeliest, vocab))});
  }
  TESSERA_TRY_STATUS(Run(*shared_, detail::all_layers(*shared_)).check_range(session));
  if (first.logits().empty() && !first.has_pending()) TESSERA_TRY_STATUS(detail::uncompute_last(session));
  running_.push_back({.session = std::move(first), .path = {}});
  return {};
}

Status BeamSearch::State::offer(Run& run) {
  first_part_ = run.parts();
  parts_ = 0;
  if (!running_.front().session.logits().empty()) return {};
  const Status ready = guard([&]() -> Status {
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const std::size_t part = run.begin_part(*running_[i].session.state_, options_.stop);
      detail::RunRow& last = run.rows(part).back();
      last.output = detail::RowOutput::token;
      last.draw = &draws_[i];
    }
    for (std::size_t part = first_part_; part < run.parts(); ++part) TESSERA_TRY_STATUS(detail::make_ready(run, part));
    return {};
  });
  if (!ready) {
    for (std::size_t part = first_part_; part < run.parts(); ++part) run.undo(part);
    return ready;
  }
  parts_ = run.parts() - first_part_;
  return {};
}

Status BeamSearch::State::take(Run& run) {
  for (std::size_t part = first_part_; part < first_part_ + parts_; ++part) {
    const Status& computed = run.outcome(part);
    if (computed) continue;
    for (std::size_t other = first_part_; other < first_part_ + parts_; ++other) run.undo(other);
    return computed;
  }
  for (std::size_t part = first_part_; part < first_part_ + parts_; ++part) run.commit(part);
  rows_ += parts_;
  if (parts_ == 0) {  // offer() added no part, because the first beam's logits are already known
    const Session& session = running_.front().session;
    detail::draw_next(draws_.front(), *session.state_, session.logits());
    TESSERA_TRY_STATUS(draws_.front().status);
  }
  collect();
  finish_ended(length_ + 1);
  TESSERA_TRY_STATUS(follow());
  look_whether_done(++length_);
  if (has_ended_) running_.clear();
  return {};
}

Status BeamSearch::State::step() {
  return detail::drive_step(
      *shared_, options_.stop, "the beams' next token", [this](Run& run) { return offer(run); }, [this](Run& run) { return take(run); });
}

// Fills candidates_ with the likeliest continuations of all beams.
void BeamSearch::State::collect() {
  candidates_.clear();
  const std::span<const Token> suppressed = engine_.tokenizer().suppressed();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    for (const TokenLogprob& one : draws_[i].piece.top) {
      if (std::ranges::binary_search(suppressed, one.token)) continue;
      candidates_.push_back({.parent = i, .token = one.token, .logprob = running_[i].path.logprob + static_cast<double>(one.logprob)});
    }
  }
  std::ranges::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) { return a.logprob > b.logprob; });
}

double BeamSearch::State::scored(double logprob, std::size_t tokens) const noexcept {
  return logprob / std::pow(static_cast<double>(tokens), static_cast<double>(options_.length_penalty));
}

FinishReason BeamSearch::State::finish_of(Token token, std::size_t tokens) const noexcept {
  if (std::ranges::find(options_.stop_tokens, token) != options_.stop_tokens.end()) return FinishReason::stop_token;
  if (std::ranges::binary_search(end_tokens_, token)) return FinishReason::end_of_generation;
  return tokens == most_ ? FinishReason::max_tokens : FinishReason::none;
}

// Makes finished sequences of those of the best `beams` candidates that end the text. Drops all other candidates that end the text.
void BeamSearch::State::finish_ended(std::size_t tokens) {
  for (const Candidate& candidate : std::span(candidates_).first(std::min<std::size_t>(options_.beams, candidates_.size()))) {
    const FinishReason finish = finish_of(candidate.token, tokens);
    if (finish == FinishReason::none) continue;
    Hypothesis done{.tokens = running_[candidate.parent].path.tokens,
                    .logprob = candidate.logprob,
                    .score = scored(candidate.logprob, tokens),
                    .finish = finish};
    done.tokens.push_back(candidate.token);
    const auto better = [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; };
    finished_.insert(std::ranges::upper_bound(finished_, done, better), std::move(done));
    if (finished_.size() > options_.beams) finished_.pop_back();
  }
}

// Makes the next beams from the best candidates that do not end the text. A candidate continues a present beam (its parent). Of the
// candidates with the same parent, the last takes over the parent's session, and every other gets a fork of that session.
Status BeamSearch::State::follow() {
  std::vector<const Candidate*> next;
  std::vector<std::size_t> children(running_.size());
  for (const Candidate& candidate : candidates_) {
    if (next.size() == options_.beams) break;
    if (finish_of(candidate.token, length_ + 1) != FinishReason::none) continue;
    next.push_back(&candidate);
    ++children[candidate.parent];
  }
  std::vector<Running> followed;
  followed.reserve(next.size());
  for (const Candidate* candidate : next) {
    Running& parent = running_[candidate->parent];
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
  running_ = std::move(followed);
  return {};
}

// Ends the search if no unfinished beam can still get a better score than the finished sequences.
void BeamSearch::State::look_whether_done(std::size_t tokens) noexcept {
  if (running_.empty()) has_ended_ = true;
  if (has_ended_ || finished_.size() < options_.beams) return;
  const bool grows = options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0.0f;
  const double best = scored(running_.front().path.logprob, grows ? most_ : tokens);
  has_ended_ = options_.early_stopping == EarlyStopping::first || !(best > finished_.back().score);
}

std::vector<const Session*> BeamSearch::State::running() const {
  std::vector<const Session*> sessions;
  for (const Running& beam : running_) sessions.push_back(&beam.session);
  return sessions;
}

Result<std::vector<Beam>> BeamSearch::State::results() const {
  const std::size_t wanted = options_.results != 0 ? options_.results : options_.beams;
  std::vector<Beam> results;
  for (const Hypothesis& one : std::span(finished_).first(std::min(wanted, finished_.size()))) {
    Beam& beam = results.emplace_back(Beam{.tokens = one.tokens, .text = {}, .score = one.score, .logprob = one.logprob, .finish = one.finish});
    const Tokenizer& tokenizer = engine_.tokenizer();
    Detokenizer detokenizer(tokenizer, {.control = ControlText::omit, .start = text_start_});
    const bool ends = one.finish != FinishReason::max_tokens;
    for (const Token token : std::span(one.tokens).first(one.tokens.size() - (ends ? 1 : 0))) {
      // If the vocabulary is padded, some numbers are not tokens of the tokenizer and have no text.
      if (static_cast<std::size_t>(token) >= tokenizer.vocab_size()) continue;
      TESSERA_TRY(const std::string text, detokenizer.push(token));
      beam.text += text;
    }
    beam.text += detokenizer.finish();
  }
  return results;
}

// Compares pages by their addresses: two sequences share a page if its address is the same in both.
BeamSearch::State::Pages BeamSearch::State::pages(const Session& base) const {
  Pages pages;
  const KvLayout& layout = base.kv().layout();
  const std::uint64_t page_tokens = layout.page_tokens;
  // `first` begins as a position. It becomes the index of the first page that may differ between a beam and the base.
  std::uint64_t first = base.kv().length();
  for (const Running& beam : running_) first = std::min(first, beam.session.kv().length());
  first /= page_tokens;
  std::vector<const std::byte*> own, last;
  const auto distinct = [](std::vector<const std::byte*>& list) {
    std::ranges::sort(list, std::less<>());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  for (std::size_t group = 0; group < layout.groups.size(); ++group) {
    const auto page_of = [&](const Session& session, std::uint64_t page) -> const std::byte* {
      return page * page_tokens < session.kv().length() ? session.kv().view().pages[group][page] : nullptr;
    };
    own.clear();
    last.clear();
    std::uint64_t taken = 0;
    for (const Running& beam : running_) {
      const std::uint64_t length = beam.session.kv().length();
      for (std::uint64_t page = first; page * page_tokens < length; ++page) {
        const std::byte* const at = page_of(beam.session, page);
        if (at != nullptr && at != page_of(base, page)) own.push_back(at);
      }
      ++taken;
      // Counts the pages that the next step takes. Each beam takes one page: a copy of its partly filled last page if it shares that page,
      // or a new page. Exception: if a partly filled page belongs only to beams and not to `base`, the last of these beams writes to the
      // page itself. `last` has these pages.
      const std::byte* const at = length % page_tokens != 0 ? page_of(beam.session, length / page_tokens) : nullptr;
      if (at != nullptr && at != page_of(base, length / page_tokens)) last.push_back(at);
    }
    distinct(own);
    distinct(last);
    pages.held += own.size() * layout.groups[group].page_bytes;
    pages.next += (taken - last.size()) * layout.groups[group].page_bytes;
  }
  return pages;
}

BeamSearch::BeamSearch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
BeamSearch::BeamSearch() noexcept = default;
BeamSearch::BeamSearch(BeamSearch&&) noexcept = default;
BeamSearch& BeamSearch::operator=(BeamSearch&&) noexcept = default;
BeamSearch::~BeamSearch() = default;

Result<BeamSearch> BeamSearch::start(const Session& session, const BeamOptions& options) noexcept {
  return guard([&]() -> Result<BeamSearch> {
    if (session.state_ == nullptr) return detail::empty_handle("Session");
    TESSERA_TRY_STATUS(State::check(options));
    if (session.kv().kind() != KvKind::paged) {
      return make_error(ErrorCode::unsupported, "beams share pages, and this session has none: make it with KvKind::paged, or convert() it");
    }
    if (session.budget().tokens != 0) {
      return make_error(ErrorCode::unsupported, "beams keep all tokens, and this session has a budget of {}", session.budget().tokens);
    }
    TESSERA_TRY(Session first, session.fork());
    TESSERA_TRY(auto state, State::begin(std::move(first), options));
    return BeamSearch(std::move(state));
  });
}

Result<bool> BeamSearch::step() noexcept {
  return guard([&]() -> Result<bool> {
    if (state_ == nullptr) return detail::empty_handle("BeamSearch");
    State& s = *state_;
    if (s.has_ended()) return false;
    const Status status = guard([&]() -> Status { return s.step(); });
    if (!status) {
      s.end();
      return status.error();
    }
    return !s.has_ended();
  });
}

Result<std::vector<Beam>> BeamSearch::results() const noexcept {
  return guard([&]() -> Result<std::vector<Beam>> {
    if (state_ == nullptr) return detail::empty_handle("BeamSearch");
    return state_->results();
  });
}

std::vector<const Session*> BeamSearch::running() const {
  return state_ == nullptr ? std::vector<const Session*>() : state_->running();
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
