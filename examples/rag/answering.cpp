#include "answering.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "failure.hpp"

namespace rag {

using namespace tessera;

namespace {

constexpr std::size_t kAllowedRepeat = 6;  // tokens of the answer that may repeat without a penalty

// Returns the text of a passage in a prompt. The passage's number is its place in the prompt, which is the same in a saved chain.
std::string source_text(std::size_t number, std::string_view passage) { return fmt::format("[{}] {}\n\n", number, passage); }

}  // namespace

std::string beginning(const Engine& engine, std::string_view model, const AnsweringOptions& options) {
  return fmt::format("{}\n{}\n{}\n{}", model, engine.spec().name, to_string(engine.plan().kv_dtype), options.instructions);
}

Conversation Answerer::conversation(std::span<const std::string> passages, std::string_view question) const {
  std::string text = "Sources:\n\n";
  for (std::size_t i = 0; i < passages.size(); ++i) text += source_text(i + 1, passages[i]);
  text += fmt::format("Question: {}", question);
  ChatRequest request{.messages = {{.role = "system", .content = options_.instructions}, {.role = "user", .content = std::move(text)}}};
  request.arguments.emplace_back("enable_thinking", false);
  return value(Conversation::create(engine_, std::move(request)));
}

bool Answerer::fits(std::span<const std::string> passages, std::string_view question) const {
  const auto prompt = conversation(passages, question).prompt();
  if (!prompt && prompt.error().code() != ErrorCode::cache_full) throw Failure(prompt.error());
  return prompt && prompt->size() + std::min<std::size_t>(options_.max_tokens, engine_.plan().context / 4) <= engine_.plan().context;
}

AnswerReport Answerer::answer(std::string_view question, std::span<const Found> found, const std::stop_token& stop,
                              const std::function<void(std::string_view)>& write) {
  const auto start = std::chrono::steady_clock::now();
  const auto since_start = [start] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::vector<std::string> texts;
  for (const Found& each : found) texts.push_back(fmt::format("{} ({})\n{}", each.passage.heading, each.passage.path, each.passage.text));
  while (!texts.empty() && !fits(texts, question)) texts.pop_back();
  if (texts.empty()) {
    throw Failure(ErrorCode::cache_full, fmt::format("no source fits into the model's context of {} tokens: index with a smaller --passage-tokens, or take another model", engine_.plan().context));
  }

  const PassageOrder order = saved_.best_order(texts);
  const bool was_restored = !order.file.empty() && saved_.restore(engine_, order.file);
  AnswerReport report;
  std::vector<std::string> passages;
  for (const std::size_t i : order.order) {
    passages.push_back(texts[i]);
    report.sources.push_back(found[i]);
  }

  Conversation talk = conversation(passages, question);
  const std::vector<Token> prompt = value(talk.prompt());
  sampling::Chain chain;
  chain.dry({.allowed_length = kAllowedRepeat});  // small models repeat a sentence without end
  if (options_.temperature > 0.0f) chain.temperature(options_.temperature).seed(options_.seed);
  else chain.greedy();
  Sampler sampler = chain.build();
  Answer answer = value(talk.answer(sampler, {.max_tokens = options_.max_tokens, .stop = stop}));
  while (const auto delta = answer.next()) {
    if (report.seconds_to_first == 0.0) report.seconds_to_first = since_start();
    if (delta->kind != OutputDelta::Kind::text) continue;
    report.text += delta->text;
    write(delta->text);
  }
  if (const auto status = answer.status(); !status) throw Failure(status.error());
  report.finish = answer.finish_reason();
  report.tokens = answer.figures().tokens;
  report.prompt_tokens = prompt.size();
  report.reused_tokens = talk.session().reused();
  report.seconds = since_start();
  if (!was_restored || order.saved < passages.size()) {
    try {
      save(passages, prompt);
    } catch (const Failure& failure) {
      report.warning = fmt::format("the sources' keys and values were not saved: {}", failure.what());
    }
  }
  return report;
}

// Saves the prompt up to the end of its passages: the tokens that prompts with the same passages and other questions share.
void Answerer::save(std::span<const std::string> passages, const std::vector<Token>& prompt) {
  const std::vector<Token> other = value(conversation(passages, "?").prompt()), another = value(conversation(passages, "Why?").prompt());
  const auto shared = [&prompt](const std::vector<Token>& tokens) {
    return static_cast<std::size_t>(std::ranges::mismatch(prompt, tokens).in1 - prompt.begin());
  };
  saved_.save(engine_, std::span(prompt).first(std::min(shared(other), shared(another))), passages);
}

}  // namespace rag
