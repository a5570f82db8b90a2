#include "scheduler/setup.hpp"

#include <algorithm>
#include <utility>

#include "engine/load/kv_setup.hpp"

namespace tessera::detail {
namespace {

PageCost page_cost_of(const Engine& engine, const KvOptions& own) {
  const KvOptions options = resolve({}, own);
  if (options.kind != KvKind::paged) return {};
  return PageCost::of(engine.plan().kv_layout, options.checkpoints, options.prefix == PrefixReuse::on);
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
