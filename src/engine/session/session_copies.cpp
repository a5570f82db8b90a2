// Copies a session: fork() shares the pages, clone() copies them, and convert() stores keys and values in another KV type.
#include <algorithm>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/fp_state.hpp"
#include "engine/load/kv_setup.hpp"
#include "engine/session/token_budget.hpp"
#include "engine/states.hpp"

namespace tessera {

using detail::guard;

namespace {

// Limit of rows in a buffer of logits that a copy of a session shares. Of a buffer with more rows, only the last row is copied.
constexpr std::size_t kSharedRows = 4;

// Returns a copy of the session with the cache `kv`.
Result<std::unique_ptr<Session::State>> copy_state(const Session::State& s, KvCache kv) {
  auto copy = std::make_unique<Session::State>(s.engine, s.shared, std::move(kv));
  copy->tokens.reserve(s.tokens.capacity());
  copy->record() = s.record();
  if (s.knows_logits()) {
    if (s.logits_rows <= kSharedRows) {
      copy->logits = s.logits.share();
      copy->logits_rows = s.logits_rows;
    } else {
      TESSERA_TRY_STATUS(copy->logits.ensure(*s.shared->options.memory, 1, s.vocab()));
      std::ranges::copy(s.last_logits(), copy->logits.values().begin());
      copy->logits_rows = 1;
    }
    copy->has_last = true;
  }
  copy->kv_options = s.kv_options;
  copy->stream = s.stream;
  copy->embedding_of = s.embedding_of;
  return copy;
}

}  // namespace

Result<Session> Session::fork() const noexcept {
  return guard([&]() -> Result<Session> {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::Reading use(*state_->use);
    TESSERA_TRY_STATUS(use.status());
    TESSERA_TRY(KvCache kv, state_->kv.fork());
    TESSERA_TRY(auto state, copy_state(*state_, std::move(kv)));
    state->shares_last_page = state_->shares_last_page = true;
    return Session(std::move(state));
  });
}

Result<Session> Session::clone() const noexcept {
  return guard([&]() -> Result<Session> {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::Reading use(*state_->use);
    TESSERA_TRY_STATUS(use.status());
    TESSERA_TRY(KvCache kv, state_->kv.clone());
    TESSERA_TRY(auto state, copy_state(*state_, std::move(kv)));
    return Session(std::move(state));
  });
}

Result<Session> Session::convert(const KvOptions& to) const noexcept {
  return guard([&]() -> Result<Session> {
    if (state_ == nullptr) return detail::empty_handle("Session");
    const detail::Reading use(*state_->use);
    TESSERA_TRY_STATUS(use.status());
    const State& s = *state_;
    const detail::FpState fp_state;
    const KvOptions options = detail::resolve(to, s.kv_options);
    TESSERA_TRY_STATUS(detail::check(to, options));
    TESSERA_TRY_STATUS(detail::check_token_budget(options.budget, s.kv.capacity(), s.stream, *s.shared));
    TESSERA_TRY(KvCache kv, detail::make_kv_cache(*s.shared, options, s.kv.capacity(), s.stream));
    TESSERA_TRY_STATUS(detail::check_held(options.budget, kv.layout(), s.kv.first()));
    TESSERA_TRY_STATUS(s.kv.convert_to(kv));
    TESSERA_TRY(auto state, copy_state(s, std::move(kv)));
    state->kv_options = options;
    if (!has_same_types(state->kv.layout(), s.kv.layout())) state->history.give_up();
    return Session(std::move(state));
  });
}

}  // namespace tessera
