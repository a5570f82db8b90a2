// Active: one sample of a request (one of the answers to its prompt), from Scheduler::submit() to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/unstable/scheduler/plan_step.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "decoding/beam_search_state.hpp"
#include "decoding/decoding.hpp"
#include "engine/adapters/sequence_adapters.hpp"
#include "kv/prefix/prefix_probe.hpp"
#include "scheduler/requests/request_state.hpp"

namespace tessera::detail {

// Where a sample stands in the scheduler. Exception: if a sample without pages is held back, its standing is not held_back but stays fresh,
// suspended or given_up.
enum class Standing : std::uint8_t {
  fresh,      // was never admitted
  running,    // has its pages, and gets rows in the steps
  held_back,  // has its pages, but gets no rows, because it is paused or nobody reads it
  starved,    // has its pages, but waits for more pages
  suspended,  // was preempted: its pages are in the KV file
  given_up,   // was preempted: its pages were freed, and will be computed again
};

struct Active {
  // --- Members that every step reads, next to each other in memory.
  std::shared_ptr<RequestHandle::State> request;
  std::uint32_t sample = 0;
  std::uint32_t forks = 0;       // number of samples that will be forked from this one, once only the prompt's last token is left to compute
  PlannedRequest planned;
  Tenants::Tenant* tenant = nullptr;
  std::optional<Session> session;
  std::optional<Sampler> sampler;
  std::unique_ptr<Decoding> decoding;
  std::unique_ptr<BeamSearch::State> search;  // for beam searches: set once only the prompt's last token is left to compute
  std::size_t drafted = 0, accepted = 0;  // numbers of drafts of `decoding` that are already counted in the figures
  double last_token = 0.0;       // time at which the last token was drawn
  bool was_scheduled = false;    // true: at least one row was computed
  Standing standing = Standing::fresh;
  std::uint64_t removed_before = 0;  // number of tokens that edits of the session had removed before the request
  std::uint64_t passed_bytes = 0;    // bytes of pages that a drop needs because windows have passed them (PlannedRequest::drop_bytes)
  std::uint64_t counted_at = kNotCounted;  // value of planned.dropped when shared pages were last counted for the next drop
  static constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
  bool was_recomputed = false;   // true: the pages were given up before, so the tenant has already paid for the prompt

  // --- Members that few steps read.
  bool has_deadline = false;
  std::uint64_t lost_tokens = 0;  // number of tokens whose pages were given up; 0 after the sample is admitted again
  // true: the request came with a session in which rows have already voted for the tokens that a token budget keeps (TokenChoice). Then the
  // session's pages must not be given up and computed again: those rows would not vote again, and other tokens would be kept.
  bool has_earlier_votes = false;
  std::shared_ptr<const PrefixProbe> probe;  // looks prompts up in the prefix index; shared by requests that may share pages
  SequenceAdapters adapters;     // the request's adapters, for comparing prefixes
  Request wanted;                // the request as submitted; on admission its session and sampler move to the members above

  [[nodiscard]] std::uint64_t order() const noexcept { return planned.order; }
  [[nodiscard]] bool was_preempted() const noexcept { return standing == Standing::suspended || standing == Standing::given_up; }
  // Returns whether several sequences (samples or beams) continue from the prompt. Each of them computes the prompt's last token itself.
  [[nodiscard]] bool branches() const noexcept { return forks > 0 || wanted.beams; }
};
using ActivePtr = std::unique_ptr<Active>;

}  // namespace tessera::detail
