#include "requests/question.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api_error.hpp"
#include "requests/values.hpp"

namespace gateway {

using server::ApiError;
using tessera::Json;

namespace {

constexpr double kDefaultTemperature = 1.0;  // OpenAI's

// Fields that do not change an answer's content.
constexpr std::array<std::string_view, 8> kWithoutEffect = {"stream", "stream_options", "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"};
// Fields whose answers hold more than a text.
constexpr std::array<std::string_view, 8> kNotText = {"logprobs", "top_logprobs", "logit_bias", "audio", "modalities", "echo", "suffix", "prediction"};

// Returns a message's content if it is only text: a string, or parts of type text. Otherwise returns nullopt.
std::optional<std::string> text_of(const Json* content) {
  if (content == nullptr) return std::nullopt;
  if (content->string() != nullptr) return *content->string();
  if (content->elements() == nullptr) return std::nullopt;
  std::string all;
  for (const Json& part : *content->elements()) {
    const std::string* type = text_at(part, "type");
    const std::string* text = text_at(part, "text");
    if (type == nullptr || *type != "text" || text == nullptr) return std::nullopt;
    all += *text;
  }
  return all;
}

// Writes the members in the order of their names, so that requests that differ only in the order of members have the same context.
std::string context_of(const Json::Object& members, std::string_view without, const std::string& instead) {
  std::vector<std::pair<std::string_view, const Json*>> sorted;
  for (const auto& [key, value] : members) {
    if (std::ranges::find(kWithoutEffect, key) == kWithoutEffect.end() && key != without) sorted.emplace_back(key, &value);
  }
  std::ranges::sort(sorted, {}, [](const auto& each) { return each.first; });
  std::string all = instead;
  for (const auto& [key, value] : sorted) {
    all += fmt::format("\n{}={}", key, value->dump());
  }
  return all;
}

void read_messages(Question& q) {
  const Json* messages = q.body.find("messages");
  if (messages == nullptr || messages->elements() == nullptr || messages->elements()->empty()) {
    throw ApiError(400, "messages must be a list of at least one message.", "messages");
  }
  const Json::Array& all = *messages->elements();
  q.turns = static_cast<std::size_t>(std::ranges::count_if(all, [](const Json& each) {
    const std::string* role = text_at(each, "role");
    return role != nullptr && *role == "user";
  }));
  const std::string* role = text_at(all.back(), "role");
  const auto text = text_of(all.back().find("content"));
  if (role == nullptr || *role != "user") q.never_cached = "the last message is not the user's";
  else if (!text) q.never_cached = "the last message is not a text";
  q.text = text.value_or("");
  // All messages, but the last one without its content, which is the question's text.
  Json::Array others(all.begin(), all.end() - 1);
  Json::Object of_last;
  if (const Json::Object* members = all.back().members()) {
    std::ranges::copy_if(*members, std::back_inserter(of_last), [](const auto& member) { return member.first != "content"; });
  }
  others.emplace_back(std::move(of_last));
  q.context = context_of(*q.body.members(), "messages", Json(std::move(others)).dump());
}

void read_prompt(Question& q) {
  const Json* prompt = q.body.find("prompt");
  if (prompt == nullptr) throw ApiError(400, "prompt must be a text.", "prompt");
  if (prompt->string() == nullptr) q.never_cached = "the prompt is not one text";
  else q.text = *prompt->string();
  q.context = context_of(*q.body.members(), "prompt", "");
}

std::string why_never(const Question& q, const CacheLimits& limits) {
  if (q.has_tools) return "tools";
  if (number_at(q.body, "n").value_or(1) > 1 || number_at(q.body, "best_of").value_or(1) > 1) return "several answers";
  if (number_at(q.body, "temperature").value_or(kDefaultTemperature) > limits.temperature) return "temperature";
  for (const std::string_view field : kNotText) {
    if (has(q.body, field) && !(q.body.find(field)->boolean() != nullptr && !*q.body.find(field)->boolean())) return std::string(field);
  }
  if (q.turns > limits.turns) return "a long conversation";
  if (q.text.size() > limits.text_bytes) return "a long text";
  return q.text.empty() ? "no text" : "";
}

Json read_body(std::string_view body) {
  auto parsed = Json::parse(body, {.numbers_as_written = true, .refuse_half_pairs = true, .most_values = 1'000'000});
  if (!parsed) throw ApiError(400, fmt::format("The body is not JSON: {}", parsed.error().text()));
  if (parsed->members() == nullptr) throw ApiError(400, "The body must be a JSON object.");
  return *std::move(parsed);
}

}  // namespace

void put_away(Question& question) noexcept {
  question.body = Json();
  std::string().swap(question.context);
}

void take_up(Question& question) {
  if (question.body.is_null()) question.body = read_body(question.written);
}

Question read_question(Api api, std::string_view body, const CacheLimits& limits) {
  Question q{.api = api, .written = body, .body = read_body(body)};
  if (api == Api::chat) read_messages(q);
  else read_prompt(q);
  const Json* stream = q.body.find("stream");
  if (stream != nullptr && !stream->is_null() && stream->boolean() == nullptr) throw ApiError(400, "stream must be true or false.", "stream");
  q.streams = is_true(q.body, "stream");
  const Json* options = q.body.find("stream_options");
  q.wants_usage = options != nullptr && is_true(*options, "include_usage");
  q.wants_logprobs = api == Api::chat ? is_true(q.body, "logprobs") : has(q.body, "logprobs");
  const auto is_filled = [&](std::string_view key) {
    const Json* list = q.body.find(key);
    return list != nullptr && list->elements() != nullptr && !list->elements()->empty();
  };
  q.has_tools = is_filled("tools") || is_filled("functions");
  if (q.never_cached.empty()) q.never_cached = why_never(q, limits);
  return q;
}

}  // namespace gateway
