// Answers a file of prompts, one a line, in the same order: batch MODEL.gguf PROMPTS.txt [TOKENS]
// Each answer is one line: line ends within the answer are printed as \n. A prompt that cannot be served gets an empty line.
#include <charconv>
#include <cstdio>
#include <fstream>
#include <tessera/scheduler/scheduler.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

static int report(const Error& error) { return std::fprintf(stderr, "batch: %s\n", error.text().c_str()), 1; }

int main(int argc, char** argv) {
  std::size_t tokens = 0;
  const std::string_view number = argc == 4 ? argv[3] : "64";
  const auto [stop, bad] = std::from_chars(number.data(), number.data() + number.size(), tokens);
  if (argc < 3 || argc > 4 || bad != std::errc() || stop != number.data() + number.size() || tokens == 0) {
    return report({ErrorCode::invalid_argument, "usage: batch MODEL.gguf PROMPTS.txt [TOKENS, at least 1; 64]"});
  }
  std::ifstream file(argv[2]);
  if (!file) return report({ErrorCode::not_found, "cannot read the prompts", argv[2]});
  auto engine = Engine::load(argv[1]);
  if (!engine) return report(engine.error());
  // Any number of requests may wait, and may finish before their pieces are read.
  auto scheduler = Scheduler::create(*engine, {.max_waiting = SIZE_MAX, .max_unread = SIZE_MAX});
  if (!scheduler) return report(scheduler.error());

  std::vector<Result<RequestHandle>> requests;
  for (std::string line; std::getline(file, line);) {
    auto prompt = engine->tokenizer().encode(line);
    auto sampler = sampling::chain().temperature(0.8f).top_p(0.95f).seed(requests.size()).build();
    if (!prompt) requests.emplace_back(prompt.error());
    else requests.push_back(scheduler->submit({.prompt = *prompt, .sampler = std::move(sampler), .generate = {.max_tokens = tokens}}));
  }
  std::size_t failed = 0;
  std::uint64_t shown = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto fail = [&](const Error& error) {
      std::fprintf(stderr, "\rbatch: line %zu: %s\n", i + 1, error.text().c_str());
      ++failed;
    };
    if (!requests[i]) fail(requests[i].error());
    while (auto piece = requests[i] ? requests[i]->next() : std::nullopt) {  // computes all requests, not just this one
      for (const char c : piece->piece.text) std::fputs(c == '\n' ? "\\n" : std::string(1, c).c_str(), stdout);
      const auto now = scheduler->figures();
      if (now.finished != std::exchange(shown, now.finished)) {
        std::fprintf(stderr, "\r%llu of %zu answers", static_cast<unsigned long long>(now.finished), requests.size());
      }
    }
    if (requests[i] && !requests[i]->status()) fail(requests[i]->status().error());
    std::fputc('\n', stdout);
  }
  const auto f = scheduler->figures();
  const double seconds = f.step.sum();
  std::fprintf(stderr, "\r%zu answers and %zu errors in %.1f s: %llu tokens, %.1f a second, in steps of %.1f rows\n",
               requests.size() - failed, failed, seconds, static_cast<unsigned long long>(f.tokens),
               seconds > 0 ? static_cast<double>(f.tokens) / seconds : 0.0, f.rows.mean());
  return std::fflush(stdout) == 0 && failed == 0 ? 0 : 1;
}
