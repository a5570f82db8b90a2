// The fields of a request that all of the APIs have, under one name or another: how tokens are drawn, how many, and for whom.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <tessera/chat/reasoning_budget.hpp>
#include <tessera/sampling/options.hpp>
#include <tessera/scheduler/request.hpp>

#include "fields.hpp"
#include "served_model.hpp"

namespace server {

// What a request may ask for at most.
struct RequestLimits {
  std::size_t max_tokens = 0;       // of an answer; 0: what the context has room for
  std::uint32_t samples = 8;        // n
  std::size_t prompts = 64;         // of one completions or embeddings request
  std::size_t tools = 128;
  std::size_t stops = 16;
  std::uint32_t logprobs = 20;
};

// Whose request it is.
struct Caller {
  std::string tenant;  // its prompts share pages with its own alone; empty: nobody is told apart
};

struct AnswerFields {
  // As generate has them: small models ramble at OpenAI's 1.
  double temperature = 0.8, top_p = 0.95, min_p = 0.0;
  std::int64_t top_k = 0;
  double repetition_penalty = 1.0, frequency_penalty = 0.0, presence_penalty = 0.0;
  std::size_t repeat_last_n = tessera::sampling::kWholeHistory;
  tessera::sampling::Counted counted = tessera::sampling::Counted::answer;  // what the three penalties count; DRY has its own
  double typical_p = 1.0, top_n_sigma = 0.0;
  std::optional<tessera::sampling::DynamicTemperatureOptions> dynamic_temperature{};
  std::optional<tessera::sampling::XtcOptions> xtc{};
  std::optional<tessera::sampling::DryOptions> dry{};
  std::vector<tessera::Token> dry_breakers{};
  std::optional<tessera::sampling::MirostatOptions> mirostat{};
  std::vector<tessera::sampling::TokenBias> biases{};
  std::optional<std::uint64_t> seed{};
  std::uint32_t samples = 1;
  std::size_t max_tokens = 0;  // 0: not said
  std::size_t context = 0;     // tokens of the prompt and the answer at most; 0: as many as the model's context
  std::vector<std::string> stops{};
  bool stops_in_reasoning = false;  // a stop string ends a chat's reasoning too
  std::vector<tessera::Token> stop_tokens{};
  std::uint32_t logprobs = 0;  // the likeliest tokens that are told with each; 0: none, and `shows_logprobs` says whether its own
  bool shows_logprobs = false, ignores_eos = false;
  std::int32_t priority = 0;
  double deadline = std::numeric_limits<double>::infinity();  // seconds
};

inline constexpr std::size_t kNoTokens = ~std::size_t{0};
// Tokens of an answer at most, by the first of these fields that is there; -1 is 0, as many as there is room for. 0 is kNoTokens
// where `least` is 0, else an ApiError.
[[nodiscard]] std::optional<std::size_t> read_most_tokens(Fields& fields, std::initializer_list<std::string_view> names, std::int64_t least = 1);
// Stop strings; empty ones stop nothing.
[[nodiscard]] std::vector<std::string> read_stops(Fields& fields, std::string_view name, const RequestLimits& limits);
// How tokens are drawn and for whom: the fields that all APIs share (field_rules.cpp), temperature to dynatemp_exponent.
void read_drawing(Fields& fields, const ServedModel& model, AnswerFields& answer);

// What holds an answer, beside how it is drawn.
struct AnswerBounds {
  std::optional<tessera::Matcher> matcher{};
  std::optional<tessera::ReasoningBudget> budget{};
};

// Tokens of the prompt and the answer of this request at most.
[[nodiscard]] std::size_t context_of(const ServedModel& model, const AnswerFields& answer);
// Tokens that an answer to a prompt of this length may have. The prompt must leave room for one (ApiError, 400).
[[nodiscard]] std::size_t answer_room(const ServedModel& model, const RequestLimits& limits, const AnswerFields& answer, std::size_t prompt);
// A request of the scheduler for this prompt. With temperature 0 it is greedy. What a grammar forces is drafted.
[[nodiscard]] tessera::Request make_request(const ServedModel& model, const RequestLimits& limits, const Caller& caller,
                                            const AnswerFields& answer, std::vector<tessera::Token> prompt,
                                            AnswerBounds bounds);

}  // namespace server
