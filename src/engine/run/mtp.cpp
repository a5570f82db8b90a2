#include "engine/run/mtp.hpp"

#include <cstring>

#include "core/error.hpp"
#include "model/forward.hpp"

namespace tessera::detail {

Status check_mtp(const Session::State& session) {
  const ModelSpec& spec = session.shared->model.spec;
  if (!spec.has_mtp()) return make_error(ErrorCode::invalid_state, "the engine has no MTP head");
  if (session.first_layer == 0 && session.last_layer == spec.n_layers()) return {};
  return make_error(ErrorCode::invalid_state, "this session holds layers {} to {} alone; its MTP head knows nothing", session.first_layer,
                    session.last_layer);
}

Result<MtpGuesses> MtpGuesses::begin(Session::State& session, std::size_t most, std::span<float> hidden) {
  TESSERA_TRY_STATUS(check_mtp(session));
  const std::uint64_t length = session.kv.length();
  if (length == 0 || session.pending().size() != 1) {
    return make_error(ErrorCode::invalid_state, "{} tokens are pending behind {}; the MTP head needs one behind some", session.pending().size(),
                      length);
  }
  TESSERA_TRY_STATUS(session.kv.reserve(length + most));
  std::memcpy(hidden.data(), session.kv.view().kept_state(mtp_state_layer(session.shared->model.spec), length), hidden.size_bytes());
  return MtpGuesses(session, hidden);
}

Status MtpGuesses::next(Token token, std::span<float> logits, const std::stop_token& stop) {
  const Engine::State& engine = *session_->shared;
  const Turn turn(engine.queue, stop);
  if (!turn.mine()) return make_error(ErrorCode::cancelled, "stopped while waiting; the session is as it was");
  const MtpRow row{.kv = session_->kv.view(), .position = position_, .token = token, .hidden = hidden_.data()};
  TESSERA_TRY_STATUS(mtp_forward(engine.model, *engine.backend, row, logits, hidden_, stop));
  ++position_;
  return {};
}

}  // namespace tessera::detail
