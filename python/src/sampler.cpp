// tessera.Sampler: logits in, a token out; and tessera.Chain, which builds one from stages.
#include <charconv>
#include <cmath>
#include <limits>
#include <random>

#include "calls.hpp"
#include "stage.hpp"
#include "types/boxes.hpp"

namespace tessera::python {

namespace {

using sampling::Counted;

using BiasMap = std::vector<std::pair<Token, float>>;
using GrammarArgument = std::optional<GrammarHandle>;

std::uint64_t fresh_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 1;  // fits in a signed 64-bit integer of other languages
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void add_stage(ChainSpec& spec, StageMaker maker, std::string words) {
  spec.stages.push_back(std::move(maker));
  spec.words += (spec.words.empty() ? "" : ", ") + std::move(words);
}
// Adds a stage that a single call on the Chain makes, `change`.
template <class Change>
void add_simple(ChainSpec& spec, Change change, std::string words) {
  add_stage(
      spec, [change = std::move(change)](sampling::Chain& chain, const Making&) { return change(chain), Status(); },
      std::move(words));
}
void add_grammar(ChainSpec& spec, std::shared_ptr<GrammarBox> grammar) {
  spec.needs_engine = true;
  std::string words = "grammar=" + grammar->source;
  add_stage(
      spec,
      [grammar = std::move(grammar)](sampling::Chain& chain, const Making& making) -> Status {
        if (making.engine == nullptr) return {};
        auto compiled = grammar->compiled_for(*making.engine);
        if (!compiled) return compiled.error();
        auto matcher = Matcher::create(*compiled);
        if (!matcher) return matcher.error();
        chain.stage(sampling::GrammarStage{*std::move(matcher)});
        return {};
      },
      std::move(words));
}
// Reads a token: an int, or its digits as a text, the form of OpenAI's API.
bool read_token(nb::handle object, Token& token) {
  if (!nb::isinstance<nb::str>(object)) return nb::try_cast<Token>(object, token);
  const std::string digits = nb::cast<std::string>(object);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), token);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size();
}
void add_bias(ChainSpec& spec, nb::handle biases, const std::string& where, const std::string& name) {
  if (!nb::isinstance<nb::dict>(biases)) raise_type(where, name, "a dict of int to float", biases);
  std::vector<sampling::TokenBias> all;
  for (auto [key, value] : nb::borrow<nb::dict>(biases)) {
    sampling::TokenBias one;
    const std::string shown = nb::repr(key).c_str();
    if (!read_token(key, one.token))
      throw nb::type_error((where + ": the key " + shown + " of " + name + " is no token: a token is an int").c_str());
    if (!nb::try_cast<float>(value, one.bias)) raise_type(where, name + "[" + shown + "]", "a float", value);
    all.push_back(one);
  }
  add_simple(
      spec, [all = std::move(all)](sampling::Chain& c) { c.logit_bias(all); },
      "logit_bias of " + std::to_string(nb::len(biases)));
}
std::size_t whole_or(const std::optional<std::size_t>& last_n) { return last_n.value_or(sampling::kWholeHistory); }
Counted counted(bool prompt) { return prompt ? Counted::sequence : Counted::answer; }

// Makes the box of a chain, and throws the chain's first error. Everything that needs no engine is checked now.
std::shared_ptr<SamplerBox> box_of(ChainSpec spec) {
  auto box = std::make_shared<SamplerBox>();
  box->spec = std::move(spec);
  take(unlocked([&]() -> Status {
         if (!box->spec.needs_engine) return box->prepare(nullptr);
         auto trial = box->spec.build(nullptr, box->failure);
         if (!trial) return trial.error();
         return {};
       }),
       *box->failure);
  return box;
}

template <class Act>
auto with(const SamplerHandle& self, Act&& act) {
  auto claim = self->use.change("sampler");
  if (!self->built) {
    raise(
        ErrorCode::invalid_state,
        "the sampler's grammar needs a vocabulary: use the sampler with a session first, or call sampler.bind(engine)");
  }
  return take(unlocked([&] { return act(self->sampler); }), *self->failure);
}

using LogitsArgument = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const float> values_of(const LogitsArgument& logits) { return {logits.data(), logits.size()}; }

SamplerHandle make_sampler(float temperature, std::size_t top_k, float top_p, float min_p, float typical_p,
                           float top_n_sigma, float repetition_penalty, float frequency_penalty, float presence_penalty,
                           std::optional<std::size_t> penalty_last_n, bool penalize_prompt,
                           const nb::object& logit_bias, const std::optional<Tokens>& allow,
                           const std::optional<Tokens>& deny, float dry_multiplier, float xtc_probability,
                           float xtc_threshold, float mirostat_tau, float mirostat_eta, const GrammarArgument& grammar,
                           const std::vector<nb::object>& stages, std::optional<std::uint64_t> seed,
                           std::uint32_t stream) {
  ChainSpec spec;
  spec.seed = seed ? *seed : fresh_seed();
  spec.stream = stream;
  if (grammar) add_grammar(spec, grammar->box());
  if (!logit_bias.is_none()) add_bias(spec, logit_bias, "Sampler()", "logit_bias");
  if (allow)
    add_simple(
        spec, [tokens = *allow](sampling::Chain& c) { c.allow(tokens); }, "allow of " + std::to_string(allow->size()));
  if (deny)
    add_simple(
        spec, [tokens = *deny](sampling::Chain& c) { c.deny(tokens); }, "deny of " + std::to_string(deny->size()));
  for (const nb::object& stage : stages)
    add_stage(spec, python_stage(stage), std::string("stage ") + nb::repr(stage).c_str());
  if (repetition_penalty != 1.0f || frequency_penalty != 0.0f || presence_penalty != 0.0f) {
    const sampling::PenaltyOptions options{.repetition = repetition_penalty,
                                           .frequency = frequency_penalty,
                                           .presence = presence_penalty,
                                           .last_n = whole_or(penalty_last_n),
                                           .counted = counted(penalize_prompt)};
    add_simple(
        spec, [options](sampling::Chain& c) { c.penalties(options); }, "penalties");
  }
  if (dry_multiplier != 0.0f) {
    add_simple(
        spec, [dry_multiplier](sampling::Chain& c) { c.dry({.multiplier = dry_multiplier}); },
        "dry=" + number(dry_multiplier));
  }
  if (temperature != 1.0f)
    add_simple(
        spec, [temperature](sampling::Chain& c) { c.temperature(temperature); }, "temperature=" + number(temperature));
  if (top_k != 0)
    add_simple(
        spec, [top_k](sampling::Chain& c) { c.top_k(top_k); }, "top_k=" + std::to_string(top_k));
  if (top_p != 1.0f)
    add_simple(
        spec, [top_p](sampling::Chain& c) { c.top_p(top_p); }, "top_p=" + number(top_p));
  if (min_p != 0.0f)
    add_simple(
        spec, [min_p](sampling::Chain& c) { c.min_p(min_p); }, "min_p=" + number(min_p));
  if (typical_p != 1.0f)
    add_simple(
        spec, [typical_p](sampling::Chain& c) { c.typical_p(typical_p); }, "typical_p=" + number(typical_p));
  if (top_n_sigma != 0.0f)
    add_simple(
        spec, [top_n_sigma](sampling::Chain& c) { c.top_n_sigma(top_n_sigma); }, "top_n_sigma=" + number(top_n_sigma));
  if (xtc_probability != 0.0f) {
    add_simple(
        spec, [=](sampling::Chain& c) { c.xtc({.probability = xtc_probability, .threshold = xtc_threshold}); },
        "xtc=" + number(xtc_probability));
  }
  if (mirostat_tau != 0.0f)
    add_simple(
        spec, [=](sampling::Chain& c) { c.mirostat({.tau = mirostat_tau, .eta = mirostat_eta}); },
        "mirostat=" + number(mirostat_tau));
  return SamplerHandle(box_of(std::move(spec)));
}

void bind_chain(nb::module_& m) {
  nb::class_<ChainSpec> chain(m, "Chain",
                              R"(Builds a sampler from stages, which run in the order in which they are written.

    sampler = tessera.Chain().top_k(40).temperature(0.8).stage(mine).seed(1).build())");
  constexpr auto self_policy = nb::rv_policy::reference;
  chain
      .def("__init__",
           [](ChainSpec* self) {
             new (self) ChainSpec();
             self->seed = fresh_seed();
           })
      .def(
          "greedy",
          [](ChainSpec& s) -> ChainSpec& {
            return add_simple(
                       s, [](sampling::Chain& c) { c.greedy(); }, "greedy"),
                   s;
          },
          self_policy, "Keeps the likeliest token.")
      .def(
          "temperature",
          [](ChainSpec& s, float t) -> ChainSpec& {
            return add_simple(
                       s, [t](sampling::Chain& c) { c.temperature(t); }, "temperature=" + number(t)),
                   s;
          },
          self_policy, nb::arg("temperature"), "Divides every logit by the temperature; 0 is greedy.")
      .def(
          "dynamic_temperature",
          [](ChainSpec& s, float low, float high, float exponent) -> ChainSpec& {
            return add_simple(
                       s,
                       [=](sampling::Chain& c) {
                         c.dynamic_temperature({.low = low, .high = high, .exponent = exponent});
                       },
                       "dynamic_temperature"),
                   s;
          },
          self_policy, nb::arg("low") = 0.5f, nb::arg("high") = 1.5f, nb::arg("exponent") = 1.0f,
          "Divides every logit by a temperature between low (where the model is certain) and high (where it is not): low + (high "
          "- low) * (H / ln n)^exponent, with the entropy H of the n candidates.")
      .def(
          "top_k",
          [](ChainSpec& s, std::size_t k) -> ChainSpec& {
            return add_simple(
                       s, [k](sampling::Chain& c) { c.top_k(k); }, "top_k=" + std::to_string(k)),
                   s;
          },
          self_policy, nb::arg("k"),
          "Keeps the k likeliest tokens.")
      .def(
          "top_p",
          [](ChainSpec& s, float p, std::size_t keep) -> ChainSpec& {
            return add_simple(
                       s, [=](sampling::Chain& c) { c.top_p(p, keep); }, "top_p=" + number(p)),
                   s;
          },
          self_policy, nb::arg("p"), nb::arg("min_keep") = 1,
          "Keeps the likeliest tokens whose probabilities add up to at least p, and at least min_keep tokens.")
      .def(
          "min_p",
          [](ChainSpec& s, float p, std::size_t keep) -> ChainSpec& {
            return add_simple(
                       s, [=](sampling::Chain& c) { c.min_p(p, keep); }, "min_p=" + number(p)),
                   s;
          },
          self_policy, nb::arg("p"), nb::arg("min_keep") = 1,
          "Keeps the tokens that are at least p times as likely as the likeliest one.")
      .def(
          "typical_p",
          [](ChainSpec& s, float p, std::size_t keep) -> ChainSpec& {
            return add_simple(
                       s, [=](sampling::Chain& c) { c.typical_p(p, keep); }, "typical_p=" + number(p)),
                   s;
          },
          self_policy, nb::arg("p"), nb::arg("min_keep") = 1,
          "Keeps the tokens whose surprise (-ln probability) is nearest to the mean surprise, until their probabilities add up to "
          "p.")
      .def(
          "top_n_sigma",
          [](ChainSpec& s, float n) -> ChainSpec& {
            return add_simple(
                       s, [n](sampling::Chain& c) { c.top_n_sigma(n); }, "top_n_sigma=" + number(n)),
                   s;
          },
          self_policy, nb::arg("n"),
          "Keeps the tokens whose logit is at least the best logit minus n standard deviations of the logits.")
      .def(
          "penalties",
          [](ChainSpec& s, float repetition, float frequency, float presence, std::optional<std::size_t> last_n,
             bool prompt) -> ChainSpec& {
            const sampling::PenaltyOptions o{.repetition = repetition,
                                             .frequency = frequency,
                                             .presence = presence,
                                             .last_n = whole_or(last_n),
                                             .counted = counted(prompt)};
            return add_simple(
                       s, [o](sampling::Chain& c) { c.penalties(o); }, "penalties"),
                   s;
          },
          self_policy, nb::kw_only(), nb::arg("repetition") = 1.0f, nb::arg("frequency") = 0.0f,
          nb::arg("presence") = 0.0f, nb::arg("last_n") = nb::none(), nb::arg("prompt") = false,
          "Changes the logits of tokens that occurred in the answer; with prompt=True also of tokens in the prompt.")
      .def(
          "logit_bias", [](ChainSpec& s, const nb::dict& biases) -> ChainSpec& { return add_bias(s, biases, "Chain.logit_bias()", "biases"), s; },
          self_policy, nb::arg("biases"), nb::sig("def logit_bias(self, biases: dict[int, float]) -> Chain"),
          "Adds a number to the logit of each of these tokens; -inf removes the token.")
      .def(
          "allow",
          [](ChainSpec& s, const Tokens& t) -> ChainSpec& {
            return add_simple(
                       s, [t](sampling::Chain& c) { c.allow(t); }, "allow"),
                   s;
          },
          self_policy, nb::arg("tokens"), "Removes all tokens except these.")
      .def(
          "deny",
          [](ChainSpec& s, const Tokens& t) -> ChainSpec& {
            return add_simple(
                       s, [t](sampling::Chain& c) { c.deny(t); }, "deny"),
                   s;
          },
          self_policy, nb::arg("tokens"), "Removes these tokens.")
      .def(
          "xtc",
          [](ChainSpec& s, float probability, float threshold, std::size_t keep) -> ChainSpec& {
            return add_simple(
                       s,
                       [=](sampling::Chain& c) {
                         c.xtc({.probability = probability, .threshold = threshold, .min_keep = keep});
                       },
                       "xtc"),
                   s;
          },
          self_policy, nb::arg("probability") = 0.5f, nb::arg("threshold") = 0.1f, nb::arg("min_keep") = 1,
          "Removes likely tokens, for more varied texts. Acts on a draw only with the chance `probability`. Then, of the tokens "
          "whose probability is at least `threshold`, only the least likely one stays.")
      .def(
          "dry",
          [](ChainSpec& s, float multiplier, float base, std::size_t allowed, std::optional<std::size_t> last_n,
             const std::optional<Tokens>& breakers, bool prompt) -> ChainSpec& {
            const Tokens stops = breakers.value_or(Tokens());
            return add_simple(
                       s,
                       [=, n = whole_or(last_n)](sampling::Chain& c) {
                         c.dry({.multiplier = multiplier,
                                .base = base,
                                .allowed_length = allowed,
                                .last_n = n,
                                .breakers = stops,
                                .counted = counted(prompt)});
                       },
                       "dry"),
                   s;
          },
          self_policy, nb::arg("multiplier") = 0.8f, nb::arg("base") = 1.75f, nb::arg("allowed_length") = 2,
          nb::arg("last_n") = nb::none(), nb::arg("breakers") = nb::none(), nb::arg("prompt") = false,
          "Penalises a token that would continue a repeat: if the last n >= allowed_length tokens occurred before and this token "
          "followed them, subtracts multiplier * base^(n - allowed_length) from its logit. Repeats do not go beyond the tokens "
          "`breakers`.")
      .def(
          "mirostat",
          [](ChainSpec& s, float tau, float eta) -> ChainSpec& {
            return add_simple(
                       s, [=](sampling::Chain& c) { c.mirostat({.tau = tau, .eta = eta}); }, "mirostat"),
                   s;
          },
          self_policy, nb::arg("tau") = 5.0f, nb::arg("eta") = 0.1f,
          "Keeps the mean surprise (-log2 probability) of the drawn tokens near tau bits (mirostat, version 2). eta: how fast the "
          "limit follows. Usually the last stage.")
      .def(
          "grammar", [](ChainSpec& s, const GrammarHandle& g) -> ChainSpec& { return add_grammar(s, g.box()), s; },
          self_policy, nb::arg("grammar"),
          "Removes the tokens that would break the grammar. Put this stage first.")
      .def(
          "stage",
          [](ChainSpec& s, const nb::object& callable) -> ChainSpec& {
            return add_stage(s, python_stage(callable), std::string("stage ") + nb::repr(callable).c_str()), s;
          },
          self_policy, nb::arg("stage"),
          nb::sig("def stage(self, stage: collections.abc.Callable[[numpy.typing.NDArray[numpy.int32], "
                  "numpy.typing.NDArray[numpy.float32]], "
                  "object] | collections.abc.Callable[[numpy.typing.NDArray[numpy.int32], "
                  "numpy.typing.NDArray[numpy.float32], StageContext], object]) -> Chain"),
          R"(Adds a stage of your own: stage(tokens, logits), or stage(tokens, logits, context). A stage gets the context as a third parameter without
a default, or as a parameter with the name `context`; other parameters keep their defaults. The stage changes the array `logits` in place, or returns
another array of the same length. A logit of -inf removes a candidate. If the stage raises an exception, the call that draws raises it. A stage must
not compute with the engine. A stage that remembers tokens has accept(token, probability) and rollback(n); each sampler then gets a deep copy of the
stage.)")
      .def(
          "seed",
          [](ChainSpec& s, std::uint64_t seed, std::uint32_t stream) -> ChainSpec& {
            s.seed = seed;
            s.stream = stream;
            return s;
          },
          self_policy, nb::arg("seed"), nb::arg("stream") = 0,
          "Sets the seed. Without this call each chain has a random seed.")
      .def(
          "build", [](const ChainSpec& self) { return SamplerHandle(box_of(self)); },
          "Returns the sampler. Raises InvalidArgument if an option is invalid.")
      .def("__repr__", [](const ChainSpec& self) { return "<tessera.Chain " + self.words + ">"; });
}

}  // namespace

Result<Sampler> ChainSpec::build(EngineBox* engine, const FailurePtr& failure) const {
  sampling::Chain chain;
  chain.seed(seed, stream);
  for (const StageMaker& make : stages) {
    if (auto made = make(chain, {engine, failure}); !made) return made.error();
  }
  Sampler sampler = chain.build();
  if (auto valid = sampler.status(); !valid) return valid.error();
  return sampler;
}

Status SamplerBox::prepare(EngineBox* engine) {
  if (built) return {};
  auto made = spec.build(engine, failure);
  if (!made) return made.error();
  sampler = *std::move(made);
  built = true;
  return {};
}

void bind_sampler(nb::module_& m) {
  bind_stage(m);
  bind_chain(m);
  nb::class_<SamplerHandle>(m, "Sampler", R"(Draws tokens. Without options it draws from the model's own distribution.

    tessera.Sampler(temperature=0.7, top_p=0.95, seed=1)
    tessera.Sampler(temperature=0)                                 # always the likeliest token
    tessera.Sampler(grammar=tessera.Grammar.choice(["yes", "no"]))

Stages run in this order: grammar, logit_bias, allow, deny, stages (written in Python), penalties, dry, temperature, top_k, top_p, min_p,
typical_p, top_n_sigma, xtc, mirostat. For another order use Chain. The options have the meanings of the methods of Chain. seed=None chooses a
random seed, which the property `seed` returns. Penalties count only the tokens of the answer; with penalize_prompt=True they count those of the prompt
too. Only one call at a time may use a sampler. A scheduler makes a fresh copy of the sampler for each request.)")
      .def(
          "__init__",
          [](SamplerHandle* self, float temperature, std::size_t top_k, float top_p, float min_p, float typical_p,
             float top_n_sigma, float repetition_penalty, float frequency_penalty, float presence_penalty,
             std::optional<std::size_t> penalty_last_n, bool penalize_prompt, const nb::object& logit_bias,
             const std::optional<Tokens>& allow, const std::optional<Tokens>& deny, float dry_multiplier,
             float xtc_probability, float xtc_threshold, float mirostat_tau, float mirostat_eta,
             const GrammarArgument& grammar, const std::vector<nb::object>& stages, std::optional<std::uint64_t> seed,
             std::uint32_t stream) {
            new (self) SamplerHandle(make_sampler(
                temperature, top_k, top_p, min_p, typical_p, top_n_sigma, repetition_penalty, frequency_penalty,
                presence_penalty, penalty_last_n, penalize_prompt, logit_bias, allow, deny, dry_multiplier,
                xtc_probability, xtc_threshold, mirostat_tau, mirostat_eta, grammar, stages, seed, stream));
          },
          nb::kw_only(), nb::arg("temperature") = 1.0f, nb::arg("top_k") = 0, nb::arg("top_p") = 1.0f,
          nb::arg("min_p") = 0.0f, nb::arg("typical_p") = 1.0f, nb::arg("top_n_sigma") = 0.0f,
          nb::arg("repetition_penalty") = 1.0f, nb::arg("frequency_penalty") = 0.0f, nb::arg("presence_penalty") = 0.0f,
          nb::arg("penalty_last_n") = nb::none(), nb::arg("penalize_prompt") = false,
          nb::arg("logit_bias") = nb::none(), nb::arg("allow") = nb::none(), nb::arg("deny") = nb::none(),
          nb::arg("dry_multiplier") = 0.0f, nb::arg("xtc_probability") = 0.0f, nb::arg("xtc_threshold") = 0.1f,
          nb::arg("mirostat_tau") = 0.0f, nb::arg("mirostat_eta") = 0.1f, nb::arg("grammar") = nb::none(),
          nb::arg("stages") = nb::make_tuple(), nb::arg("seed") = nb::none(), nb::arg("stream") = 0,
          nb::sig("def __init__(self, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0, min_p: float = "
                  "0.0, typical_p: float = 1.0, "
                  "top_n_sigma: float = 0.0, repetition_penalty: float = 1.0, frequency_penalty: float = 0.0, "
                  "presence_penalty: float = 0.0, "
                  "penalty_last_n: int | None = None, penalize_prompt: bool = False, logit_bias: dict[int, float] | "
                  "None = None, "
                  "allow: collections.abc.Sequence[int] | None = None, deny: collections.abc.Sequence[int] | None = "
                  "None, dry_multiplier: float = 0.0, "
                  "xtc_probability: float = 0.0, xtc_threshold: float = 0.1, mirostat_tau: float = 0.0, mirostat_eta: "
                  "float = 0.1, "
                  "grammar: Grammar | None = None, stages: collections.abc.Sequence[collections.abc.Callable[..., "
                  "object]] = (), "
                  "seed: int | None = None, stream: int = 0) -> None"))
      .def(
          "bind",
          [](const SamplerHandle& self, const EngineHandle& engine) {
            auto claim = self->use.change("sampler");
            take(unlocked([&] { return self->prepare(engine.box().get()); }), *self->failure);
          },
          nb::arg("engine"),
          "Compiles the sampler's grammar for the engine's vocabulary. Sessions and schedulers do this by themselves.")
      .def(
          "sample",
          [](const SamplerHandle& self, const LogitsArgument& logits, const Tokens& history,
             std::optional<std::uint64_t> position, const Tokens& suppressed) {
            return with(self, [&](Sampler& s) {
              return s.sample(values_of(logits), history, position.value_or(history.size()), suppressed);
            });
          },
          nb::arg("logits"), nb::arg("history") = Tokens(), nb::kw_only(), nb::arg("position") = nb::none(),
          nb::arg("suppressed") = Tokens(),
          nb::sig("def sample(self, logits: numpy.typing.NDArray[numpy.float32], history: "
                  "collections.abc.Sequence[int] = (), *, position: int | None = None, "
                  "suppressed: collections.abc.Sequence[int] = ()) -> int"),
          R"(Draws the token at `position` (default: the number of tokens in `history`), and returns it. suppressed: tokens that are never drawn. The sampler
does not change: call accept() with the token that the sequence got.)")
      .def(
          "distribution",
          [](const SamplerHandle& self, const LogitsArgument& logits, const Tokens& history,
             std::optional<std::uint64_t> position) {
            auto tokens = std::make_shared<Tokens>();
            auto probabilities = std::make_shared<std::vector<float>>();
            with(self, [&](Sampler& s) -> Status {
              auto remaining = s.distribution(values_of(logits), history, position.value_or(history.size()));
              if (!remaining) return remaining.error();
              for (const sampling::Candidate& one : *remaining) {
                tokens->push_back(one.token);
                probabilities->push_back(one.probability);
              }
              return {};
            });
            return nb::make_tuple(
                array_of<Token>(std::span<const Token>(*tokens), {tokens->size()}, tokens),
                array_of<float>(std::span<const float>(*probabilities), {probabilities->size()}, probabilities));
          },
          nb::arg("logits"), nb::arg("history") = Tokens(), nb::kw_only(), nb::arg("position") = nb::none(),
          nb::sig("def distribution(self, logits: numpy.typing.NDArray[numpy.float32], history: "
                  "collections.abc.Sequence[int] = (), *, "
                  "position: int | None = None) -> tuple[numpy.typing.NDArray[numpy.int32], "
                  "numpy.typing.NDArray[numpy.float32]]"),
          "Returns the tokens that sample() can draw, and their probabilities.")
      .def(
          "accept",
          [](const SamplerHandle& self, Token token) { with(self, [&](Sampler& s) { return s.accept(token); }); },
          nb::arg("token"), "Tells the stages that the sequence got `token`. Generations call this by themselves.")
      .def(
          "rollback",
          [](const SamplerHandle& self, std::size_t n) { with(self, [&](Sampler& s) { return s.rollback(n); }); },
          nb::arg("n"), "Undoes the last n calls of accept().")
      .def(
          "clone",
          [](const SamplerHandle& self) {
            auto claim = self->use.change("sampler");
            auto box = std::make_shared<SamplerBox>();
            box->spec = self->spec;
            box->failure = self->failure;
            if (self->built) {
              box->sampler = take(unlocked([&] { return self->sampler.clone(); }), *self->failure);
              box->built = true;
            }
            return SamplerHandle(std::move(box));
          },
          "Returns an independent copy with the same seed and accepted tokens.")
      .def_prop_ro("seed", [](const SamplerHandle& self) { return self->spec.seed; })
      .def_prop_ro("stream", [](const SamplerHandle& self) { return self->spec.stream; })
      .def("__repr__", [](const SamplerHandle& self) {
        return "<tessera.Sampler " + self->spec.words + (self->spec.words.empty() ? "" : ", ") +
               "seed=" + std::to_string(self->spec.seed) + ">";
      });
}

}  // namespace tessera::python
