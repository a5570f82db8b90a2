#include "scheduler/setup.hpp"

#include <algorithm>
#include <utility>

#include "engine/load/kv_setup.hpp"

namespace tessera::detail {
namespace {

PageCost page_cost_of(const Engine& engine, const KvOptions& own) {
  const KvOptions options = resolve({}, own);
  const auto layout = kv_layout(engine.spec(), options);
  if (!layout || options.kind != KvKind::paged) return {};
  PageCost cost{.page_tokens = layout->page_tokens, .groups = {}};
  for (const KvGroup& group : layout->groups) {
    // A sequence holds a fixed number of states: the live one, the next one during a step, and the checkpoints. They are counted as
    // the pages of a short window.
    const std::uint64_t states = (std::uint64_t{options.checkpoints} + 2) * layout->page_tokens;
    cost.groups.push_back({.page_bytes = group.page_bytes, .window = group.is_recurrent() ? states : group.window});
  }
  return cost;
}

}  // namespace

Setup::Setup(Engine of, std::shared_ptr<const Engine::State> internals, SchedulerOptions how)
    : engine(std::move(of)),
      shared(std::move(internals)),
      inside(view_of(*shared)),
      options(std::move(how)),
      page_cost(page_cost_of(engine, inside.options.kv)) {}

std::uint64_t Setup::free_bytes() const noexcept {
  return is_bounded() ? engine.kv_room().bytes : UINT64_MAX / 4;
}

std::uint64_t Setup::context_of(const Request& request) const noexcept {
  if (request.session) return request.session->context();
  return request.session_options.context != 0 ? request.session_options.context : engine.plan().context;
}

KvOptions Setup::kv_options_of(const Request& request) const {
  return request.session ? view_of(state_of(*request.session)).kv_options : resolve(request.session_options.kv, inside.options.kv);
}

StreamOptions Setup::stream_of(const Request& request) const noexcept {
  return request.session ? view_of(state_of(*request.session)).stream : request.session_options.stream;
}

}  // namespace tessera::detail
