// Continuous batching by hand: batch_by_hand MODEL.gguf TOKENS PROMPT...
// At most kSlots requests run at once; a request that ends makes room for the next. A step is one forward pass. It computes a chunk of the
// prompt for some requests, and one token for each other request. Each request gets the same tokens and text as from Session::generate().
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tessera/tessera.hpp>

using namespace tessera;
constexpr std::size_t kSlots = 4, kChunk = 8;

struct Story {
  std::vector<Token> prompt;
  Sampler sampler;
  std::optional<Result<Session>> session = {};
  std::size_t read = 0;  // tokens of the prompt that are computed
  std::optional<Result<TextStream>> text = {};
  std::string tokens = {}, answer = {};
  bool ended = false;
};

static int report(const Error& error) { return std::fprintf(stderr, "batch_by_hand: %s\n", error.text().c_str()), 1; }

// Adds the request's rows to the next step. If they complete the prompt, the last row draws a token.
static Status add_rows(Story& request, Batch& batch) {
  const auto rest = std::span(request.prompt).subspan(request.read);
  const auto chunk = rest.first(std::min(rest.size(), kChunk));
  request.read += chunk.size();
  if (chunk.size() < rest.size()) return batch.add(**request.session, chunk, Want::nothing);
  return batch.add(**request.session, chunk, request.sampler);  // without tokens: computes the pending token
}

// Takes the token that the step drew for the request: adds its text to the answer, and makes it pending for the next step.
static Status take(Story& request, Token token, const GenerateOptions& options) {
  if (!request.text) request.text = TextStream::create(**request.session, options);
  const auto piece = *request.text ? (*request.text)->push(token) : (*request.text).error();
  if (!piece) return piece.error();
  request.tokens += std::to_string(token) + ' ';
  request.answer += piece->text;
  request.ended = piece->finish != FinishReason::none;
  if (auto accepted = request.sampler.accept(token); !accepted) return accepted;
  return (*request.session)->add_pending(token);
}

int main(int argc, char** argv) {
  if (argc < 4) return report({ErrorCode::invalid_argument, "usage: batch_by_hand MODEL.gguf TOKENS PROMPT..."});
  auto engine = Engine::load(argv[1]);
  if (!engine) return report(engine.error());
  const GenerateOptions options{.max_tokens = std::strtoull(argv[2], nullptr, 10)};
  std::vector<Story> requests;
  for (int i = 3; i < argc; ++i) {
    auto prompt = engine->tokenizer().encode(argv[i]);
    if (!prompt) return report(prompt.error());
    requests.push_back({*std::move(prompt), sampling::chain().temperature(0.8f).top_p(0.95f).seed(static_cast<std::uint64_t>(i - 3)).build()});
  }
  for (std::size_t first = 0; first < requests.size();) {
    Batch batch;
    std::vector<std::pair<Story*, std::size_t>> running;  // requests of the step, each with its last row
    for (std::size_t i = first; i < requests.size() && running.size() < kSlots; ++i) {
      Story& request = requests[i];
      if (request.ended) continue;
      if (!request.session) request.session = engine->session();
      const Status added = *request.session ? add_rows(request, batch) : (*request.session).error();
      if (!added) return report(added.error());
      running.emplace_back(&request, batch.size() - 1);
    }
    const auto outputs = engine->forward(batch);
    if (!outputs) return report(outputs.error());
    for (auto [request, row] : running) {
      if (!outputs->outcome(row)) return report(outputs->outcome(row).error());  // or: end only this request
      const Token token = outputs->token(row);
      if (token < 0) continue;  // the prompt is not complete yet
      if (auto taken = take(*request, token, options); !taken) return report(taken.error());
      if (request->ended) request->session.reset();
    }
    while (first < requests.size() && requests[first].ended) ++first;
  }
  for (const Story& request : requests) std::printf("%s|%s\n", request.tokens.c_str(), request.answer.c_str());
}
