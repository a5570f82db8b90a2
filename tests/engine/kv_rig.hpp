// An engine of a model with a context of 1024 tokens, and prompts for its sessions. Pages are of 32 tokens.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "engine/kv_twins.hpp"

namespace tessera::test {

struct KvRig {
  // Without a budget of its own it keeps everything: nothing is evicted.
  explicit KvRig(EngineOptions options = {}) : engine(load_golden("llama-long", with_budget(std::move(options)))) {
    tokens = make_tokens(1, 400, engine.spec().vocab_size);
  }
  static EngineOptions with_budget(EngineOptions options) {
    if (options.kv_budget == 0) options.kv_budget = std::uint64_t{64} << 20;
    return options;
  }

  [[nodiscard]] std::span<const Token> prompt(std::size_t n) const { return std::span(tokens).first(n); }
  [[nodiscard]] std::span<const Token> part(std::size_t first, std::size_t n) const {
    return std::span(tokens).subspan(first, n);
  }
  [[nodiscard]] Session session(KvOptions kv = {}) const { return must(engine.session({.kv = std::move(kv)})); }
  // One that has these tokens; dropped at once, it leaves its full pages to be found.
  Session given(std::span<const Token> sequence, KvOptions kv = {}) const {
    Session made = session(std::move(kv));
    must(made.append(sequence));
    return made;
  }
  [[nodiscard]] KvFigures figures() const { return engine.kv_figures(); }
  [[nodiscard]] std::uint64_t page_bytes() const { return session().kv().layout().page_bytes(); }

  Engine engine;
  std::vector<Token> tokens;
};

// The logits after all its tokens are those of a session that was alone.
inline bool as_if_alone(const Session& session) {
  return same_bits(session.logits(), lone_logits(session.engine(), types_of(session), session.tokens()));
}

}  // namespace tessera::test
