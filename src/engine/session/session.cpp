#include <tessera/session.hpp>

#include "core/empty.hpp"
#include "core/error.hpp"
#include "core/token_error.hpp"
#include "engine/run/append.hpp"
#include "engine/session/edit.hpp"
#include "engine/session/make_session.hpp"
#include "engine/states.hpp"

namespace tessera {

using detail::Changing;
using detail::empty_value;
using detail::guard;
using detail::make_error;

namespace {

// Calls fn() while the session is locked against all other calls. Returns the result of fn(), or the error that the session is in use.
template <class Fn>
auto change(const std::unique_ptr<Session::State>& state, Fn&& fn) noexcept -> decltype(fn()) {
  return guard([&]() -> decltype(fn()) {
    if (state == nullptr) return detail::empty_handle("Session");
    const Changing use(*state->use);
    TESSERA_TRY_STATUS(use.status());
    return fn();
  });
}

}  // namespace

Session::Session(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Session::Session() noexcept = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Logits> Session::append(std::span<const Token> tokens, const AppendOptions& options) noexcept {
  return change(state_, [&] { return detail::append(*state_, tokens, options); });
}

Result<std::vector<float>> Session::score(std::span<const Token> tokens, const AppendOptions& options) noexcept {
  return change(state_, [&] { return detail::score(*state_, tokens, options); });
}

Status Session::add_pending(Token token) noexcept {
  return change(state_, [&]() -> Status {
    State& s = *state_;
    TESSERA_TRY_STATUS(detail::check_token(token, s.vocab()));
    if (s.tokens.size() > s.kv.capacity()) {
      return make_error(ErrorCode::cache_full,
                        "the context of {} tokens is full, and one more is pending already; truncate the session, or make "
                        "it with a larger context",
                        s.kv.capacity());
    }
    s.reserve_tokens(s.tokens.size() + 1);
    s.tokens.push_back(token);
    return {};
  });
}

Status Session::use_adapters(std::span<const AdapterUse> adapters) noexcept {
  return change(state_, [&]() -> Status {
    TESSERA_TRY(detail::SequenceAdapters made, detail::make_adapters(adapters, *state_->shared));
    return detail::use_adapters(*state_, std::move(made));
  });
}
Result<std::vector<AdapterUse>> Session::adapters() const noexcept {
  return guard([&]() -> Result<std::vector<AdapterUse>> {
    if (state_ == nullptr) return detail::empty_handle("Session");
    return state_->adapters.uses();
  });
}

Status Session::truncate(std::size_t position) noexcept {
  return change(state_, [&]() -> Status {
    detail::truncate(*state_, position);
    return {};
  });
}

Status Session::remove(std::size_t first, std::size_t last) noexcept {
  return change(state_, [&] { return detail::remove(*state_, first, last); });
}

Status Session::keep_window(std::size_t sinks, std::size_t window) noexcept {
  return change(state_, [&] { return detail::keep_window(*state_, sinks, window); });
}

Status Session::suspend() noexcept {
  return change(state_, [&] { return state_->kv.suspend(); });
}
Status Session::prefetch() noexcept {
  return change(state_, [&] { return state_->kv.prefetch(); });
}
Status Session::resume() noexcept {
  return change(state_, [&] { return state_->kv.resume(); });
}

const KvCache& Session::kv() const noexcept { return state_ == nullptr ? empty_value<KvCache>() : state_->kv; }
std::size_t Session::position() const noexcept { return kv().length(); }
bool Session::suspended() const noexcept { return kv().suspended(); }
bool Session::edited() const noexcept { return kv().edited(); }
std::size_t Session::context() const noexcept { return kv().capacity(); }
std::span<const Token> Session::tokens() const noexcept { return state_ == nullptr ? std::span<const Token>() : state_->tokens; }
std::span<const Hash128> Session::contents() const noexcept { return state_ == nullptr ? std::span<const Hash128>() : state_->contents; }
bool Session::has_pending() const noexcept { return state_ != nullptr && state_->has_pending(); }
std::uint64_t Session::next_position() const noexcept { return state_ == nullptr ? 0 : state_->stream_position(); }
std::span<const float> Session::logits() const noexcept {
  if (state_ == nullptr || !state_->knows_logits()) return {};
  return state_->last_logits();
}
std::size_t Session::reused() const noexcept { return state_ == nullptr ? 0 : state_->reused; }
const TokenBudget& Session::budget() const noexcept {
  return state_ == nullptr ? empty_value<TokenBudget>() : state_->kv_options.budget;
}
const Engine& Session::engine() const noexcept { return state_ == nullptr ? empty_value<Engine>() : state_->engine; }

}  // namespace tessera
