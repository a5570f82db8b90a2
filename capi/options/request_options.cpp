// The JSON of a request to a scheduler.
#include <string>

#include <tessera/extend/grammar/matcher.hpp>

#include "generation.hpp"
#include "options/engine_options.hpp"
#include "sampler.hpp"
#include "scheduler.hpp"
#include "text/grammar.hpp"
#include "values/tables.hpp"

namespace tessera::c {

namespace {

constexpr std::string_view kIfLate[] = {"run", "refuse"};
constexpr std::string_view kBeamEnds[] = {"stop", "ignore"};
constexpr std::string_view kStopping[] = {"likely", "first", "never"};

constexpr Key<BeamOptions> kBeamKeys[] = {
    {"beams", "integer", "sequences that are followed at once; default 4",
     [](BeamOptions& to, const Value& v) { to.beams = v.integer<std::uint32_t>(); }},
    {"results", "integer", "sequences that are returned; default 0: all beams",
     [](BeamOptions& to, const Value& v) { to.results = v.integer<std::uint32_t>(); }},
    {"max_tokens", "integer", "tokens of a sequence at most; default 0: until the context is full",
     [](BeamOptions& to, const Value& v) { to.max_tokens = v.integer<std::size_t>(); }},
    {"length_penalty", "number", "above 0 favours long sequences; default 1",
     [](BeamOptions& to, const Value& v) { to.length_penalty = v.real(); }},
    {"early_stopping", "\"likely\", \"first\", \"never\"", "when the search ends; default \"likely\"",
     [](BeamOptions& to, const Value& v) { to.early_stopping = v.one_of<EarlyStopping>(kStopping); }},
    {"stop_tokens", "list of tokens", "tokens that end a sequence",
     [](BeamOptions& to, const Value& v) { to.stop_tokens = v.tokens(); }},
    {"end_of_generation", "\"stop\", \"ignore\"", "what the model's own end tokens do; default \"stop\"",
     [](BeamOptions& to, const Value& v) { to.end_of_generation = v.one_of<EndOfGeneration>(kBeamEnds); }},
};

struct RequestAsked {
  EngineState* engine = nullptr;
  Request request;
  std::optional<CompiledGrammar> grammar;
  const Json* sampler = nullptr;
  std::string sampler_path;
};

constexpr Key<RequestAsked> kRequestKeys[] = {
    {"sampler", "object", "how tokens are drawn: see Sampler; default greedy",
     [](RequestAsked& to, const Value& v) { to.sampler = &v.json(), to.sampler_path = v.path(); }},
    {"grammar", "object", "the texts that are allowed: see Grammar",
     [](RequestAsked& to, const Value& v) { to.grammar = read_grammar(*to.engine, v); }},
    {"samples", "integer", "answers to the prompt, which is computed once, 1 to 1024; default 1",
     [](RequestAsked& to, const Value& v) { to.request.samples = v.integer<std::uint32_t>(1, 1024); }},
    {"beams", "object", "a beam search instead of draws: see Beams",
     [](RequestAsked& to, const Value& v) { read_keys<BeamOptions>(v, kBeamKeys, to.request.beams.emplace()); }},
    {"priority", "integer", "lower is served first (policy \"by_priority\"); default 0",
     [](RequestAsked& to, const Value& v) { to.request.priority = v.integer<std::int32_t>(); }},
    {"deadline", "number", "seconds from now to the last token, above 0; default none",
     [](RequestAsked& to, const Value& v) { to.request.deadline = v.positive(); }},
    {"if_late", "\"run\", \"refuse\"",
     "refuse: a request that is not expected to end in time is too_late; default \"run\"",
     [](RequestAsked& to, const Value& v) { to.request.if_late = v.one_of<IfLate>(kIfLate); }},
    {"tenant", "text", "the user to whom the request belongs",
     [](RequestAsked& to, const Value& v) { to.request.tenant = v.string(); }},
    {"keep_session", "boolean",
     "true: the sessions are kept at the end, for tessera_request_take_session(); default false",
     [](RequestAsked& to, const Value& v) {
       to.request.session_at_end = v.boolean() ? SessionAtEnd::keep : SessionAtEnd::drop;
     }},
    {"tells_progress", "boolean", "true: on_ready is also called while the prompt is computed; default false",
     [](RequestAsked& to, const Value& v) { to.request.tells_progress = v.boolean(); }},
    {"session", "object", "options of the new session: see Session",
     [](RequestAsked& to, const Value& v) { read_session_options(v, to.request.session_options); }},
};

}  // namespace

Request read_request(EngineState& engine, const Value& value) {
  RequestAsked asked;
  asked.engine = &engine;
  read_keys<RequestAsked, GenerateOptions>(value, kRequestKeys, asked, generate_keys(), asked.request.generate);
  const std::string in = value.path().empty() ? "" : value.path() + ".";
  engine.check_tokens(asked.request.generate.stop_tokens, in + "stop_tokens");
  if (asked.request.beams) engine.check_tokens(asked.request.beams->stop_tokens, in + "beams.stop_tokens");
  if (asked.grammar && asked.sampler != nullptr && asked.sampler->find("grammar") != nullptr) {
    value.refuse("has \"grammar\" and \"sampler.grammar\": use one of the two");
  }
  if (asked.sampler != nullptr || asked.grammar) {
    const Json greedy = [] {
      Json json = Json::object();
      json.set("greedy", true);
      return json;
    }();
    const Value sampler(asked.sampler != nullptr ? *asked.sampler : greedy, asked.sampler_path);
    asked.request.sampler = read_sampler(engine, sampler, [&](sampling::Chain& chain) {
      if (asked.grammar) chain.stage(sampling::GrammarStage{must(Matcher::create(*asked.grammar))});
    });
  }
  return std::move(asked.request);
}

std::vector<Table> request_tables() {
  return {table_of<RequestAsked>("Request", kRequestKeys), table_of<BeamOptions>("Beams", kBeamKeys)};
}

}  // namespace tessera::c
