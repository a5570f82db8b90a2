// The C ABI for tests in C++: handles that free themselves, and an engine of the small model on both sides.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera.h>
#include <tessera/tessera.hpp>

#include "engine/models.hpp"

namespace tessera::test {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* handle) const noexcept {
    Free(handle);
  }
};
using CError = std::unique_ptr<tessera_error, Freed<tessera_error_free>>;
using CText = std::unique_ptr<tessera_text, Freed<tessera_text_free>>;
using CTokens = std::unique_ptr<tessera_tokens, Freed<tessera_tokens_free>>;
using CStop = std::unique_ptr<tessera_stop, Freed<tessera_stop_free>>;
using CEngine = std::unique_ptr<tessera_engine, Freed<tessera_engine_free>>;
using CDetokenizer = std::unique_ptr<tessera_detokenizer, Freed<tessera_detokenizer_free>>;
using CSession = std::unique_ptr<tessera_session, Freed<tessera_session_free>>;
using COutputs = std::unique_ptr<tessera_outputs, Freed<tessera_outputs_free>>;
using CSampler = std::unique_ptr<tessera_sampler, Freed<tessera_sampler_free>>;
using CGrammar = std::unique_ptr<tessera_grammar, Freed<tessera_grammar_free>>;
using CGeneration = std::unique_ptr<tessera_generation, Freed<tessera_generation_free>>;
using CConversation = std::unique_ptr<tessera_conversation, Freed<tessera_conversation_free>>;
using CAnswer = std::unique_ptr<tessera_answer, Freed<tessera_answer_free>>;
using CScheduler = std::unique_ptr<tessera_scheduler, Freed<tessera_scheduler_free>>;
using CAdapter = std::unique_ptr<tessera_adapter, Freed<tessera_adapter_free>>;
using CRequest = std::unique_ptr<tessera_request, Freed<tessera_request_free>>;

// Takes the result of a call that makes a handle: made<CSession>([&](auto out, auto error) { return
// tessera_session_create(..., out, error); }).
template <class Owner, class Call>
Owner made(Call&& call) {
  typename Owner::pointer handle = nullptr;
  tessera_error* error = nullptr;
  const std::int32_t code = call(&handle, &error);
  const CError owned(error);
  if (code != TESSERA_OK) FAIL(tessera_error_text(error));
  return Owner(handle);
}

// Runs a call that must succeed.
template <class Call>
void succeed(Call&& call) {
  tessera_error* error = nullptr;
  const std::int32_t code = call(&error);
  const CError owned(error);
  if (code != TESSERA_OK) FAIL(tessera_error_text(error));
}
// Returns the first word in an error's text that only the C++ API has: a function that does not begin with tessera_, a
// name with ::, a class. Empty: there is none.
inline std::string cpp_word_in(std::string_view text) {
  constexpr std::string_view kClasses[] = {
      "Session",   "Generation", "Sampler", "Result",        "Engine",         "Answer",          "Conversation",
      "Scheduler", "Request",    "Driver",  "RequestHandle", "Grammar",        "Matcher",         "Outputs",
      "Batch",     "Error",      "Status",  "BeamOptions",   "kNoTokenBudget", "session_options", "default-constructed",
      "destroy",   "destroyed",  "Adapter"};
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at), rest = text.substr(end);
    const bool is_call = rest.starts_with("()") && !word.empty() && !word.starts_with("tessera_");
    if (is_call || rest.starts_with("::") || std::ranges::find(kClasses, word) != std::end(kClasses))
      return std::string(word);
    at = end + 1;
  }
  return {};
}

// Runs a call that must fail with a code, and returns the error's text.
template <class Call>
std::string failure(std::int32_t wanted, Call&& call) {
  tessera_error* error = nullptr;
  const std::int32_t code = call(&error);
  const CError owned(error);
  CHECK(code == wanted);
  CHECK(tessera_error_code(error) == code);
  CHECK(cpp_word_in(tessera_error_text(error)) == "");
  return tessera_error_text(error);
}

template <class Options>
Options options_of([[maybe_unused]] const char* json = nullptr) {
  Options options;
  tessera_options_init(&options, sizeof options);
  if constexpr (requires { options.json; }) {
    options.json = json;
    options.json_size = json != nullptr ? std::string_view(json).size() : 0;
  }
  return options;
}

inline std::filesystem::path story_model() { return source_dir() / "models/tessera-stories.gguf"; }

inline CEngine c_engine(const std::filesystem::path& path, const char* json = "{\"threads\": 2}") {
  const auto options = options_of<tessera_engine_options>(json);
  const std::string name = path.string();
  return made<CEngine>(
      [&](auto out, auto error) { return tessera_engine_load(name.data(), name.size(), &options, out, error); });
}

inline CTokens c_tokens(const CEngine& engine, std::string_view text) {
  return made<CTokens>([&](auto out, auto error) {
    return tessera_encode(engine.get(), text.data(), text.size(), TESSERA_BOS_AS_MODEL, TESSERA_SPECIAL_AS_TEXT, out,
                          error);
  });
}
inline std::vector<Token> vector_of(const CTokens& tokens) {
  return {tessera_tokens_data(tokens.get()), tessera_tokens_data(tokens.get()) + tessera_tokens_count(tokens.get())};
}
inline std::string string_of(const CText& text) {
  return {tessera_text_data(text.get()), tessera_text_size(text.get())};
}

inline CSession c_session(const CEngine& engine, std::string_view json = {}) {
  return made<CSession>(
      [&](auto out, auto error) { return tessera_session_create(engine.get(), json.data(), json.size(), out, error); });
}
inline void append(const CSession& session, const std::vector<Token>& tokens) {
  succeed(
      [&](auto error) { return tessera_session_append(session.get(), tokens.data(), tokens.size(), nullptr, error); });
}
inline CAdapter c_adapter(const CEngine& engine, const std::filesystem::path& path) {
  const std::string name = path.string();
  return made<CAdapter>([&](auto out, auto error) {
    return tessera_adapter_load(engine.get(), name.data(), name.size(), nullptr, out, error);
  });
}
inline CSampler c_sampler(const CEngine& engine, const char* json) {
  const auto options = options_of<tessera_sampler_options>(json);
  return made<CSampler>(
      [&](auto out, auto error) { return tessera_sampler_create(engine.get(), &options, out, error); });
}
inline std::vector<float> logits_of(const CSession& session) {
  const float* values = nullptr;
  std::size_t rows = 0, vocabulary = 0;
  succeed([&](auto error) { return tessera_session_logits(session.get(), &values, &rows, &vocabulary, error); });
  return {values, values + rows * vocabulary};
}

}  // namespace tessera::test
