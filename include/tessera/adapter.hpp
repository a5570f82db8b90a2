// An Adapter is a small change of a model's weights (LoRA): a file of a few megabytes that teaches a model a style, a task or a language.
// One engine holds many adapters. Each session chooses its own, and sequences with different adapters are computed in the same step.
//
//   auto pirate = engine.adapter("pirate.gguf");
//   auto session = engine.session({.adapters = {{*pirate}}});
//   auto logits = session->append(*engine.tokenizer().encode("Good morning"));
//
// The bits of a sequence depend only on its own adapters. A session without adapters gets the same bits as in an engine that has never
// loaded an adapter.
//
// An Adapter is a handle: copies are cheap and share the weights, which are freed with the last copy. A session holds copies of the
// adapters that it uses, so their weights live at least as long as the session. Threads: several threads may call every function at once.
// An empty Adapter (docs/headers.md) has no name and no bytes, and its engine() is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include <tessera/core/result.hpp>
#include <tessera/core/token.hpp>
#include <tessera/extend/core/hash.hpp>

namespace tessera {

class Engine;
class ModelSource;

// Options of Engine::adapter().
struct AdapterOptions {
  // The model from which the engine was loaded. Needed only if the engine was loaded from a ModelSource instead of a path, and the adapter
  // is a DoRA adapter: its change depends on the model's weights, which must then be read again. nullptr: the model is opened again by the
  // engine's path.
  const ModelSource* base = nullptr;
  std::stop_token stop = {};
};

class Adapter {
 public:
  Adapter() noexcept;  // an empty handle
  Adapter(const Adapter&) noexcept;
  Adapter& operator=(const Adapter&) noexcept;
  Adapter(Adapter&&) noexcept;
  Adapter& operator=(Adapter&&) noexcept;
  ~Adapter();

  // Return the adapter's name and the name of the model for which it was made, as its file says. Both names may be empty.
  [[nodiscard]] std::string_view name() const noexcept;
  [[nodiscard]] std::string_view base_name() const noexcept;
  // Returns a hash of the adapter's numbers. Adapters with equal hashes change a model in the same way.
  [[nodiscard]] Hash128 content() const noexcept;
  // Returns the memory that the adapter takes, in bytes.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  // Return the largest rank of the adapter's matrices, and the number of the model's matrices that the adapter changes.
  [[nodiscard]] std::uint32_t rank() const noexcept;
  [[nodiscard]] std::size_t matrices() const noexcept;
  // Returns the adapter's invocation (aLoRA, "activated LoRA"): a sequence of tokens. The adapter changes only tokens from the beginning of
  // the invocation on. Empty: the adapter has no invocation, and changes all tokens.
  [[nodiscard]] std::span<const Token> invocation() const noexcept;

  // Returns the engine that loaded the adapter. Only sessions of this engine can use it.
  [[nodiscard]] Engine engine() const noexcept;

  struct State;  // internal
  explicit Adapter(std::shared_ptr<const State> state) noexcept;
  [[nodiscard]] const std::shared_ptr<const State>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// An adapter and how a session uses it.
struct AdapterUse {
  Adapter adapter = {};
  float scale = 1.0f;  // factor of the adapter's change; 0: the adapter is not used
  // Position of the first token that the adapter changes. nullopt: 0, if the adapter has no invocation. If it has one, nullopt means the
  // position at which the invocation begins in the tokens that a call appends (Session::append(), Request::prompt); if these tokens contain
  // the invocation several times, the last place counts. Until a call's tokens contain it, the adapter changes nothing.
  std::optional<std::uint64_t> from = {};
};

}  // namespace tessera
