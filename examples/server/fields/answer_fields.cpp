#include "fields/answer_fields.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include <fmt/format.h>

#include <tessera/decoding/drafters.hpp>
#include <tessera/sampling/chain.hpp>

namespace server {

using tessera::Json;

namespace {

constexpr std::int64_t kMostInteger = std::int64_t{1} << 53;  // 2^53: JavaScript has all integers up to this exactly

std::vector<tessera::sampling::TokenBias> read_biases(Fields& fields, const ServedModel& model) {
  std::vector<tessera::sampling::TokenBias> biases;
  const Json* given = fields.object("logit_bias");
  if (given == nullptr) return biases;
  for (const auto& [key, value] : *given->members()) {
    std::int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || static_cast<std::uint64_t>(id) >= model.engine().spec().vocab_size) {
      fields.refuse("logit_bias", fmt::format("\"{}\" is no token of this model; /tokenize says which there are.", key));
    }
    const double* real = value.number();
    const std::int64_t* whole = value.integer();
    if (real == nullptr && whole == nullptr) fields.refuse("logit_bias", "A bias must be a number.");
    const double bias = real != nullptr ? *real : static_cast<double>(*whole);
    if (!(bias >= -100.0 && bias <= 100.0)) fields.refuse("logit_bias", "A bias must be a number from -100 to 100.");
    // With OpenAI, -100 bans a token, so it becomes minus infinity. 100 stays as it is: it makes the token practically the only choice.
    constexpr float kInfinite = std::numeric_limits<float>::infinity();
    biases.push_back({static_cast<tessera::Token>(id), bias == -100.0 ? -kInfinite : static_cast<float>(bias)});
  }
  return biases;
}

tessera::Sampler make_sampler(const AnswerFields& a, AnswerBounds bounds) {
  auto chain = tessera::sampling::chain();
  chain.seed(a.seed ? *a.seed : std::random_device{}());
  if (bounds.matcher) chain.stage(tessera::sampling::GrammarStage{*std::move(bounds.matcher)});
  if (bounds.budget) chain.stage(*std::move(bounds.budget));
  if (!a.biases.empty()) chain.logit_bias(a.biases);
  if (a.repetition_penalty != 1.0 || a.frequency_penalty != 0.0 || a.presence_penalty != 0.0) {
    chain.penalties({.repetition = static_cast<float>(a.repetition_penalty),
                     .frequency = static_cast<float>(a.frequency_penalty),
                     .presence = static_cast<float>(a.presence_penalty),
                     .last_n = a.repeat_last_n,
                     .counted = a.counted});
  }
  if (a.dry) {
    auto dry = *a.dry;
    dry.breakers = a.dry_breakers;
    chain.dry(dry);
  }
  if (a.temperature == 0.0) {
    chain.greedy();
    return chain.build();
  }
  if (a.top_n_sigma > 0.0) chain.top_n_sigma(static_cast<float>(a.top_n_sigma));
  if (a.dynamic_temperature) chain.dynamic_temperature(*a.dynamic_temperature);
  else chain.temperature(static_cast<float>(a.temperature));
  if (a.mirostat) {  // mirostat replaces top-k, typical-p, top-p, min-p and XTC, as in llama.cpp
    chain.mirostat(*a.mirostat);
    return chain.build();
  }
  chain.top_k(static_cast<std::size_t>(a.top_k));
  if (a.typical_p < 1.0) chain.typical_p(static_cast<float>(a.typical_p));
  if (a.top_p < 1.0) chain.top_p(static_cast<float>(a.top_p));
  if (a.min_p > 0.0) chain.min_p(static_cast<float>(a.min_p));
  if (a.xtc) chain.xtc(*a.xtc);
  return chain.build();
}

// Returns the tokens whose text contains at least one of these texts.
std::vector<tessera::Token> tokens_with(const tessera::Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  std::vector<tessera::Token> found;
  for (std::size_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const auto token = static_cast<tessera::Token>(i);
    const std::string_view piece = tokenizer.piece(token);
    if (std::ranges::any_of(texts, [&](const std::string& text) { return !text.empty() && piece.find(text) != piece.npos; })) found.push_back(token);
  }
  return found;
}

// Returns which tokens the penalties count. Default: only the answer's tokens, as with OpenAI. If the request has llama.cpp's field for the
// number of tokens to look back at (`looks_back`): the prompt's tokens too, as with llama.cpp. If the request has the field
// `penalize_prompt`, this field decides.
tessera::sampling::Counted read_counted(Fields& fields, bool looks_back) {
  using tessera::sampling::Counted;
  return fields.boolean("penalize_prompt").value_or(looks_back) ? Counted::sequence : Counted::answer;
}

void read_dry(Fields& fields, const ServedModel& model, AnswerFields& a) {
  tessera::sampling::DryOptions dry;
  dry.multiplier = static_cast<float>(fields.number("dry_multiplier", 0.0, 100.0).value_or(0.0));
  dry.base = static_cast<float>(fields.number("dry_base", 1.0, 100.0).value_or(1.75));
  dry.allowed_length = static_cast<std::size_t>(fields.integer("dry_allowed_length", 1, 1 << 20).value_or(2));
  const auto last_n = fields.integer("dry_penalty_last_n", -1, kMostInteger);
  if (last_n && *last_n >= 0) dry.last_n = static_cast<std::size_t>(*last_n);
  dry.counted = read_counted(fields, last_n.has_value());
  std::vector<std::string> breakers = fields.texts("dry_sequence_breakers", 64);
  if (breakers.empty()) breakers = {"\n", ":", "\"", "*"};  // llama.cpp's
  if (dry.multiplier == 0.0f || dry.last_n == 0) return;
  a.dry = dry;
  a.dry_breakers = tokens_with(model.tokenizer(), breakers);
}

// Reads the rarer sampling parameters: all except temperature, top_k, top_p, min_p and the penalties.
void read_rarer_ways(Fields& fields, const ServedModel& model, AnswerFields& a) {
  a.typical_p = fields.number("typical_p", 0.01, 1.0).value_or(1.0);
  a.top_n_sigma = std::max(fields.number("top_n_sigma", -1.0, 100.0).value_or(0.0), 0.0);
  const double range = fields.number("dynatemp_range", 0.0, 5.0).value_or(0.0), exponent = fields.number("dynatemp_exponent", 0.01, 100.0).value_or(1.0);
  if (range > 0.0 && a.temperature > 0.0) {
    a.dynamic_temperature = {.low = static_cast<float>(std::max(a.temperature - range, 0.0)), .high = static_cast<float>(a.temperature + range),
                             .exponent = static_cast<float>(exponent)};
  }
  const double xtc = fields.number("xtc_probability", 0.0, 1.0).value_or(0.0), threshold = fields.number("xtc_threshold", 0.001, 1.0).value_or(0.1);
  if (xtc > 0.0) a.xtc = {.probability = static_cast<float>(xtc), .threshold = static_cast<float>(threshold)};
  const auto mirostat = fields.integer("mirostat", 0, 2).value_or(0);
  const double tau = fields.number("mirostat_tau", 0.01, 100.0).value_or(5.0), eta = fields.number("mirostat_eta", 0.0001, 1.0).value_or(0.1);
  if (mirostat == 1) fields.refuse("mirostat", "Only version 2 is supported: send 2, or 0 for none.");
  if (mirostat == 2) a.mirostat = {.tau = static_cast<float>(tau), .eta = static_cast<float>(eta)};
  read_dry(fields, model, a);
}

}  // namespace

std::optional<std::size_t> read_most_tokens(Fields& fields, std::initializer_list<std::string_view> names, std::int64_t least) {
  std::optional<std::size_t> most;
  for (const std::string_view name : names) {
    const auto given = fields.integer(name, -1, 1 << 30);
    if (given == 0 && least > 0) fields.refuse(name, "This must be a whole number from 1 on, or -1 for as many as there is room for.");
    if (given == 0 && !most) return kNoTokens;
    if (given && !most) most = static_cast<std::size_t>(std::max<std::int64_t>(*given, 0));
  }
  return most;
}

std::vector<std::string> read_stops(Fields& fields, std::string_view name, const RequestLimits& limits) {
  std::vector<std::string> stops = fields.texts(name, limits.stops);
  std::erase(stops, "");
  return stops;
}

void read_drawing(Fields& fields, const ServedModel& model, AnswerFields& a) {
  a.temperature = fields.number("temperature", 0.0, 5.0).value_or(a.temperature);
  a.top_p = fields.number("top_p", 0.0, 1.0).value_or(a.top_p);
  if (a.top_p == 0.0) a.temperature = 0.0;  // only the likeliest token
  a.min_p = fields.number("min_p", 0.0, 1.0).value_or(a.min_p);
  const std::int64_t top_k = fields.integer("top_k", -1, kMostInteger).value_or(a.top_k);
  a.top_k = std::max<std::int64_t>(top_k, 0);  // vLLM: -1 means all tokens
  const auto repeat = fields.number("repeat_penalty", 0.01, 10.0);  // llama.cpp's name
  a.repetition_penalty = fields.number("repetition_penalty", 0.01, 10.0).value_or(repeat.value_or(a.repetition_penalty));
  a.frequency_penalty = fields.number("frequency_penalty", -2.0, 2.0).value_or(a.frequency_penalty);
  a.presence_penalty = fields.number("presence_penalty", -2.0, 2.0).value_or(a.presence_penalty);
  const auto last_n = fields.integer("repeat_last_n", -1, kMostInteger);
  if (last_n && *last_n >= 0) a.repeat_last_n = static_cast<std::size_t>(*last_n);  // llama.cpp: -1 means the whole context
  a.counted = read_counted(fields, last_n.has_value());
  read_rarer_ways(fields, model, a);
  a.biases = read_biases(fields, model);
  if (const auto seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())) {
    if (*seed != -1) a.seed = static_cast<std::uint64_t>(*seed);  // vLLM and llama.cpp: -1 means any seed
  }
  a.priority = static_cast<std::int32_t>(fields.integer("priority", -1000, 1000).value_or(0));
  if (const auto deadline = fields.number("deadline_ms", 1.0, 1e9)) a.deadline = *deadline * 1e-3;
  a.stops_in_reasoning = fields.boolean("stop_in_reasoning").value_or(false);
  a.ignores_eos = fields.boolean("ignore_eos").value_or(false);
  if (const Json::Array* ids = fields.list("stop_token_ids")) {
    for (const Json& id : *ids) {
      if (id.integer() == nullptr || *id.integer() < 0 || static_cast<std::uint64_t>(*id.integer()) >= model.engine().spec().vocab_size) {
        fields.refuse("stop_token_ids", "These must be ids of tokens in the model's vocabulary.");
      }
      a.stop_tokens.push_back(static_cast<tessera::Token>(*id.integer()));
    }
  }
}

std::size_t context_of(const ServedModel& model, const AnswerFields& a) { return a.context != 0 ? std::min(a.context, model.context()) : model.context(); }

std::size_t answer_room(const ServedModel& model, const RequestLimits& limits, const AnswerFields& a, std::size_t prompt) {
  const std::size_t context = context_of(model, a);
  if (prompt == 0) throw ApiError(400, "The prompt is empty, and this model does not begin with a token of its own.", "prompt");
  if (prompt >= context) {
    throw ApiError(400,
                   fmt::format("{} is {} tokens, and the prompt has {}: there is no room for an answer. Shorten it.",
                               a.context == 0 ? "This model's context" : "The context that the request asks for",
                               context, prompt),
                   {}, "context_length_exceeded");
  }
  const std::size_t room = context - prompt;
  const std::size_t most = a.max_tokens != 0 ? std::min(a.max_tokens, room) : room;
  return limits.max_tokens != 0 ? std::min(most, limits.max_tokens) : most;
}

tessera::Request make_request(const ServedModel& model, const RequestLimits& limits, const Caller& caller, const AnswerFields& a,
                              std::vector<tessera::Token> prompt, AnswerBounds bounds) {
  const std::size_t most = answer_room(model, limits, a, prompt.size());
  tessera::Request request{.prompt = std::move(prompt)};
  request.session_options.kv.salt = caller.tenant;
  request.session_options.adapters = caller.adapters;
  auto& drafter = request.generate.speculate.drafter;
  if (model.engine().spec().has_draft_heads()) drafter = value_or_refuse(tessera::head_drafter());
  if (bounds.matcher) drafter = value_or_refuse(tessera::forced_drafter(std::move(drafter)));
  request.sampler = make_sampler(a, std::move(bounds));
  request.generate.max_tokens = most;
  request.generate.stop_strings = a.stops;
  request.generate.stop_tokens = a.stop_tokens;
  request.generate.logprobs = a.shows_logprobs ? std::max<std::uint32_t>(a.logprobs, 1) : 0;
  if (a.ignores_eos) request.generate.end_of_generation = tessera::EndOfGeneration::ignore;
  request.samples = a.samples;
  request.priority = a.priority;
  request.deadline = a.deadline;
  request.if_late = tessera::IfLate::refuse;
  request.tenant = caller.tenant;
  return request;
}

}  // namespace server
