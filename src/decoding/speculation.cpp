#include "decoding/speculation.hpp"

#include <algorithm>
#include <limits>

#include "support/error.hpp"
#include "support/seconds.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint32_t kMostDrafts = 64;

}  // namespace

Result<std::unique_ptr<Speculation>> Speculation::make(const GenerateOptions& options, Session::State& session,
                                                       Sampler& sampler, DraftsChosen chosen) {
  const SpeculateOptions& how = options.speculate;
  if (how.max_drafts == 0 || how.max_drafts > kMostDrafts) {
    return make_error(ErrorCode::invalid_argument, "max_drafts is {}; choose 1 to {}", how.max_drafts, kMostDrafts);
  }
  if (how.length != DraftLength::by_goodput && how.length != DraftLength::longest) {
    return make_error(ErrorCode::invalid_argument, "a draft length of kind {}; choose by_goodput or longest",
                      static_cast<int>(how.length));
  }
  std::unique_ptr<Speculation> made(new Speculation(options, session, sampler, chosen));
  TESSERA_TRY(made->drafter_, guard([&] { return how.drafter->start(session.engine); }, ErrorCode::callback_failed));
  if (made->drafter_ == nullptr) return make_error(ErrorCode::invalid_argument, "the drafter's start() gave none");
  return made;
}

Speculation::Speculation(const GenerateOptions& options, Session::State& session, Sampler& sampler, DraftsChosen chosen)
    : session_(session),
      sampler_(sampler),
      options_(options.speculate),
      chosen_(chosen),
      stop_(options.stop),
      stop_tokens_(options.stop_tokens),
      end_of_generation_(options.end_of_generation),
      logprobs_(options.logprobs),
      lengths_(options_.max_drafts),
      removed_(session.removed) {
  drafts_.reserve(options_.max_drafts);
  draws_.reserve(options_.max_drafts);
  guesses_.reserve(options_.max_drafts);
}

void Speculation::tell() noexcept {
  if (!status_) return;
  const bool was_cut = session_.removed != removed_ || seen_ > session_.tokens.size();
  const DraftOutcome outcome{.history = session_.tokens,
                             .added = session_.tokens.size() - (was_cut ? 0 : seen_),
                             .drafted = std::exchange(told_drafted_, 0),
                             .accepted = std::exchange(told_accepted_, 0),
                             .guesses = guesses_};
  status_ = guard([&]() -> Status { return drafter_->observe(outcome), Status(); }, ErrorCode::callback_failed);
  guesses_.clear();
  seen_ = session_.tokens.size();
  removed_ = session_.removed;
}

double Speculation::chance() noexcept {
  if (options_.length == DraftLength::longest) return std::numeric_limits<double>::infinity();
  return lengths_.chance();
}

double Speculation::seconds_per_draft() const noexcept {
  const std::size_t most = options_.max_drafts;
  return (lengths_.knows_drafting() ? lengths_.drafting(most) : std::max(drafter_->cost(most), 0.0)) / static_cast<double>(most);
}

std::size_t Speculation::propose(std::size_t room) noexcept {
  drop();
  tell();
  const auto begin = Clock::now();
  room = std::min<std::size_t>(room, options_.max_drafts);
  if (status_) status_ = guard([&] { return ask(room); }, ErrorCode::callback_failed);
  if (!status_) drafts_.clear();
  step_begins_ = Clock::now();
  drafting_seconds_ = std::chrono::duration<double>(step_begins_ - begin).count();
  return drafts_.size();
}

void Speculation::propose_none() noexcept {
  drop();
  drafting_seconds_ = 0.0;
  step_begins_ = Clock::now();
}

// What follows such a token is never wanted.
bool Speculation::ends(Token token) const noexcept {
  return std::ranges::find(stop_tokens_, token) != stop_tokens_.end() ||
         (end_of_generation_ == EndOfGeneration::stop && session_.shared->tokenizer.is_end_of_generation(token));
}

Status Speculation::ask(std::size_t room) {
  const bool by_goodput = options_.length == DraftLength::by_goodput && chosen_ == DraftsChosen::here;
  const auto guess = [&](std::size_t n) { return drafter_->cost(n); };
  const std::size_t wanted = by_goodput ? lengths_.choose(room, guess) : room;
  if (wanted == 0) return {};
  const auto begin = Clock::now();
  drafts_.resize(wanted);
  const DraftContext context{.history = session_.tokens,
                             .position = session_.stream_position(),
                             .sampler = &sampler_,
                             .stop = stop_,
                             .session = &session_};
  TESSERA_TRY(const std::size_t proposed, drafter_->propose(context, drafts_));
  drafts_.resize(std::min(proposed, wanted));
  const auto vocab = session_.vocab();
  const auto is_token = [&](Token token) { return token >= 0 && static_cast<std::size_t>(token) < vocab; };
  drafts_.erase(std::ranges::find_if_not(drafts_, is_token), drafts_.end());
  const auto end = std::ranges::find_if(drafts_, [&](Token token) { return ends(token); });
  if (end != drafts_.end()) drafts_.erase(end + 1, drafts_.end());
  if (std::exchange(is_warm_, true)) lengths_.observe_drafting(drafts_.size(), seconds_since(begin));
  else lengths_.charge(std::min(drafter_->cost(drafts_.size()), seconds_since(begin)));
  if (by_goodput) drafts_.resize(lengths_.keep(drafts_.size()));
  if (drafts_.empty()) return {};
  on_backend_ = draws_on_backend(*session_.shared, sampler_, logprobs_);
  if (on_backend_) return {};
  return logits_.ensure(*session_.shared->options.memory, options_.max_drafts, vocab);
}

void Speculation::add_rows(Run& run) {
  draws_.assign(drafts_.size(), {.sampler = &sampler_});
  seed_ = sampler_.seed();
  stream_ = sampler_.stream();
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    RunRow row{.token = drafts_[i]};
    if (on_backend_) {
      row.output = RowOutput::token;
      row.draw = &draws_[i];
    } else {
      row.output = RowOutput::logits;
      row.to = logits_.values().data() + i * session_.vocab();
    }
    run.add_draft(row);
  }
}

void Speculation::step_ends(std::size_t rows) noexcept {
  lengths_.observe_step(rows, seconds_since(step_begins_));
  told_drafted_ = drafts_.size();
  if (drafter_->wants_guesses()) guess();
}

// There is room for them.
void Speculation::guess() noexcept {
  guesses_.clear();
  for (std::size_t i = 0; i < drafts_.size(); ++i) {
    if (on_backend_) {
      guesses_.push_back(draws_[i].piece.token);
      continue;
    }
    const auto row = std::span<const float>(logits_.values()).subspan(i * session_.vocab(), session_.vocab());
    guesses_.push_back(static_cast<Token>(std::ranges::max_element(row) - row.begin()));
  }
}

bool Speculation::follow(Token token) noexcept {
  if (accepted_ < drafts_.size() && drafts_[accepted_] == token) {
    told_accepted_ = ++accepted_;
    return is_ahead_ = true;
  }
  if (told_drafted_ > 0) lengths_.observe_accepted(told_drafted_, accepted_);
  drop();
  return false;
}

void Speculation::draw(Draw& into) noexcept {
  const std::size_t row = accepted_ - 1;
  if (on_backend_) {
    into.status = {};
    into.piece = {.token = draws_[row].piece.token};
    return;
  }
  const auto logits = std::span<const float>(logits_.values()).subspan(row * session_.vocab(), session_.vocab());
  draw_from(into, logits, session_.tokens, session_.stream_position(), session_.shared->tokenizer.suppressed());
}

void Speculation::drop() noexcept {
  drafts_.clear();
  accepted_ = 0;
  is_ahead_ = false;
}

}  // namespace tessera::detail
