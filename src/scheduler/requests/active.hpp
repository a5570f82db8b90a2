// One sample of a request (one of the answers to its prompt), from Scheduler::submit() to its end.
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
#include "scheduler/requests/request_state.hpp"

namespace tessera::detail {

// The place of a sample in the scheduler. A sample can be held back while it waits without pages, too: its standing then stays fresh,
// suspended or given_up.
enum class Standing : std::uint8_t {
  fresh,      // waits to be admitted for the first time
  running,    // has its pages, and is in the steps
  held_back,  // has its pages, and is in no step: it is paused, or nobody reads it
  starved,    // has its pages, and waits for more
  suspended,  // waits: its pages are in the file
  given_up,   // waits: its pages are to be computed again
};

struct Active {
  // --- Read by every step.
  std::shared_ptr<RequestHandle::State> request;
  std::uint32_t sample = 0;
  std::uint32_t forks = 0;       // samples to fork from this one when all but the prompt's last token is computed
  PlannedRequest planned;
  Tenants::Tenant* tenant = nullptr;
  std::optional<Session> session;
  std::optional<Sampler> sampler;
  std::unique_ptr<Decoding> decoding;
  std::unique_ptr<BeamSearch::State> search;  // requests for beams: set when all but the prompt's last token is computed
  std::size_t drafted = 0, accepted = 0;  // drafts of `decoding` that Delivery::count_drafts() has counted
  double last_token = 0.0;       // the time of the last token
  bool was_scheduled = false;    // its first row was computed
  Standing standing = Standing::fresh;
  std::uint64_t removed_before = 0;  // tokens that the session had removed before the request
  std::uint64_t passed_bytes = 0;    // bytes of pages of sliding windows that a drop takes even if no page is shared
  std::uint64_t counted_at = kNotCounted;  // `planned.dropped` when the copies for the next drop were last counted
  static constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
  bool was_recomputed = false;   // the pages were given up once, so the tenant has paid for the prompt already

  // --- The rest.
  bool has_deadline = false;
  std::uint64_t lost_tokens = 0;  // tokens whose pages the sample gave up, until it is admitted again
  // Rows of the session that came with the request have voted: they have said which tokens they attend to (TokenChoice). Computing the
  // tokens again would not repeat these votes.
  bool has_earlier_votes = false;
  std::shared_ptr<const PrefixProbe> probe;  // asks the prefix index; requests that may share pages have the same probe
  Request wanted;                // the request; its session and sampler move to the members above on admission

  [[nodiscard]] std::uint64_t order() const noexcept { return planned.order; }
  [[nodiscard]] bool was_preempted() const noexcept { return standing == Standing::suspended || standing == Standing::given_up; }
  // Returns whether several sequences follow the prompt, each of which computes the prompt's last token itself.
  [[nodiscard]] bool branches() const noexcept { return forks > 0 || wanted.beams; }
};
using ActivePtr = std::unique_ptr<Active>;

}  // namespace tessera::detail
