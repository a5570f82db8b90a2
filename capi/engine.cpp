// tessera_engine: loading, planning, and properties of an engine.
#include "engine.hpp"

#include <string>

#include <tessera/extend/files/model_file.hpp>

#include "host.hpp"
#include "options/engine_options.hpp"
#include "paths.hpp"
#include "values/describe.hpp"
#include "values/structs.hpp"
#include "values/values.hpp"

namespace tessera::c {

GrammarCache& EngineState::cache() {
  const std::lock_guard lock(mutex_);
  if (cache_ == nullptr) {
    GrammarVocabulary vocabulary = must(GrammarVocabulary::create(engine.tokenizer()));
    cache_ = std::make_unique<GrammarCache>(must(GrammarCache::create(vocabulary, {})));
    vocabulary_ = std::move(vocabulary);
  }
  return *cache_;
}

CompiledGrammar EngineState::grammar(const GrammarSource& source) { return must(cache().get(source)); }

CompiledGrammar EngineState::compile(const Grammar& grammar) {
  static_cast<void>(cache());  // makes the vocabulary
  return must(CompiledGrammar::create(grammar, vocabulary_));
}

void EngineState::check_token(Token token, std::string_view place) const {
  const std::size_t vocabulary = engine.spec().vocab_size;
  if (token >= 0 && static_cast<std::size_t>(token) < vocabulary) return;
  fail(ErrorCode::invalid_argument,
       "token " + std::to_string(token) + " is not in the vocabulary of " + std::to_string(vocabulary), place);
}

void EngineState::check_tokens(std::span<const Token> tokens, std::string_view place) const {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<std::size_t>(tokens[i]) >= engine.spec().vocab_size)
      check_token(tokens[i], std::string(place) + "[" + std::to_string(i) + "]");
  }
}

namespace {

// Returns the caller's options as EngineOptions. Only callbacks and `user` still refer to the caller's memory.
EngineOptions options_of(const tessera_engine_options& given, const SharedDrop& drop) {
  EngineOptions options;
  read_engine_options(given.json, given.json_size, options);
  options.stop = token_of(given.stop);
  if (given.progress != nullptr) {
    options.progress = [progress = given.progress, user = given.user](std::uint64_t done, std::uint64_t total) {
      return progress(user, done, total) == 0;
    };
  }
  if (given.log != nullptr) {
    options.log = [log = given.log, user = given.user, drop](LogLevel level, std::string_view message) {
      const std::string ended(message);
      log(user, static_cast<std::int32_t>(level), ended.c_str(), ended.size());
    };
  }
  options.cuda.stream = given.cuda_stream;
  if (given.parallel_for != nullptr) options.executor = host_executor(given, drop);
  return options;
}

template <class Describe>
std::int32_t tell(const tessera_engine* engine, tessera_text** json, tessera_error** error,
                  Describe&& describe) noexcept {
  return call(error, [&] {
    tessera_text*& made = out(json, "json");
    made = new_text(describe(need(engine, "engine").state->engine).dump());
  });
}

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;
using tessera::Engine;

int32_t tessera_engine_load(const char* path, size_t path_size, const tessera_engine_options* options,
                            tessera_engine** engine, tessera_error** error) {
  return call(error, [&] {
    clear(engine);
    const auto given = read_struct(options, "options");
    const SharedDrop drop = share({given.user, given.drop});
    tessera_engine*& made = out(engine, "engine");
    Engine loaded = must(Engine::load(path_of(path, path_size, "path"), options_of(given, drop)));
    made = new tessera_engine(std::make_shared<EngineState>(std::move(loaded)));
  });
}

int32_t tessera_engine_load_source(const tessera_source* source, const tessera_engine_options* options,
                                   tessera_engine** engine, tessera_error** error) {
  return call(error, [&] {
    clear(engine);
    const auto from = read_struct(source, "source");
    Drop from_drop(from.user, from.drop);
    const auto given = read_struct(options, "options");
    Drop given_drop(given.user, given.drop);
    const SharedDrop source_drop = share(std::move(from_drop)), drop = share(std::move(given_drop));
    tessera_engine*& made = out(engine, "engine");
    const auto file = must(tessera::ModelFile::from_source(host_source(from, source_drop)));
    Engine loaded = must(Engine::load(file, options_of(given, drop)));
    made = new tessera_engine(std::make_shared<EngineState>(std::move(loaded)));
  });
}

int32_t tessera_plan(const char* path, size_t path_size, const tessera_engine_options* options, tessera_text** json,
                     tessera_error** error) {
  return call(error, [&] {
    clear(json);
    const auto given = read_struct(options, "options");
    const SharedDrop drop = share({given.user, given.drop});
    tessera_text*& made = out(json, "json");
    const auto source = must(tessera::open_model(path_of(path, path_size, "path"), token_of(given.stop)));
    made = new_text(describe(must(Engine::plan(*source, options_of(given, drop)))).dump());
  });
}

int32_t tessera_engine_plan(const tessera_engine* engine, tessera_text** json, tessera_error** error) {
  return tell(engine, json, error, [](const Engine& of) { return describe(of.plan()); });
}
int32_t tessera_engine_explain(const tessera_engine* engine, tessera_text** json, tessera_error** error) {
  return tell(engine, json, error, [](const Engine& of) { return describe(must(of.explain())); });
}
int32_t tessera_engine_metadata(const tessera_engine* engine, tessera_text** json, tessera_error** error) {
  return tell(engine, json, error, [](const Engine& of) { return describe_model(of); });
}
int32_t tessera_engine_figures(const tessera_engine* engine, tessera_text** json, tessera_error** error) {
  return tell(engine, json, error, [](const Engine& of) { return describe_kv(of); });
}

size_t tessera_engine_vocabulary_size(const tessera_engine* engine) {
  return is_a(engine) != nullptr ? engine->state->engine.spec().vocab_size : 0;
}
size_t tessera_engine_embedding_size(const tessera_engine* engine) {
  return is_a(engine) != nullptr ? engine->state->engine.spec().d_model : 0;
}
size_t tessera_engine_context(const tessera_engine* engine) {
  return is_a(engine) != nullptr ? engine->state->engine.plan().context : 0;
}
void tessera_engine_trim(tessera_engine* engine) {
  if (is_a(engine) != nullptr) engine->state->engine.trim();
}
void tessera_engine_free(tessera_engine* engine) { free_handle(engine); }
