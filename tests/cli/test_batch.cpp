// examples/small/batch: a file of prompts to their answers, in order, as generate() gives each alone.
#include <tessera/tessera.hpp>

#include "program.hpp"

namespace test_batch {

using namespace tessera;
using namespace tessera::tests::cli;

namespace {

const std::string kBatch = TESSERA_BIN_DIR "/batch";

bool lacks_batch() { return lacks(kBatch, "the example program \"batch\" (not built)"); }

// The line that the program prints of the i-th prompt.
std::string alone(const Engine& engine, const std::string& prompt, std::size_t i, std::size_t tokens) {
  Session session = *engine.session();
  REQUIRE(session.append(*engine.tokenizer().encode(prompt)));
  Sampler sampler = sampling::chain().temperature(0.8f).top_p(0.95f).seed(i).build();
  std::string line;
  for (const auto& piece : session.generate(sampler, {.max_tokens = tokens})) {
    REQUIRE(piece);
    for (const char c : piece->text) line += c == '\n' ? "\\n" : std::string(1, c);
  }
  return line + '\n';
}

void fails(const Args& args, const std::string& about) {
  const Outcome run = run_program(kBatch, args);
  INFO(run.err);
  CHECK(run.status == 1);
  CHECK(run.out.empty());
  CHECK(run.err.starts_with("batch: "));
  CHECK(run.err.find(about) != std::string::npos);
}

}  // namespace

TEST_CASE("a file of prompts gives the answers of generate(), a line each and in order", "[cli]") {
  if (lacks_batch()) return;
  const Engine engine = *Engine::load(kTiny, {.threads = 1});
  std::string prompts, expected;
  for (std::size_t i = 0; i < 300; ++i) {  // more than run at once
    const std::string prompt = "number " + std::to_string(i * i);
    prompts += prompt + '\n';
    expected += alone(engine, prompt, i, 9);
  }
  const Outcome run = run_program(kBatch, {kTiny, TemporaryFile(prompts).path(), "9"});
  CHECK(run.status == 0);
  CHECK(run.out == expected);
  CHECK(run.err.find(" of 300 answers\r") != std::string::npos);
  CHECK(run.err.find("\r300 answers and 0 errors in ") != std::string::npos);
}

TEST_CASE("a prompt that cannot be served is told with its line, and has an empty answer", "[cli]") {
  if (lacks_batch()) return;
  const Engine engine = *Engine::load(kTiny, {.threads = 1});
  const TemporaryFile prompts("a\n" + std::string(200, 'z') + "\nb\n");
  const Outcome run = run_program(kBatch, {kTiny, prompts.path(), "5"});
  CHECK(run.status == 1);
  CHECK(run.out == alone(engine, "a", 0, 5) + '\n' + alone(engine, "b", 2, 5));
  CHECK(run.err.find("batch: line 2: ") != std::string::npos);
  CHECK(run.err.find("context of 64") != std::string::npos);
  CHECK(run.err.find("2 answers and 1 errors") != std::string::npos);
}

TEST_CASE("files and options that batch cannot use are told", "[cli]") {
  if (lacks_batch()) return;
  const TemporaryFile prompts("a\n");
  fails({}, "usage: batch");
  fails({kTiny}, "usage: batch");
  fails({kTiny, prompts.path(), "5", "6"}, "usage: batch");
  for (const char* tokens : {"0", "-1", "many", "", "5x", "99999999999999999999999"}) fails({kTiny, prompts.path(), tokens}, "usage: batch");
  fails({kTiny, "no-such-prompts.txt"}, "no-such-prompts.txt");
  fails({"no-such-model.gguf", prompts.path()}, "no-such-model.gguf");
}

}  // namespace test_batch
