// One sample of a request, while the scheduler has it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/unstable/scheduler/plan_step.hpp>
#include <tessera/unstable/scheduler/tenants.hpp>

#include "decoding/beam_search_state.hpp"
#include "decoding/decoding.hpp"
#include "kv/prefix/prefix_probe.hpp"
#include "scheduler/request_state.hpp"

namespace tessera::detail {

// Where a request stands. A request that the reader holds back before it runs, or when its pages were taken, stays what it is.
enum class Standing : std::uint8_t {
  fresh,      // waits to be admitted for the first time
  running,    // has its pages, and is in the steps
  held_back,  // has its pages, and is in no step: it is paused, or nobody reads it
  starved,    // has its pages, and waits for more
  suspended,  // waits: its pages are in the file
  given_up,   // waits: its pages are to be computed again
};

struct Active {
  // --- What a step looks at.
  std::shared_ptr<RequestHandle::State> request;
  std::uint32_t sample = 0;
  std::uint32_t forks = 0;       // samples that are to be forked from this one when all but the prompt's last token is done
  PlannedRequest planned;
  Tenants::Tenant* tenant = nullptr;
  std::optional<Session> session;
  std::optional<Sampler> sampler;
  std::unique_ptr<Decoding> decoding;
  std::unique_ptr<BeamSearch::State> search;  // once all but the prompt's last token is done, of a request for beams
  std::size_t drafted = 0, accepted = 0;  // of the decoding's, what has been counted
  double last_token = 0.0;       // when the last token came
  bool was_scheduled = false;    // its first row was computed
  Standing standing = Standing::fresh;
  std::uint64_t removed_before = 0;  // tokens that its session had removed before the request
  std::uint64_t passed_bytes = 0;    // of pages that a drop takes though nothing is shared: those that windows have passed
  std::uint64_t counted_at = kNotCounted;  // `planned.dropped` when the copies of its next drop were counted
  static constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
  bool was_recomputed = false;   // its tenant has paid for its prompt

  // --- The rest.
  bool has_deadline = false;
  std::uint64_t lost_tokens = 0;  // tokens whose pages it gave up, until it is admitted again
  bool has_earlier_votes = false;  // rows of the session that was given in have voted: a recompute would not ask those rows
  std::size_t plain_tokens = 0;  // leading tokens of its session that are known to be the vocabulary's
  std::shared_ptr<const PrefixProbe> probe;  // asks the prefix index; requests that share pages have the same one
  Request wanted;                // until it is admitted: what its session is made of

  [[nodiscard]] std::uint64_t order() const noexcept { return planned.order; }
  [[nodiscard]] bool was_preempted() const noexcept { return standing == Standing::suspended || standing == Standing::given_up; }
  // The prompt's last token is computed for each of several sequences by itself.
  [[nodiscard]] bool branches() const noexcept { return forks > 0 || wanted.beams; }
};
using ActivePtr = std::unique_ptr<Active>;

}  // namespace tessera::detail
