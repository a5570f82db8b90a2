#include "engine/run/head_guesses.hpp"

#include <tessera/extend/kv/records.hpp>

#include "core/error.hpp"
#include "engine/states.hpp"
#include "model/draft_heads.hpp"
#include "model/step/step_executor.hpp"

namespace tessera::detail {
namespace {

bool is_of_whole_model(const Session::State& session) noexcept {
  return session.first_layer == 0 && session.last_layer == session.shared->model.spec.n_layers();
}

}  // namespace

std::span<const float> hidden_behind(const Session::State& session) noexcept {
  const ModelSpec& spec = session.shared->model.spec;
  if (!spec.has_draft_heads() || session.kv.length() == 0 || session.kv.suspended() || !is_of_whole_model(session)) return {};
  const KvView view = session.kv.view();
  if (keeps_hidden(spec, HiddenKept::as_state)) {
    return {reinterpret_cast<const float*>(view.kept_state(hidden_layer(spec), session.kv.length())), spec.d_model};
  }
  const std::uint32_t layer = hidden_layer(spec);
  const KvLayerShape& shape = view.layout->layer(layer).shape;
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    kv::decode(view, {.layer = layer, .part = kv::KeyOrValue::key, .head = head}, session.kv.length() - 1, session.hidden.data() + head * shape.key_dim);
  }
  return session.hidden;
}

Status reserve_guesses(Session::State& session, std::size_t most) {
  const DraftHeads* heads = draft_heads_of(session.shared->model.spec);
  if (heads == nullptr) return make_error(ErrorCode::invalid_state, "the engine has no draft heads");
  const std::uint64_t length = session.kv.length();
  if (length == 0 || session.pending().size() != 1) {
    return make_error(ErrorCode::invalid_state, "{} tokens are pending behind {}; the {} needs one behind some", session.pending().size(),
                      length, heads->name);
  }
  if (!is_of_whole_model(session)) {
    return make_error(ErrorCode::invalid_state, "this session holds layers {} to {} alone; its {} knows nothing", session.first_layer,
                      session.last_layer, heads->name);
  }
  return session.kv.reserve(length + most);
}

Status guess(Session::State& session, std::size_t ahead, Token token, std::span<float> hidden, std::span<float> logits,
             const std::stop_token& stop) {
  const Engine::State& engine = *session.shared;
  Recycled<RunLists>::Lease lists(engine.run_lists);
  StepDescription& step = lists->description;
  TESSERA_TRY_STATUS(guard([&]() -> Status {
    describe_pages(session.kv, *engine.kv_pools, step.pages);
    step.rows.push_back({.token = token, .embedding = 0, .position = session.kv.length() + ahead});
    step.guess = ahead;
    return {};
  }));
  const Turn turn(engine.queue, stop);
  if (!turn.mine()) return make_error(ErrorCode::cancelled, "stopped while waiting; the session is as it was");
  take_copies(*engine.kv_pools, step.copies);
  return engine.steps->guess(step, hidden, logits, stop);
}

}  // namespace tessera::detail
