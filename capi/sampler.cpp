// tessera_sampler: made from JSON, a grammar or a host's stage; and draws outside of a generation.
#include "sampler.hpp"

#include <string>

#include <tessera/extend/grammar/matcher.hpp>

#include "text/grammar.hpp"
#include "values/structs.hpp"

namespace tessera::c {

namespace {

// A stage that the host computes. All copies of the sampler share the host's `user`.
struct HostStage {
  static constexpr std::string_view kName = "the host's stage";
  int32_t (*stage)(void*, const int32_t*, float*, size_t);
  void* user;
  SharedDrop drop;

  Status operator()(sampling::Candidates& candidates, const sampling::Context&) {
    const std::span<const Token> tokens = candidates.tokens();
    const std::span<float> logits = candidates.change_logits();
    if (stage(user, tokens.data(), logits.data(), logits.size()) == 0) return {};
    return Error(ErrorCode::callback_failed, "the host's stage failed", "sampler.stage");
  }
};

}  // namespace

}  // namespace tessera::c

using namespace tessera::c;

int32_t tessera_sampler_create(const tessera_engine* engine, const tessera_sampler_options* options,
                               tessera_sampler** sampler, tessera_error** error) {
  return call(error, [&] {
    clear(sampler);
    const auto given = read_struct(options, "options");
    const SharedDrop drop = share({given.user, given.drop});
    tessera_sampler*& made = out(sampler, "sampler");
    const EngineStatePtr& state = need(engine, "engine").state;
    const tessera_grammar* grammar = need_or_null(given.grammar, "options.grammar");
    const tessera::Json json = parse_json(given.json, given.json_size, "options.json");
    if (grammar != nullptr && json.find("grammar") != nullptr) {
      fail(tessera::ErrorCode::invalid_argument, "options.grammar is set too: use one of the two",
           "options.json.grammar");
    }
    const FirstStages first = [&](tessera::sampling::Chain& chain) {
      if (grammar != nullptr)
        chain.stage(tessera::sampling::GrammarStage{must(tessera::Matcher::create(grammar->grammar))});
      if (given.stage != nullptr) chain.stage(HostStage{given.stage, given.user, drop});
    };
    tessera::Sampler built = read_sampler(*state, Value(json, {}), first);
    must(built.check_tokenizer(state->engine.tokenizer().fingerprint()));
    made = new tessera_sampler(std::make_shared<SamplerState>(state, std::move(built)));
  });
}

int32_t tessera_sampler_clone(const tessera_sampler* sampler, tessera_sampler** clone, tessera_error** error) {
  return call(error, [&] {
    tessera_sampler*& made = out(clone, "clone");
    const SamplerState& of = *need(sampler, "sampler").state;
    made = new tessera_sampler(std::make_shared<SamplerState>(of.engine, must(of.sampler.clone())));
  });
}

int32_t tessera_sampler_begin(tessera_sampler* sampler, const int32_t* tokens, size_t count, uint64_t position,
                              tessera_error** error) {
  return call(error, [&] {
    SamplerState& state = *need(sampler, "sampler").state;
    const auto follows = list(tokens, count, "tokens");
    tessera::Sampler& of = state.change();
    for (std::size_t i = 0; i < follows.size(); ++i) {
      if (follows[i] != -1)
        state.engine->check_token(follows[i], "tokens[" + std::to_string(i) + "]");  // -1 stands for an embedding
    }
    must(of.begin_text(follows));
    of.begin_answer(position);
  });
}

int32_t tessera_sampler_sample(tessera_sampler* sampler, const float* logits, size_t count, const int32_t* history,
                               size_t history_count, uint64_t position, int32_t* token, tessera_error** error) {
  return call(error, [&] {
    int32_t& drawn = out(token, "token");
    SamplerState& of = *need(sampler, "sampler").state;
    const std::size_t vocabulary = of.engine->engine.spec().vocab_size;
    if (count != vocabulary) {
      fail(tessera::ErrorCode::invalid_argument,
           "must be a row of tessera_engine_vocabulary_size() = " + std::to_string(vocabulary) + " numbers, and has " +
               std::to_string(count),
           "logits");
    }
    drawn = must(of.change().sample(list(logits, count, "logits"), list(history, history_count, "history"), position,
                                    of.engine->engine.tokenizer().suppressed()));
  });
}

int32_t tessera_sampler_accept(tessera_sampler* sampler, int32_t token, tessera_error** error) {
  return call(error, [&] {
    SamplerState& of = *need(sampler, "sampler").state;
    of.engine->check_token(token, "token");
    must(of.change().accept(token));
  });
}
int32_t tessera_sampler_rollback(tessera_sampler* sampler, size_t count, tessera_error** error) {
  return call(error, [&] { must(need(sampler, "sampler").state->change().rollback(count)); });
}
void tessera_sampler_free(tessera_sampler* sampler) { free_handle(sampler); }
