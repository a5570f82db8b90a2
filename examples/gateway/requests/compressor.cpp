#include "requests/compressor.hpp"

#include <algorithm>
#include <numeric>

#include "requests/values.hpp"

namespace gateway {

using tessera::Json;

namespace {

constexpr std::string_view kFence = "```";

bool is_end(char c) { return c == '.' || c == '!' || c == '?'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// `text` begins with a code block (```). Returns the bytes of the block, up to the end of the line with the closing fence. If there is no
// closing fence, the block reaches to the end of the text.
std::size_t fenced_size(std::string_view text) {
  const std::size_t close = text.find("\n```", kFence.size());
  if (close == text.npos) return text.size();
  const std::size_t line = text.find('\n', close + 1);
  return line == text.npos ? text.size() : line + 1;
}

// Returns the length of the first sentence or line, the white space after it included.
std::size_t sentence_size(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && text[i] != '\n' && !(is_end(text[i]) && (i + 1 == text.size() || is_space(text[i + 1])))) ++i;
  if (i < text.size()) ++i;
  while (i < text.size() && is_space(text[i])) ++i;
  return i;
}

// Returns the member of an object, so that it can be changed; nullptr if it is absent.
Json* find(Json& object, std::string_view key) {
  if (object.members() == nullptr) return nullptr;
  for (auto& [name, value] : *object.members()) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string_view> split_sentences(std::string_view text) {
  std::vector<std::string_view> all;
  bool at_line = true;
  while (!text.empty()) {
    const std::size_t size = at_line && text.starts_with(kFence) ? fenced_size(text) : sentence_size(text);
    all.push_back(text.substr(0, size));
    at_line = all.back().find('\n') != std::string_view::npos;
    text.remove_prefix(size);
  }
  return all;
}

std::string Compressor::shorten(const std::string& text, Saved& saved) const {
  if (text.size() < options_.least_bytes || text.size() > options_.most_bytes) return text;
  const std::vector<std::string_view> sentences = split_sentences(text);
  if (sentences.size() < 3) return text;
  const auto scores = score_(sentences);
  if (!scores || scores->size() != sentences.size()) return text;
  std::vector<std::size_t> order;
  for (std::size_t i = 1; i + 1 < sentences.size(); ++i) {
    const bool is_code = sentences[i].starts_with(kFence);
    if ((*scores)[i].tokens > 0 && (options_.code_too || !is_code)) order.push_back(i);
  }
  const auto mean = [&](std::size_t i) { return (*scores)[i].surprise / static_cast<double>((*scores)[i].tokens); };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return mean(a) < mean(b); });
  const std::size_t all = std::accumulate(scores->begin(), scores->end(), std::size_t{0}, [](std::size_t sum, const SentenceScore& s) { return sum + s.tokens; });
  const double budget = options_.keep * static_cast<double>(all);
  std::size_t left = all;
  std::vector<bool> is_out(sentences.size());
  for (const std::size_t i : order) {
    if (static_cast<double>(left) <= budget) break;
    is_out[i] = true;
    left -= (*scores)[i].tokens;
  }
  std::string result;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    if (!is_out[i]) result += sentences[i];
  }
  saved.before += all;
  saved.after += left;
  return result;
}

Compressor::Saved Compressor::shorten(Api api, Json& body) const {
  Saved saved;
  const auto shorten_text = [&](Json* text) {
    if (text != nullptr && text->string() != nullptr) *text = Json(shorten(*text->string(), saved));
  };
  if (api == Api::completions) {
    shorten_text(find(body, "prompt"));
    return saved;
  }
  Json* messages = find(body, "messages");
  if (messages == nullptr || messages->elements() == nullptr) return saved;
  for (Json& message : *messages->elements()) {
    const std::string* role = text_at(message, "role");
    if (role == nullptr || !(*role == "user" || (options_.system_too && (*role == "system" || *role == "developer")))) continue;
    Json* content = find(message, "content");
    shorten_text(content);
    if (content == nullptr || content->elements() == nullptr) continue;
    for (Json& part : *content->elements()) shorten_text(find(part, "text"));
  }
  return saved;
}

}  // namespace gateway
