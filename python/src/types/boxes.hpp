// The library's objects in boxes, which Python's classes hold. A box keeps alive all objects to which its objects
// refer; members are destroyed in reverse order.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tessera/tessera.hpp>

#include "callbacks.hpp"

namespace tessera::python {

using Tokens = std::vector<Token>;
using TextOrTokens = std::variant<std::string, Tokens>;
using FloatArray = nb::ndarray<nb::numpy, float>;

struct EngineBox {
  Engine engine;
  std::mutex mutex;  // guards the following members
  std::optional<GrammarVocabulary> vocabulary;
  std::optional<ChatTemplate> chat_template;

  // Returns the grammar's view of the engine's vocabulary, made once. Called without the GIL.
  Result<GrammarVocabulary> grammar_vocabulary();
  // Returns the model's chat template, or the plain one. Called without the GIL.
  Result<ChatTemplate> chat();
};
using EngineHandle = Handle<EngineBox>;

struct SessionBox {
  std::shared_ptr<EngineBox> engine;
  Session session;
  Use use;
  std::shared_ptr<Outputs> latest = {};  // the outputs that hold the logits after the last token, if append() made them
  std::size_t latest_row = 0;
};
using SessionHandle = Handle<SessionBox>;

struct GrammarBox {
  Grammar grammar;
  std::string source;  // for repr()
  std::mutex mutex = {};
  std::vector<std::pair<Hash128, CompiledGrammar>> compiled =
      {};  // by the tokenizer's fingerprint; the newest last, at most 8

  // Returns the grammar, compiled for the engine's vocabulary. Called without the GIL.
  Result<CompiledGrammar> compiled_for(EngineBox& engine);
};
using GrammarHandle = Handle<GrammarBox>;

// The arguments of a StageMaker. A stage with a grammar can be made only when the engine is known.
struct Making {
  EngineBox* engine = nullptr;  // nullptr: the stages that need an engine are left out
  FailurePtr failure;
};
using StageMaker = std::function<Status(sampling::Chain& chain, const Making& making)>;

struct ChainSpec {
  std::vector<StageMaker> stages;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
  bool needs_engine = false;  // true: a stage has a grammar
  std::string words;          // for repr()

  // Builds a sampler in its first state. Called without the GIL.
  [[nodiscard]] Result<Sampler> build(EngineBox* engine, const FailurePtr& failure) const;
};

struct SamplerBox {
  ChainSpec spec;
  FailurePtr failure = std::make_shared<Failure>();
  Sampler sampler;  // empty until the engine is known, if the spec needs one
  bool built = false;
  Use use;

  // Builds the sampler unless it is built already. Called without the GIL, by the caller that uses the box.
  Status prepare(EngineBox* engine);
};
using SamplerHandle = Handle<SamplerBox>;

// Returns a numpy array of `rows` rows that views `values`, without a copy. The values live as long as `owner`.
template <class T>
nb::object array_of(std::span<const T> values, std::initializer_list<std::size_t> shape,
                    std::shared_ptr<const void> owner) {
  auto* kept = new std::shared_ptr<const void>(std::move(owner));
  const nb::capsule capsule(kept, [](void* last) noexcept { delete static_cast<std::shared_ptr<const void>*>(last); });
  // Python may write to the memory: the array owns it, and the library no longer reads it.
  return nb::cast(nb::ndarray<nb::numpy, T>(const_cast<T*>(values.data()), shape, capsule), nb::rv_policy::reference);
}
// Returns a numpy array that owns a copy of `values`.
template <class T>
nb::object array_copy(std::span<const T> values) {
  auto copy = std::make_shared<std::vector<T>>(values.begin(), values.end());
  const std::span<const T> own(*copy);
  return array_of<T>(own, {own.size()}, copy);
}

// Returns the tokens of a prompt. A text is encoded, with the model's BOS if the text begins a sequence. Called without
// the GIL.
Result<Tokens> tokens_of(const TextOrTokens& prompt, const Tokenizer& tokenizer, bool begins, bool special);

nb::object python_of(const Json& json);
Json json_of(nb::handle object);  // throws InvalidArgument if the object has no JSON form

// Returns the options of a generation; several functions share the arguments.
GenerateOptions generate_options(std::optional<std::size_t> max_tokens,
                                 const std::optional<std::variant<std::string, std::vector<std::string>>>& stop,
                                 const std::optional<Tokens>& stop_tokens, bool ignore_eos, std::uint32_t logprobs,
                                 bool show_control);

// A piece of text as Python sees it.
struct PyPiece {
  std::uint32_t sample = 0;
  Piece piece;
};
nb::dict figures_dict(const Figures& figures);
nb::dict figures_dict(const RequestFigures& figures);
nb::dict figures_dict(const SchedulerFigures& figures);
nb::dict kv_figures_dict(const Engine& engine);

// Returns `fn`. For None returns the library's bar for terminals and notebooks (tessera._progress), for False None.
nb::object progress_of(const nb::object& fn, const std::string& title);

struct DrafterBox {
  std::shared_ptr<const Drafter> drafter;
  std::string words;
  std::uint32_t max_drafts = 8, branches = 1;
};
using DrafterHandle = Handle<DrafterBox>;
SpeculateOptions speculation(const std::optional<DrafterHandle>& drafter);

void bind_values(nb::module_& m);
void bind_tokenizer(nb::module_& m);
void bind_adapter(nb::module_& m);
void bind_engine(nb::module_& m);
void bind_compile(nb::module_& m);  // Engine.compile()
void bind_session(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_grammar(nb::module_& m);
void bind_sampler(nb::module_& m);
void bind_scheduler(nb::module_& m);
void bind_conversation(nb::module_& m);
void stop_drivers();  // called at the interpreter's end

}  // namespace tessera::python
