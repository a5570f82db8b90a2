#include "answer_fields.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include <fmt/format.h>

#include <tessera/decoding/drafters.hpp>
#include <tessera/sampling/chain.hpp>

namespace server {

using tessera::Json;

namespace {

constexpr std::int64_t kMostInteger = std::int64_t{1} << 53;  // what JavaScript can say

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
    // OpenAI: -100 and 100 are a ban and a choice of this token alone.
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
                     .last_n = static_cast<std::size_t>(a.repeat_last_n)});
  }
  if (a.temperature == 0.0) {
    chain.greedy();
  } else {
    chain.temperature(static_cast<float>(a.temperature)).top_k(static_cast<std::size_t>(a.top_k));
    if (a.top_p < 1.0) chain.top_p(static_cast<float>(a.top_p));
    if (a.min_p > 0.0) chain.min_p(static_cast<float>(a.min_p));
  }
  return chain.build();
}

}  // namespace

void read_drawing(Fields& fields, const ServedModel& model, AnswerFields& a) {
  a.temperature = fields.number("temperature", 0.0, 5.0).value_or(a.temperature);
  a.top_p = fields.number("top_p", 0.0, 1.0).value_or(a.top_p);
  if (a.top_p == 0.0) a.temperature = 0.0;  // the likeliest token alone
  a.min_p = fields.number("min_p", 0.0, 1.0).value_or(a.min_p);
  const std::int64_t top_k = fields.integer("top_k", -1, kMostInteger).value_or(a.top_k);
  a.top_k = std::max<std::int64_t>(top_k, 0);  // vLLM: -1 is all
  a.repetition_penalty = fields.number("repetition_penalty", 0.01, 10.0).value_or(a.repetition_penalty);
  a.frequency_penalty = fields.number("frequency_penalty", -2.0, 2.0).value_or(a.frequency_penalty);
  a.presence_penalty = fields.number("presence_penalty", -2.0, 2.0).value_or(a.presence_penalty);
  a.repeat_last_n = fields.integer("repeat_last_n", 0, kMostInteger).value_or(a.repeat_last_n);
  a.biases = read_biases(fields, model);
  if (const auto seed = fields.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max())) {
    a.seed = static_cast<std::uint64_t>(*seed);
  }
  a.priority = static_cast<std::int32_t>(fields.integer("priority", -1000, 1000).value_or(0));
  if (const auto deadline = fields.number("deadline_ms", 1.0, 1e9)) a.deadline = *deadline * 1e-3;
  a.ignores_eos = fields.boolean("ignore_eos").value_or(false);
}

std::size_t answer_room(const ServedModel& model, const RequestLimits& limits, const AnswerFields& a, std::size_t prompt) {
  if (prompt == 0) throw ApiError(400, "The prompt is empty, and this model does not begin with a token of its own.", "prompt");
  if (prompt >= model.context()) {
    throw ApiError(400,
                   fmt::format("This model's context is {} tokens, and the prompt has {}: there is no room for an answer. Shorten it.",
                               model.context(), prompt),
                   {}, "context_length_exceeded");
  }
  const std::size_t room = model.context() - prompt;
  const std::size_t most = a.max_tokens != 0 ? std::min(a.max_tokens, room) : room;
  return limits.max_tokens != 0 ? std::min(most, limits.max_tokens) : most;
}

tessera::Request make_request(const ServedModel& model, const RequestLimits& limits, const Caller& caller, const AnswerFields& a,
                              std::vector<tessera::Token> prompt, AnswerBounds bounds) {
  const std::size_t most = answer_room(model, limits, a, prompt.size());
  tessera::Request request{.prompt = std::move(prompt)};
  request.session_options.kv.salt = caller.tenant;
  if (bounds.matcher) request.generate.speculate.drafter = value_or_refuse(tessera::forced_drafter());
  request.sampler = make_sampler(a, std::move(bounds));
  request.generate.max_tokens = most;
  request.generate.stop_strings = a.stops;
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
