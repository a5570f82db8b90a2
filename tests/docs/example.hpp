// The code around the examples of the public headers (examples.awk): names that a comment's text has introduced, each with a value, so
// that the example is run. Examples may declare these names anew.
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include <tessera/extend/decoding/drafter.hpp>
#include <tessera/extend/files/model_source.hpp>
#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/extend/kv/kv_pools.hpp>
#include <tessera/extend/kv/kv_view.hpp>

namespace tessera::docs {

using Outcome = Result<std::size_t>;  // 1: the example itself says that it failed
inline int report(const Error& error) { return std::fprintf(stderr, "%s\n", error.text().c_str()), 1; }

struct Names {
  Engine& engine;
  std::shared_ptr<const ModelSource> source;
  Session session, first, second;
  Scheduler scheduler;
  Conversation talk;
  Sampler sampler;
  Tokenizer tokenizer;
  std::vector<Token> tokens;
  std::vector<std::string> texts;
  Token token;
  Result<CompiledGrammar> compiled;
  ChatRequest request;
  OutputFormat format;
  KvLayout layout;
  KvPools pools;
  KvView view;
  std::string path, secret;
  std::vector<float> key;
};

#define TESSERA_EXAMPLE_NAMES                                                                                              \
  [[maybe_unused]] Engine& engine = names.engine;                                                                          \
  [[maybe_unused]] const Settings& settings = names.source->settings();                                                    \
  [[maybe_unused]] Session &session = names.session, &first = names.first, &second = names.second;                         \
  [[maybe_unused]] Scheduler& scheduler = names.scheduler;                                                                 \
  [[maybe_unused]] Conversation& talk = names.talk;                                                                        \
  [[maybe_unused]] Sampler& sampler = names.sampler;                                                                       \
  [[maybe_unused]] const Tokenizer& tokenizer = names.tokenizer;                                                           \
  [[maybe_unused]] std::vector<Token>& tokens = names.tokens;                                                              \
  [[maybe_unused]] const std::span<const Token> prompt = names.tokens;                                                     \
  [[maybe_unused]] std::vector<std::string>& texts = names.texts;                                                          \
  [[maybe_unused]] const Token token = names.token;                                                                        \
  [[maybe_unused]] Result<CompiledGrammar>& compiled = names.compiled;                                                     \
  [[maybe_unused]] ChatRequest& request = names.request;                                                                   \
  [[maybe_unused]] const OutputFormat& format = names.format;                                                              \
  [[maybe_unused]] const KvLayout& layout = names.layout;                                                                  \
  [[maybe_unused]] KvPools& pools = names.pools;                                                                           \
  [[maybe_unused]] const KvView& view = names.view;                                                                        \
  [[maybe_unused]] const KvCache& cache = names.session.kv();                                                              \
  [[maybe_unused]] const std::string &path = names.path, &secret = names.secret;                                           \
  [[maybe_unused]] std::vector<float>& key = names.key;                                                                    \
  [[maybe_unused]] const std::size_t layer = 0, kv_head = 0;                                                               \
  [[maybe_unused]] const std::uint64_t position = 3;                                                                       \
  [[maybe_unused]] const bool cold = true;

struct Example {
  std::string_view place;  // header:line
  Outcome (*run)(Names& names);
};

// Examples that are compiled only: a rank serves until it is stopped.
inline constexpr std::string_view kNotRun[] = {"tessera/extend/backend/rank_transport.hpp", "tessera/extend/ranks.hpp"};

template <class T>
T take(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "before the example: %s\n", result.error().text().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

// Makes the names of one example, which may use them up.
inline Names make_names(Engine& engine) {
  const std::string text = "Once upon a time there was a little cat who liked to sleep in the sun and to play with a red ball.";
  std::vector<Token> tokens = take(engine.tokenizer().encode(text));
  Session session = take(engine.session());
  take(session.append(tokens));
  auto source = take(open_model("model.gguf"));
  const Tokenizer tokenizer = engine.tokenizer();
  const GrammarVocabulary vocabulary = take(GrammarVocabulary::create(tokenizer));
  const Grammar grammar = take(Grammar::json_schema(R"({"type": "integer"})"));
  ChatRequest request{.messages = {{.role = "user", .content = "What time is it?"}}};
  request.tools.push_back(take(Json::parse(R"({"type": "function", "function": {"name": "now", "parameters": {}}})")));
  const KvLayerShape shape{.kv_heads = 2, .key_dim = 32, .value_dim = 32};
  const KvView view = session.kv().view();
  return {.engine = engine,
          .source = std::move(source),
          .session = std::move(session),
          .first = take(engine.session()),
          .second = take(engine.session()),
          .scheduler = take(Scheduler::create(engine)),
          .talk = take(Conversation::create(engine, {.messages = request.messages, .tools = request.tools})),
          .sampler = sampling::chain().temperature(0.8f).seed(1).build(),
          .tokenizer = tokenizer,
          .tokens = tokens,
          .texts = std::vector<std::string>(4),
          .token = tokens.back(),
          .compiled = CompiledGrammar::create(grammar, vocabulary),
          .request = request,
          .format = *find_output_format("hermes"),
          .layout = take(make_kv_layout(std::vector(2, shape), DType::f16)),
          .pools = take(KvPools::create({.budget = std::uint64_t{1} << 24})),
          .view = view,
          .path = "model.gguf",
          .secret = "secret",
          .key = std::vector<float>(1024)};
}

// Runs the examples, in a folder with model.gguf and pirate.gguf. Arguments: only examples whose place contains one of them.
inline int run_all(std::span<const Example> examples, int argc, char** argv) {
  Engine engine = take(Engine::load("model.gguf", {.threads = 1}));
  int failed = 0;
  for (const Example& example : examples) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted = wanted || example.place.find(argv[i]) != std::string_view::npos;
    for (const std::string_view place : kNotRun) wanted = wanted && !example.place.starts_with(place);
    if (!wanted) continue;
    std::printf("\n-- %.*s\n", static_cast<int>(example.place.size()), example.place.data());
    std::fflush(stdout);
    Names names = make_names(engine);
    const Outcome outcome = example.run(names);
    if (outcome && *outcome == 0) continue;
    ++failed;
    std::printf("FAILED %.*s: %s\n", static_cast<int>(example.place.size()), example.place.data(), outcome.error().text().c_str());
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace tessera::docs
