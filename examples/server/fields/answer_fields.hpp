// The fields of requests that every API has, some of them under different names: sampling parameters, limits of the answer's length, stop
// strings, log-probabilities, priority and deadline.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <tessera/extend/chat/reasoning_budget.hpp>
#include <tessera/sampling/options.hpp>
#include <tessera/scheduler/request.hpp>

#include "fields/fields.hpp"
#include "models/served_model.hpp"

namespace server {

// Upper limits of a request's fields. A request with a field beyond its limit is refused. Exception: max_tokens is lowered to its limit.
struct RequestLimits {
  std::size_t max_tokens = 0;       // tokens of an answer; 0: as many as the context has room for
  std::uint32_t samples = 8;        // choices of a request (field `n`)
  std::size_t prompts = 64;         // prompts of one completions or embeddings request
  std::size_t tools = 128;
  std::size_t stops = 16;
  std::uint32_t logprobs = 20;
};

// The client of a request.
struct Caller {
  std::string tenant;  // the tenant's name. KV pages are shared only within a tenant; empty: all clients are one tenant
  std::vector<tessera::AdapterUse> adapters{};  // the adapters that the request asks for
  std::string adapter{};  // the adapter that the request names in place of a model; empty: the request names a model or nothing

  // Returns the name that the answer gives as the model's: the name of `adapter` if there is one, as with vLLM; else `model`.
  [[nodiscard]] const std::string& answering(const std::string& model) const noexcept { return adapter.empty() ? model : adapter; }
};

struct AnswerFields {
  // The defaults are those of the program `generate`, because small models ramble at OpenAI's temperature of 1.
  double temperature = 0.8, top_p = 0.95, min_p = 0.0;
  std::int64_t top_k = 0;
  double repetition_penalty = 1.0, frequency_penalty = 0.0, presence_penalty = 0.0;
  std::size_t repeat_last_n = tessera::sampling::kWholeHistory;
  tessera::sampling::Counted counted = tessera::sampling::Counted::answer;  // tokens that the three penalties count (not DRY)
  double typical_p = 1.0, top_n_sigma = 0.0;
  std::optional<tessera::sampling::DynamicTemperatureOptions> dynamic_temperature{};
  std::optional<tessera::sampling::XtcOptions> xtc{};
  std::optional<tessera::sampling::DryOptions> dry{};
  std::vector<tessera::Token> dry_breakers{};
  std::optional<tessera::sampling::MirostatOptions> mirostat{};
  std::vector<tessera::sampling::TokenBias> biases{};
  std::optional<std::uint64_t> seed{};
  std::uint32_t samples = 1;
  std::size_t max_tokens = 0;  // 0: the request has no limit
  std::size_t context = 0;     // the most tokens of the prompt and the answer; 0: the model's context
  std::vector<std::string> stops{};
  bool stops_in_reasoning = false;  // a stop string ends a chat's reasoning too
  std::vector<tessera::Token> stop_tokens{};
  std::uint32_t logprobs = 0;  // number of likeliest tokens to report with each token; 0: none (see shows_logprobs)
  bool shows_logprobs = false, ignores_eos = false;
  std::int32_t priority = 0;
  double deadline = std::numeric_limits<double>::infinity();  // seconds
};

inline constexpr std::size_t kNoTokens = ~std::size_t{0};
// Reads the limit of an answer's length: the value of the first of the fields `names` that the request has. Returns nullopt if it has none.
// If the value is -1: returns 0, which means as many tokens as the context has room for. If it is 0: returns kNoTokens if `least` is 0;
// otherwise throws ApiError.
[[nodiscard]] std::optional<std::size_t> read_most_tokens(Fields& fields, std::initializer_list<std::string_view> names, std::int64_t least = 1);
// Returns the stop strings, without empty ones, which stop nothing.
[[nodiscard]] std::vector<std::string> read_stops(Fields& fields, std::string_view name, const RequestLimits& limits);
// Reads kDrawingFields (field_rules.hpp) into `answer`: sampling parameters and scheduling fields with the same names on every API.
void read_drawing(Fields& fields, const ServedModel& model, AnswerFields& answer);

// Stages that constrain an answer, in addition to its sampling parameters: a grammar, and a limit of its reasoning.
struct AnswerBounds {
  std::optional<tessera::Matcher> matcher{};
  std::optional<tessera::ReasoningBudget> budget{};
};

// Returns the most tokens of this request's prompt and answer.
[[nodiscard]] std::size_t context_of(const ServedModel& model, const AnswerFields& answer);
// Returns the most tokens of an answer to a prompt of this length. Throws ApiError of status 400 if there is no room for a token.
[[nodiscard]] std::size_t answer_room(const ServedModel& model, const RequestLimits& limits, const AnswerFields& answer, std::size_t prompt);
// Makes the scheduler's request for this prompt. The sampler is greedy if the temperature is 0. Drafts come from the model's draft heads,
// and from a grammar where it allows only one text.
[[nodiscard]] tessera::Request make_request(const ServedModel& model, const RequestLimits& limits, const Caller& caller,
                                            const AnswerFields& answer, std::vector<tessera::Token> prompt,
                                            AnswerBounds bounds);

}  // namespace server
