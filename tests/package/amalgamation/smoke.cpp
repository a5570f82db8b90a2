// Uses a little of everything in the library, and prints a hash of the bits that come out: smoke MODEL. The same program linked to
// the library prints the same line. There is no #include of tessera here: the amalgamation's header is one file, the library's many.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

using namespace tessera;

namespace {

std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a, 64 bits

void add(std::uint32_t bits) {
  for (int byte = 0; byte < 4; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xffu)) * 0x100000001b3u;
}
void add(std::span<const float> values) {
  for (const float value : values) add(std::bit_cast<std::uint32_t>(value));
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "smoke: %s\n", result.error().text().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

void generate(Engine engine) {
  const auto prompt = must(engine.tokenizer().encode("Once upon a time"));
  auto session = must(engine.session());
  add(must(session.append(prompt)).values);
  auto fork = must(session.fork());
  auto greedy = sampling::chain().greedy().build();
  std::string text;
  for (const auto& piece : session.generate(greedy, {.max_tokens = 40})) text += must(piece).text;
  auto warm = sampling::chain().temperature(0.8f).top_p(0.95f).seed(3).build();
  for (const auto& piece : fork.generate(warm, {.max_tokens = 40})) text += must(piece).text;
  for (const char c : text) add(static_cast<unsigned char>(c));

  const auto vocabulary = must(GrammarVocabulary::create(engine.tokenizer()));
  const auto grammar = must(CompiledGrammar::create(must(Grammar::json_schema(R"({"type": "integer"})")), vocabulary));
  if (!must(grammar.check("12")).accepted || must(grammar.check("1x")).accepted) std::exit(2);

  auto scheduler = must(Scheduler::create(engine));
  std::vector<RequestHandle> requests;
  for (int i = 0; i < 3; ++i) requests.push_back(must(scheduler.submit({.prompt = prompt, .generate = {.max_tokens = 20}})));
  for (RequestHandle& request : requests) {
    while (auto piece = request.next()) {
      for (const char c : piece->piece.text) add(static_cast<unsigned char>(c));
    }
    if (!request.status()) std::exit(3);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  for (const Numerics numerics : {Numerics::automatic, Numerics::invariant, Numerics::bf16}) {
    generate(must(Engine::load(argv[1], {.numerics = numerics})));
  }
  std::printf("tessera %s: bits %016llx\n", std::string(version()).c_str(), static_cast<unsigned long long>(hash));
}
