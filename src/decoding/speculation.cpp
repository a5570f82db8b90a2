#include "decoding/speculation.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/seconds.hpp"
#include "engine/session/growth.hpp"
#include "engine/views.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint32_t kMostDrafts = 64, kMostBranches = 16;

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
  if (how.branches == 0 || how.branches > kMostBranches) {
    return make_error(ErrorCode::invalid_argument, "{} branches of drafts; choose 1 to {}", how.branches, kMostBranches);
  }
  std::unique_ptr<Speculation> made(new Speculation(options, session, sampler, chosen));
  TESSERA_TRY(made->drafter_, guard([&] { return how.drafter->start(view_of(session).engine); }, ErrorCode::callback_failed));
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
      vocab_(view_of(session).engine.spec().vocab_size),
      tree_(options_.max_drafts),
      lengths_(options_.max_drafts),
      removed_(view_of(session).removed) {
  chain_.reserve(options_.max_drafts);
  proposed_.reserve(options_.max_drafts);
  draws_.reserve(options_.max_drafts);
  guesses_.reserve(options_.max_drafts);
}

void Speculation::tell() noexcept {
  if (!status_) return;
  const SessionView session = view_of(session_);
  const bool was_cut = session.removed != removed_ || seen_ > session.tokens.size();
  const DraftOutcome outcome{.history = session.tokens,
                             .added = session.tokens.size() - (was_cut ? 0 : seen_),
                             .drafted = std::exchange(told_drafted_, 0),
                             .accepted = std::exchange(told_accepted_, 0),
                             .guesses = guesses_};
  status_ = guard([&]() -> Status { return drafter_->observe(outcome), Status(); }, ErrorCode::callback_failed);
  guesses_.clear();
  seen_ = session.tokens.size();
  removed_ = session.removed;
}

double Speculation::chance() noexcept {
  if (options_.length == DraftLength::longest) return std::numeric_limits<double>::infinity();
  return lengths_.chance();
}

double Speculation::seconds_per_draft() const noexcept {
  const std::size_t most = options_.max_drafts;
  return (lengths_.knows_drafting() ? lengths_.drafting(most) : std::max(drafter_->cost(most), 0.0)) / static_cast<double>(most);
}

std::size_t Speculation::most_branches() const noexcept {
  return can_branch(session_) ? std::min(options_.branches, view_of(*view_of(session_).shared).options.step_rows) - 1 : 0;
}

std::size_t Speculation::propose(std::size_t room, std::size_t branches) noexcept {
  drop();
  tell();
  const auto begin = Clock::now();
  room = std::min<std::size_t>(room, options_.max_drafts);
  if (status_) status_ = guard([&] { return ask(room, std::min(branches, most_branches())); }, ErrorCode::callback_failed);
  if (!status_) tree_.clear();
  step_begins_ = Clock::now();
  drafting_seconds_ = std::chrono::duration<double>(step_begins_ - begin).count();
  return tree_.length(0);
}

void Speculation::propose_none() noexcept {
  drop();
  drafting_seconds_ = 0.0;
  step_begins_ = Clock::now();
}

// Returns whether this token would end the generation. No draft may follow such a token.
bool Speculation::ends(Token token) const noexcept {
  return std::ranges::find(stop_tokens_, token) != stop_tokens_.end() ||
         (end_of_generation_ == EndOfGeneration::stop && view_of(session_).engine.tokenizer().is_end_of_generation(token));
}

// Asks the drafter for at most `wanted` drafts: a tree with up to `branches` branches beside its chain, or one chain if `branches` is 0. The
// drafter writes them to the beginning of proposed_. Returns their number.
Result<std::size_t> Speculation::proposals(std::size_t wanted, std::size_t branches) {
  const SessionView session = view_of(session_);
  const DraftContext context{.history = session.tokens,
                             .position = session.stream_position(),
                             .sampler = &sampler_,
                             .stop = stop_,
                             .target = DraftTarget(session_),
                             .branches = 1 + branches};
  proposed_.resize(wanted);
  if (branches > 0) {
    TESSERA_TRY(const std::size_t n, drafter_->propose_tree(context, proposed_));
    return std::min(n, wanted);
  }
  chain_.resize(wanted);
  TESSERA_TRY(const std::size_t n, drafter_->propose(context, chain_));
  for (std::size_t i = 0; i < std::min(n, wanted); ++i) proposed_[i] = {.token = chain_[i], .parent = i == 0 ? kNoDraft : i - 1};
  return std::min(n, wanted);
}

void Speculation::grow(std::size_t branches) {
  tree_.grow(proposed_,
             {.vocab = vocab_, .chains = 1 + branches, .page_tokens = view_of(session_).kv.layout().page_tokens, .position = position_},
             [&](Token token) { return ends(token); });
}

Status Speculation::ask(std::size_t room, std::size_t branches) {
  const bool by_goodput = options_.length == DraftLength::by_goodput && chosen_ == DraftsChosen::here;
  const auto guess = [&](std::size_t n) { return drafter_->cost(n); };
  const std::size_t wanted = by_goodput ? lengths_.choose(room, guess) : room;
  if (wanted == 0) return {};
  if (wanted == 1) branches = 0;
  const auto begin = Clock::now();
  TESSERA_TRY(const std::size_t proposed, proposals(wanted, branches));
  proposed_.resize(proposed);
  position_ = view_of(session_).tokens.size();
  grow(branches);
  const std::size_t drafts = tree_.size();
  if (std::exchange(is_warm_, true)) lengths_.observe_drafting(drafts, seconds_since(begin));
  else lengths_.charge(std::min(drafter_->cost(drafts), seconds_since(begin)));
  if (const std::size_t kept = by_goodput ? lengths_.keep(drafts) : drafts; kept < drafts) {
    proposed_.clear();
    for (const DraftTree::Draft& draft : std::span(tree_.drafts()).first(kept)) proposed_.push_back({.token = draft.token, .parent = draft.parent});
    grow(branches);
  }
  if (tree_.size() == 0) return {};
  const Engine::State& engine = *view_of(session_).shared;
  on_backend_ = draws_on_backend(engine, sampler_, logprobs_);
  return on_backend_ ? Status() : logits_.ensure(*view_of(engine).options.memory, options_.max_drafts, vocab_);
}

RunRow Speculation::row_of(std::size_t draft) noexcept {
  RunRow row{.token = tree_.drafts()[draft].token};
  if (on_backend_) {
    row.output = RowOutput::token;
    row.draw = &draws_[draft];
  } else {
    row.output = RowOutput::logits;
    row.to = logits_behind(draft).data();
  }
  return row;
}

void Speculation::add_rows(Run& run) {
  const std::vector<DraftTree::Draft>& drafts = tree_.drafts();
  draws_.assign(drafts.size(), {.sampler = &sampler_});
  seed_ = sampler_.seed();
  stream_ = sampler_.stream();
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (drafts[i].chain == 0) run.add_draft(row_of(i));
  }
}

// Forks the cache for a chain whose first row is at `position`.
Status Speculation::fork(std::size_t chain, std::uint64_t position) {
  DraftTree::Chain& branch = tree_.chains()[chain];
  const KvCache& from = branch.of == 0 ? view_of(session_).kv : *tree_.chains()[branch.of].cache;
  TESSERA_TRY(KvCache cache, from.fork());
  TESSERA_TRY_STATUS(cache.reserve_branch(position, position + tree_.length(chain)));
  branch.cache = std::move(cache);
  return {};
}

std::size_t Speculation::add_branches(Run& run, std::size_t part) noexcept {
  std::vector<DraftTree::Chain>& chains = tree_.chains();
  if (chains.size() < 2) return 0;
  const std::size_t own = run.part(part).rows - run.part(part).drafts;
  // If the session is a stream and was cut after the drafts were made, the drafts' positions are wrong. Branches are then left out.
  const bool fits = run.part(part).begin + own == position_ && part + 1 == run.parts();
  const bool has_room = fits && guard([&]() -> Status { return run.make_room(chains.size(), tree_.size()), Status(); });
  for (std::size_t chain = 1; chain < chains.size(); ++chain) {
    if (chains[chain].is_left_out) continue;
    if (!has_room || !guard([&] { return fork(chain, position_ + chains[chain].depth); })) tree_.leave_out(chain);
  }
  // Nothing below can fail.
  const auto add_also = [&](std::size_t to, std::size_t first_row, std::size_t chain) {
    for (std::size_t i = 0; i < tree_.drafts().size(); ++i) {
      if (tree_.drafts()[i].chain == chain) run.rows(to)[first_row++].also = static_cast<std::uint32_t>(tree_.branches_behind(i));
    }
  };
  std::size_t branches = tree_.branches_behind(DraftTree::kNone);
  const std::size_t all = branches;
  run.set_branches(part, branches);
  // Each branch has its own copy of the page on which the drafts begin. So the keys and values of the request's own rows on that page are
  // also written to the copies of all branches (RunRow::also).
  const std::size_t page = position_ % view_of(session_).kv.layout().page_tokens;
  for (std::size_t row = own - std::min(own, page); row < own; ++row) run.rows(part)[row].also = static_cast<std::uint32_t>(all);
  add_also(part, own, 0);
  for (std::size_t chain = 1; chain < chains.size(); ++chain) {
    if (chains[chain].is_left_out) continue;
    chains[chain].part = run.begin_branch(session_, *chains[chain].cache, position_ + chains[chain].depth, stop_);
    run.set_branches(chains[chain].part, --branches);
    for (std::size_t i = 0; i < tree_.drafts().size(); ++i) {
      if (tree_.drafts()[i].chain == chain) run.add(row_of(i));
    }
    add_also(chains[chain].part, 0, chain);
  }
  return all;
}

void Speculation::look_at(const Run& run) noexcept {
  for (std::size_t chain = 1; chain < tree_.chains().size(); ++chain) {
    const DraftTree::Chain& one = tree_.chains()[chain];
    if (!one.is_left_out && !run.is_computed(one.part)) tree_.leave_out(chain);
  }
}

void Speculation::step_ends(std::size_t rows) noexcept {
  lengths_.observe_step(rows, seconds_since(step_begins_));
  told_drafted_ = tree_.size();
  depth_ = tree_.depth();
  if (drafter_->wants_guesses() && tree_.chains().size() == 1) guess();
}

// Fills guesses_ with the model's likeliest token after each draft. Does not allocate, because guesses_ already has the memory.
void Speculation::guess() noexcept {
  guesses_.clear();
  for (std::size_t i = 0; i < tree_.drafts().size(); ++i) {
    if (on_backend_) {
      guesses_.push_back(draws_[i].piece.token);
      continue;
    }
    const std::span<const float> row = logits_behind(i);
    guesses_.push_back(static_cast<Token>(std::ranges::max_element(row) - row.begin()));
  }
}

bool Speculation::follow(Token token) noexcept {
  if (const std::size_t next = tree_.child(current_, token); next != DraftTree::kNone) {
    const std::size_t chain = tree_.drafts()[next].chain;
    // The drawn token is in a branch, so the branch's cache replaces the session's cache.
    if (std::optional<KvCache>& cache = tree_.chains()[chain].cache; cache) {
      follow_branch(session_, *std::move(cache));
      cache.reset();
    }
    current_ = next;
    tree_.follow(next);
    told_accepted_ = ++accepted_;
    return is_ahead_ = true;
  }
  if (told_drafted_ > 0) lengths_.observe_accepted(depth_, accepted_);
  drop();
  return false;
}

void Speculation::draw(Draw& into) noexcept {
  if (on_backend_) {
    into.status = {};
    into.piece = {.token = draws_[current_].piece.token};
    return;
  }
  draw_next(into, session_, logits_behind(current_));
}

void Speculation::drop() noexcept {
  tree_.clear();
  current_ = DraftTree::kNone;
  accepted_ = 0;
  is_ahead_ = false;
}

}  // namespace tessera::detail
