// The JSON of a sampler: its stages by name. Without "stages", the stages run in the order of the table in this file.
#include <algorithm>
#include <charconv>
#include <new>
#include <vector>

#include <tessera/extend/grammar/matcher.hpp>

#include "sampler.hpp"
#include "text/grammar.hpp"
#include "values/tables.hpp"

namespace tessera::c {

namespace {

using sampling::Chain;
using sampling::Counted;
using Stage = std::function<void(Chain&)>;

// A stage and its rank, which is the index of the stage's key in the table of stages.
struct Ranked {
  std::size_t rank;
  Stage stage;
};

struct Spec {
  EngineState* engine = nullptr;
  std::vector<Ranked> stages;
  std::size_t rank = 0;  // rank of the stage that is being read
  sampling::PenaltyOptions penalties;
  bool has_penalties = false;
  std::optional<CompiledGrammar> grammar;
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;

  void add(Stage stage) { stages.push_back({rank, std::move(stage)}); }
};

constexpr std::string_view kCounted[] = {"answer", "sequence"};

constexpr Key<sampling::PenaltyOptions> kPenaltyKeys[] = {
    {"repetition", "number", "above 1 makes repeats rarer; above 0; default 1",
     [](sampling::PenaltyOptions& to, const Value& v) { to.repetition = v.real(); }},
    {"frequency", "number", "subtracted once for each time that the token occurs; default 0",
     [](sampling::PenaltyOptions& to, const Value& v) { to.frequency = v.real(); }},
    {"presence", "number", "subtracted once if the token occurs; default 0",
     [](sampling::PenaltyOptions& to, const Value& v) { to.presence = v.real(); }},
    {"last_n", "integer", "only the last n counted tokens matter; 0: none does; default all",
     [](sampling::PenaltyOptions& to, const Value& v) { to.last_n = v.integer<std::size_t>(); }},
    {"counted", "\"answer\", \"sequence\"", "tokens that count: the answer's, or the prompt's too; default \"answer\"",
     [](sampling::PenaltyOptions& to, const Value& v) { to.counted = v.one_of<Counted>(kCounted); }},
};

constexpr Key<sampling::DynamicTemperatureOptions> kDynamicKeys[] = {
    {"low", "number", "default 0.5",
     [](sampling::DynamicTemperatureOptions& to, const Value& v) { to.low = v.real(); }},
    {"high", "number", "default 1.5",
     [](sampling::DynamicTemperatureOptions& to, const Value& v) { to.high = v.real(); }},
    {"exponent", "number", "default 1",
     [](sampling::DynamicTemperatureOptions& to, const Value& v) { to.exponent = v.real(); }},
};

constexpr Key<sampling::XtcOptions> kXtcKeys[] = {
    {"probability", "number", "default 0.5",
     [](sampling::XtcOptions& to, const Value& v) { to.probability = v.real(); }},
    {"threshold", "number", "default 0.1", [](sampling::XtcOptions& to, const Value& v) { to.threshold = v.real(); }},
    {"min_keep", "integer", "default 1",
     [](sampling::XtcOptions& to, const Value& v) { to.min_keep = v.integer<std::size_t>(); }},
};

struct Dry {
  sampling::DryOptions options;
  std::vector<Token> breakers;
};
constexpr Key<Dry> kDryKeys[] = {
    {"multiplier", "number", "default 0.8", [](Dry& to, const Value& v) { to.options.multiplier = v.real(); }},
    {"base", "number", "default 1.75", [](Dry& to, const Value& v) { to.options.base = v.real(); }},
    {"allowed_length", "integer", "tokens of a repeat that costs nothing; default 2",
     [](Dry& to, const Value& v) { to.options.allowed_length = v.integer<std::size_t>(); }},
    {"last_n", "integer", "default all", [](Dry& to, const Value& v) { to.options.last_n = v.integer<std::size_t>(); }},
    {"breakers", "list of tokens", "default none", [](Dry& to, const Value& v) { to.breakers = v.tokens(); }},
    {"counted", "\"answer\", \"sequence\"", "default \"answer\"",
     [](Dry& to, const Value& v) { to.options.counted = v.one_of<Counted>(kCounted); }},
};

constexpr Key<sampling::MirostatOptions> kMirostatKeys[] = {
    {"tau", "number", "default 5", [](sampling::MirostatOptions& to, const Value& v) { to.tau = v.real(); }},
    {"eta", "number", "default 0.1", [](sampling::MirostatOptions& to, const Value& v) { to.eta = v.real(); }},
};

std::vector<Token> tokens_of(const EngineState& engine, const Value& value) {
  std::vector<Token> tokens = value.tokens();
  engine.check_tokens(tokens, value.path());
  return tokens;
}

std::vector<sampling::TokenBias> biases_of(const EngineState& engine, const Value& value) {
  const Json::Object* members = value.json().members();
  if (members == nullptr) value.refuse("must be an object of biases by token: {\"42\": -1.5}");
  std::vector<sampling::TokenBias> biases;
  for (const auto& [name, bias] : *members) {
    const Value number(bias, value.path() + "." + name);
    Token token = -1;
    const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), token);
    if (failed != std::errc() || end != name.data() + name.size() || token < 0)
      number.refuse("the key must be a token, an integer from 0 on");
    engine.check_token(token, number.path());
    biases.push_back({token, number.real()});
  }
  return biases;
}

// The keys of the stages. Without "stages", the stages run in this order.
constexpr Key<Spec> kStageKeys[] = {
    {"logit_bias", "object", "numbers that are added to logits, by token: `{\"42\": -1.5}`",
     [](Spec& to, const Value& v) { to.add([biases = biases_of(*to.engine, v)](Chain& c) { c.logit_bias(biases); }); }},
    {"allow", "list of tokens", "removes all other tokens",
     [](Spec& to, const Value& v) { to.add([ids = tokens_of(*to.engine, v)](Chain& c) { c.allow(ids); }); }},
    {"deny", "list of tokens", "removes these tokens",
     [](Spec& to, const Value& v) { to.add([ids = tokens_of(*to.engine, v)](Chain& c) { c.deny(ids); }); }},
    {"penalties", "object", "`repetition`, `frequency`, `presence`, `last_n`, `counted`: makes repeats rarer",
     [](Spec& to, const Value& v) {
       sampling::PenaltyOptions options;
       read_keys<sampling::PenaltyOptions>(v, kPenaltyKeys, options);
       to.add([options](Chain& c) { c.penalties(options); });
     }},
    {"dry", "object",
     "`multiplier`, `base`, `allowed_length`, `last_n`, `breakers`, `counted`: makes repeated phrases rarer",
     [](Spec& to, const Value& v) {
       Dry dry;
       read_keys<Dry>(v, kDryKeys, dry);
       to.engine->check_tokens(dry.breakers, v.path() + ".breakers");
       to.add([dry](Chain& c) {
         sampling::DryOptions options = dry.options;
         options.breakers = dry.breakers;
         c.dry(options);
       });
     }},
    {"top_n_sigma", "number", "keeps logits within n standard deviations of the best",
     [](Spec& to, const Value& v) { to.add([n = v.real()](Chain& c) { c.top_n_sigma(n); }); }},
    {"temperature", "number", "divides the logits; 0 is greedy",
     [](Spec& to, const Value& v) { to.add([t = v.real()](Chain& c) { c.temperature(t); }); }},
    {"dynamic_temperature", "object", "`low`, `high`, `exponent`: a temperature that follows the entropy",
     [](Spec& to, const Value& v) {
       sampling::DynamicTemperatureOptions options;
       read_keys<sampling::DynamicTemperatureOptions>(v, kDynamicKeys, options);
       to.add([options](Chain& c) { c.dynamic_temperature(options); });
     }},
    {"top_k", "integer", "keeps the k best; 0 keeps all",
     [](Spec& to, const Value& v) { to.add([k = v.integer<std::size_t>()](Chain& c) { c.top_k(k); }); }},
    {"typical_p", "number",
     "keeps the tokens whose surprise is nearest to the entropy, until their probabilities reach this sum",
     [](Spec& to, const Value& v) { to.add([p = v.real()](Chain& c) { c.typical_p(p); }); }},
    {"top_p", "number", "keeps the fewest best tokens that reach this probability",
     [](Spec& to, const Value& v) { to.add([p = v.real()](Chain& c) { c.top_p(p); }); }},
    {"min_p", "number", "keeps tokens at least p times as probable as the best",
     [](Spec& to, const Value& v) { to.add([p = v.real()](Chain& c) { c.min_p(p); }); }},
    {"xtc", "object", "`probability`, `threshold`, `min_keep`: removes top choices at random",
     [](Spec& to, const Value& v) {
       sampling::XtcOptions options;
       read_keys<sampling::XtcOptions>(v, kXtcKeys, options);
       to.add([options](Chain& c) { c.xtc(options); });
     }},
    {"mirostat", "object", "`tau`, `eta`: adapts to the drawn tokens, so that their surprise stays near tau bits",
     [](Spec& to, const Value& v) {
       sampling::MirostatOptions options;
       read_keys<sampling::MirostatOptions>(v, kMirostatKeys, options);
       to.add([options](Chain& c) { c.mirostat(options); });
     }},
    {"greedy", "boolean", "true: takes the likeliest token",
     [](Spec& to, const Value& v) {
       if (v.boolean()) to.add([](Chain& c) { c.greedy(); });
     }},
};
constexpr std::size_t kPenalties = 3;
static_assert(kStageKeys[kPenalties].name == "penalties");

constexpr Key<Spec> kSamplerKeys[] = {
    {"seed", "integer", "seed of the random numbers; default 0",
     [](Spec& to, const Value& v) { to.seed = v.unsigned_integer(); }},
    {"stream", "integer", "tells apart sequences that share a seed; default 0",
     [](Spec& to, const Value& v) { to.stream = v.integer<std::uint32_t>(); }},
    {"grammar", "object", "the texts that are allowed; runs before all stages: see Grammar",
     [](Spec& to, const Value& v) { to.grammar = read_grammar(*to.engine, v); }},
    {"repetition_penalty", "number", "`penalties.repetition`",
     [](Spec& to, const Value& v) { to.penalties.repetition = v.real(), to.has_penalties = true; }},
    {"frequency_penalty", "number", "`penalties.frequency`",
     [](Spec& to, const Value& v) { to.penalties.frequency = v.real(), to.has_penalties = true; }},
    {"presence_penalty", "number", "`penalties.presence`",
     [](Spec& to, const Value& v) { to.penalties.presence = v.real(), to.has_penalties = true; }},
    {"stages", "list of objects",
     "the stages in an order of your own, an object of one key each: `[{\"top_k\": 40}, {\"temperature\": 0.8}]`",
     [](Spec& to, const Value& v) {
       for (const Value& element : v.elements()) {
         if (element.json().members() == nullptr || element.json().members()->size() != 1) {
           element.refuse("must be an object of one key, the stage's name");
         }
         read_keys<Spec>(element, kStageKeys, to);
       }
     }},
};

std::vector<Key<Spec>> sampler_keys() {
  std::vector<Key<Spec>> keys(std::begin(kSamplerKeys), std::end(kSamplerKeys));
  keys.insert(keys.end(), std::begin(kStageKeys), std::end(kStageKeys));
  return keys;
}

// Reads the keys one at a time, to give each stage its rank.
void read_spec(const Value& value, Spec& to) {
  const auto keys = sampler_keys();
  const Json::Object* members = value.json().members();
  if (members == nullptr) value.refuse("must be an object");
  const bool listed = value.json().find("stages") != nullptr;
  for (const auto& [name, member] : *members) {
    const auto* stage = std::ranges::find(kStageKeys, std::string_view(name), &Key<Spec>::name);
    to.rank = listed ? 0 : static_cast<std::size_t>(stage - std::begin(kStageKeys));
    if (listed && (stage != std::end(kStageKeys) || name.ends_with("_penalty"))) {
      value.refuse("has \"stages\" and \"" + name + "\": put the stage into the list");
    }
    Json::Object one;
    one.emplace_back(name, member);
    const Json alone(std::move(one));
    read_keys<Spec>(Value(alone, value.path()), keys, to);
  }
  if (!to.has_penalties) return;
  if (std::ranges::find(to.stages, kPenalties, &Ranked::rank) != to.stages.end()) {
    value.refuse("has \"penalties\" and a key ..._penalty: use one of the two");
  }
  to.rank = kPenalties;
  to.add([options = to.penalties](Chain& c) { c.penalties(options); });
}

}  // namespace

Sampler read_sampler(EngineState& engine, const Value& value, const FirstStages& first) {
  Spec spec;
  spec.engine = &engine;
  read_spec(value, spec);
  std::ranges::stable_sort(spec.stages, {}, &Ranked::rank);
  Chain chain = sampling::chain();
  chain.seed(spec.seed, spec.stream);
  if (spec.grammar) chain.stage(sampling::GrammarStage{must(Matcher::create(*spec.grammar))});
  if (first) first(chain);
  for (const Ranked& ranked : spec.stages) ranked.stage(chain);
  Sampler sampler = chain.build();
  if (const Status status = sampler.status(); !status) {
    if (status.error().code() == ErrorCode::invalid_state)
      throw std::bad_alloc();  // an empty Sampler: its chain had no memory
    fail(status.error().code(), status.error().message(),
         status.error().place().empty() ? (value.path().empty() ? "sampler" : value.path()) : status.error().place());
  }
  return sampler;
}

std::vector<Table> sampler_tables() {
  const auto keys = sampler_keys();
  return {table_of<Spec>("Sampler", keys)};
}

}  // namespace tessera::c
