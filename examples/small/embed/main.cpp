// The smallest program that uses tessera: embed MODEL.gguf
#include <cstdio>

#include <tessera/tessera.hpp>

static int report(const tessera::Error& error) {
  std::fprintf(stderr, "embed: %s\n", error.text().c_str());
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return report({tessera::ErrorCode::invalid_argument, "usage: embed MODEL.gguf"});
  auto engine = tessera::Engine::load(argv[1]);
  if (!engine) return report(engine.error());
  auto session = engine->session();
  if (!session) return report(session.error());
  auto prompt = engine->tokenizer().encode("Once upon a time");
  if (!prompt) return report(prompt.error());
  if (auto done = session->append(*prompt); !done) return report(done.error());

  auto sampler = tessera::sampling::chain().temperature(0.8f).top_p(0.95f).seed(42).build();
  for (const auto& piece : session->generate(sampler, {.max_tokens = 200})) {
    if (!piece) return report(piece.error());  // an error is the last element
    std::fputs(piece->text.c_str(), stdout);
  }
  std::puts("");
}
