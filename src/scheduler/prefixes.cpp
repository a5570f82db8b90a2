// What prefixes save those who wait: whom a step may admit, what the prefix index has for each, and whose pages it waits for.
#include <algorithm>

#include "core/error.hpp"
#include "engine/load/identity.hpp"
#include "engine/load/kv_setup.hpp"
#include "scheduler/scheduler_state.hpp"

namespace tessera {

using detail::Active;
using detail::guard;

namespace {

constexpr std::size_t kLookUpsInTurn = 4;  // a step, of those that are not next: so that ranks learn of what has changed
constexpr std::size_t kManyProbes = 256;

// A request's tokens, as far as they are known. Some are its session's, the rest of the prompt is not yet.
struct Sequence {
  std::span<const Token> session, prompt;
  std::uint64_t computed = 0;
  bool is_edited = false;

  [[nodiscard]] std::size_t size() const noexcept { return session.size() + prompt.size(); }
  // Tokens from `begin` on, not beyond `end`, that lie together.
  [[nodiscard]] std::span<const Token> stretch(std::size_t begin, std::size_t end) const noexcept {
    if (begin < session.size()) return session.subspan(begin, std::min(end, session.size()) - begin);
    return prompt.subspan(begin - session.size(), end - begin);
  }
};

Sequence sequence_of(const Session::State& session, std::span<const Token> prompt) {
  return {.session = session.tokens, .prompt = prompt, .computed = session.kv.length(), .is_edited = session.kv.edited()};
}

// Whether both have the same tokens in [begin, end).
bool are_alike(const Sequence& a, const Sequence& b, std::size_t begin, std::size_t end) noexcept {
  while (begin < end) {
    const auto one = a.stretch(begin, end), other = b.stretch(begin, end);
    const std::size_t n = std::min(one.size(), other.size());
    if (!std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(n), other.begin())) return false;
    begin += n;
  }
  return true;
}

}  // namespace

struct Scheduler::State::Prefixes {
  static Sequence sequence(const Active& active) {
    if (active.decoding) return sequence_of(*active.session->state_, active.decoding->rest_of_prompt());
    if (active.session) return sequence_of(*active.session->state_, active.wanted.prompt);
    if (active.wanted.session) return sequence_of(*active.wanted.session->state_, active.wanted.prompt);
    return {.session = {}, .prompt = active.wanted.prompt};
  }

  // Whether the `waiting` one lacks a page that this one, of which `there` tokens are computed or known, will have
  // computed by and by.
  static bool is_awaited(const Sequence& one, std::uint64_t there, const Sequence& waiting, std::uint64_t known,
                         std::uint64_t page) {
    const std::uint64_t end = known + page;  // of the next page that it lacks
    if (one.is_edited || there >= end || one.size() < end) return false;
    return are_alike(one, waiting, known, end) && are_alike(one, waiting, 0, known);
  }
};

std::shared_ptr<const detail::PrefixProbe> Scheduler::State::probe_of(const Active& active) {
  KvOptions kv = detail::resolve(active.wanted.session_options.kv, shared->options.kv);
  std::uint32_t stream = active.wanted.session_options.stream.window;
  if (active.wanted.session) {
    kv = active.wanted.session->state_->kv_options;
    stream = active.wanted.session->state_->stream.window;
  }
  if (kv.kind != KvKind::paged || kv.prefix != PrefixReuse::on || stream != 0) return nullptr;
  if (probes.size() >= kManyProbes) std::erase_if(probes, [](const auto& one) { return one.second.use_count() == 1; });
  auto& probe = probes[{kv.dtype, kv.wide, kv.page_tokens, kv.salt}];
  if (probe == nullptr) {
    const auto layout = detail::kv_layout(shared->model.spec, kv);
    if (!layout) return nullptr;
    probe = std::make_shared<detail::PrefixProbe>(*shared->kv_pools, *layout,
                                                  detail::prefix_identity(shared->identity, kv));
  }
  return probe;
}

// What the index has for the i-th of those who wait. Where there is no memory to look, nothing.
void Scheduler::State::look_up(std::size_t i) noexcept {
  const Active& active = *waiting.requests()[i];
  std::uint64_t saved = 0, in_use = 0;
  (void)guard([&]() -> Status {
    if (active.probe == nullptr || active.planned.suspended) return {};
    const Sequence sequence = Prefixes::sequence(active);
    const std::uint64_t page = active.probe->page_tokens();
    if (sequence.is_edited || sequence.computed % page != 0 || sequence.size() <= sequence.computed + page) return {};
    std::span<const Token> tokens = sequence.session.empty() ? sequence.prompt : sequence.session;
    if (!sequence.session.empty() && !sequence.prompt.empty()) {
      looked_for.assign(sequence.session.begin(), sequence.session.end());
      looked_for.insert(looked_for.end(), sequence.prompt.begin(), sequence.prompt.end());
      tokens = looked_for;
    }
    // The last token is computed: its logits are wanted.
    const detail::KnownPrefix known = (*active.probe)(tokens.first(tokens.size() - 1), sequence.computed / page);
    saved = known.tokens - std::min(known.tokens, sequence.computed);
    in_use = known.bytes_in_use;
    return {};
  });
  waiting.set_known(i, saved, in_use);
}

// The order of the request that computes the next page that this one, planned so, lacks; kNobody: none does. It is one that
// the policy serves before it, so that nobody waits for somebody who waits for rows.
std::uint64_t Scheduler::State::awaited_by(const Active& active, const PlannedRequest& planned, double time) const {
  constexpr std::uint64_t kNobody = PlannedRequest::kNobody;
  if (active.probe == nullptr || planned.suspended || options.limits.batching != Batching::continuous) return kNobody;
  const Sequence own = Prefixes::sequence(active);
  const std::uint64_t known = own.computed + planned.saved, page = active.probe->page_tokens();
  if (own.is_edited || known % page != 0 || own.size() <= known + page) return kNobody;
  const double rank = options.policy->rank(planned, time);
  for (std::size_t i = 0; i < running.size(); ++i) {
    if (running[i]->probe != active.probe || running_plans[i].needed() <= 1) continue;
    if (!Prefixes::is_awaited(Prefixes::sequence(*running[i]), running_plans[i].computed, own, known, page)) continue;
    if (options.policy->rank(running_plans[i], time) <= rank) return running_plans[i].order;
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Active& other = *waiting.requests()[candidates[i]];
    if (other.probe != active.probe || candidate_plans[i].suspended) continue;
    const Sequence its = Prefixes::sequence(other);
    if (Prefixes::is_awaited(its, its.computed + candidate_plans[i].saved, own, known, page)) return candidate_plans[i].order;
  }
  return kNobody;
}

// Those whom the step may admit, in order. Of those that its rows and pages may reach the index is asked again: the first ones,
// and short ones behind them.
void Scheduler::State::find_candidates(std::size_t places, std::uint64_t free, double time) {
  const std::span<const PlannedRequest> plans = waiting.plans();
  candidates.clear();
  candidate_plans.clear();
  planner.first(plans, *options.policy, time, places, in_order);
  for (std::size_t n = std::min(kLookUpsInTurn, plans.size()); n > 0; --n) look_up(next_look_up++ % plans.size());
  std::uint64_t rows = 0, bytes = 0;
  for (const std::size_t i : in_order) {
    const bool is_short = plans[i].needed() - plans[i].saved <= options.limits.rows;
    const bool is_in_reach = (rows < options.limits.rows || is_short) && bytes <= free;
    if (is_in_reach) look_up(i);
    PlannedRequest planned = plans[i];
    if (is_in_reach) planned.awaits = awaited_by(*waiting.requests()[i], planned, time);
    const std::uint64_t all = page_cost.bytes(planned.prompt + planned.drawn - planned.dropped);
    bytes += all - std::min(all, planned.shared);
    if (planned.awaits == PlannedRequest::kNobody) rows += planned.needed() - planned.saved;
    candidates.push_back(i);
    candidate_plans.push_back(planned);
  }
}

}  // namespace tessera
