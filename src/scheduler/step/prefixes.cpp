#include "scheduler/step/prefixes.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/views.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t kLookUpsInTurn = 4;  // number of waiting requests that each call of look_up_some() looks up
constexpr std::size_t kManyProbes = 256;

// The inputs of a request: those that its session already has, and the rest of the prompt.
struct Sequence {
  std::span<const Token> session, prompt;
  std::span<const Hash128> contents = {};  // contents of the session's embeddings; a prompt has none
  std::span<const KvAdapter> adapters = {};
  std::uint64_t computed = 0;
  bool is_edited = false;

  [[nodiscard]] std::size_t size() const noexcept { return session.size() + prompt.size(); }
  // Returns the tokens from `begin` on that are adjacent in memory, up to `end` at most.
  [[nodiscard]] std::span<const Token> stretch(std::size_t begin, std::size_t end) const noexcept {
    if (begin < session.size()) return session.subspan(begin, std::min(end, session.size()) - begin);
    return prompt.subspan(begin - session.size(), end - begin);
  }
};

Sequence sequence_of(const Active& active, const Session& session, std::span<const Token> prompt) {
  return {.session = session.tokens(),
          .prompt = prompt,
          .contents = view_of(state_of(session)).contents,
          .adapters = active.adapters.keys(),
          .computed = session.position(),
          .is_edited = session.edited()};
}

// Returns whether both sequences have the same embeddings and adapters before position `end`. Precondition: their tokens before `end` are
// the same.
bool have_same_contents(const Sequence& a, const Sequence& b, std::size_t end) noexcept {
  const auto active_before = [&](const Sequence& one) {
    return one.adapters.first(static_cast<std::size_t>(std::ranges::lower_bound(one.adapters, end, {}, &KvAdapter::from) - one.adapters.begin()));
  };
  if (!std::ranges::equal(active_before(a), active_before(b))) return false;
  const auto before = [&](const Sequence& one) {
    return KvInputs(one.session, one.contents).first(std::min(end, one.session.size())).contents;
  };
  return std::ranges::equal(before(a), before(b));
}

// Returns whether both sequences have the same tokens [begin, end).
bool are_alike(const Sequence& a, const Sequence& b, std::size_t begin, std::size_t end) noexcept {
  while (begin < end) {
    const auto one = a.stretch(begin, end), other = b.stretch(begin, end);
    const std::size_t n = std::min(one.size(), other.size());
    if (!std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(n), other.begin())) return false;
    begin += n;
  }
  return true;
}

Sequence sequence_of(const Active& active) {
  if (active.decoding) return sequence_of(active, *active.session, active.decoding->rest_of_prompt());
  if (active.session) return sequence_of(active, *active.session, active.wanted.prompt);
  if (active.wanted.session) return sequence_of(active, *active.wanted.session, active.wanted.prompt);
  return {.session = {}, .prompt = active.wanted.prompt, .adapters = active.adapters.keys()};
}

// Returns whether the request `one` will compute the next page that the request `waiting` needs, so that `waiting` can wait for this page
// instead of computing it too. `there`: number of first tokens of `one` that are computed or in the prefix index. `known`: the same number
// for `waiting`. `page`: tokens of a page.
bool is_awaited(const Sequence& one, std::uint64_t there, const Sequence& waiting, std::uint64_t known, std::uint64_t page) {
  const std::uint64_t end = known + page;  // end of that next page
  if (one.is_edited || there >= end || one.size() < end) return false;
  return are_alike(one, waiting, known, end) && are_alike(one, waiting, 0, known) && have_same_contents(one, waiting, end);
}

}  // namespace

std::shared_ptr<const PrefixProbe> Prefixes::probe_of(const Active& active) {
  const KvOptions kv = setup_.kv_options_of(active.wanted);
  if (kv.kind != KvKind::paged || kv.prefix != PrefixReuse::on || setup_.stream_of(active.wanted).window != 0) return nullptr;
  if (probes_.size() >= kManyProbes) std::erase_if(probes_, [](const auto& one) { return one.second.use_count() == 1; });
  auto& probe = probes_[{kv.dtype, kv.wide, kv.page_tokens, kv.salt}];
  if (probe == nullptr) {
    probe = make_prefix_probe(*setup_.shared, kv);
  }
  return probe;
}

void Prefixes::look_up(std::size_t i) noexcept {
  const Active& active = *requests_.waiting().requests()[i];
  std::uint64_t saved = 0, in_use = 0;
  (void)guard([&]() -> Status {
    if (active.probe == nullptr || active.planned.suspended) return {};
    const Sequence sequence = sequence_of(active);
    const std::uint64_t page = active.probe->page_tokens();
    if (sequence.is_edited || sequence.computed % page != 0 || sequence.size() <= sequence.computed + page) return {};
    std::span<const Token> tokens = sequence.session.empty() ? sequence.prompt : sequence.session;
    if (!sequence.session.empty() && !sequence.prompt.empty()) {
      looked_for_.assign(sequence.session.begin(), sequence.session.end());
      looked_for_.insert(looked_for_.end(), sequence.prompt.begin(), sequence.prompt.end());
      tokens = looked_for_;
    }
    // The last token is not looked up, because it must be computed in any case: its logits are wanted.
    const KnownPrefix known = (*active.probe)(KvInputs(tokens, sequence.contents, sequence.adapters).first(tokens.size() - 1), sequence.computed / page);
    saved = known.tokens - std::min(known.tokens, sequence.computed);
    in_use = known.bytes_in_use;
    return {};
  });
  requests_.waiting().set_known(i, saved, in_use);
}

void Prefixes::look_up_some() noexcept {
  const std::size_t all = requests_.waiting().size();
  for (std::size_t n = std::min(kLookUpsInTurn, all); n > 0; --n) look_up(next_look_up_++ % all);
}

std::uint64_t Prefixes::awaited_by(const Active& active, const PlannedRequest& planned, std::span<const PlannedRequest> running,
                                   const Candidates& candidates, double time) const {
  constexpr std::uint64_t kNobody = PlannedRequest::kNobody;
  if (active.probe == nullptr || planned.suspended || setup_.options.limits.batching != Batching::continuous) return kNobody;
  const Sequence own = sequence_of(active);
  const std::uint64_t known = own.computed + planned.saved, page = active.probe->page_tokens();
  if (own.is_edited || known % page != 0 || own.size() <= known + page) return kNobody;
  const double rank = setup_.options.policy->rank(planned, time);
  for (std::size_t i = 0; i < running.size(); ++i) {
    const Active& other = *requests_.running()[i];
    if (other.probe != active.probe || running[i].needed() <= 1) continue;
    if (!is_awaited(sequence_of(other), running[i].computed, own, known, page)) continue;
    if (setup_.options.policy->rank(running[i], time) <= rank) return running[i].order;
  }
  for (std::size_t i = 0; i < candidates.plans.size(); ++i) {
    const Active& other = *requests_.waiting().requests()[candidates.places[i]];
    const PlannedRequest& plan = candidates.plans[i];
    if (other.probe != active.probe || plan.suspended) continue;
    const Sequence its = sequence_of(other);
    if (is_awaited(its, its.computed + plan.saved, own, known, page)) return plan.order;
  }
  return kNobody;
}

}  // namespace tessera::detail
