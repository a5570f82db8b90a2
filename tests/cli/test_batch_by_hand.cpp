// examples/small/batch_by_hand: a host's own continuous batching gives what generate() gives each request alone.
#include <tessera/tessera.hpp>

#include "program.hpp"

namespace test_batch_by_hand {

using namespace tessera;
using namespace tessera::tests::cli;

namespace {

const std::string kByHand = TESSERA_BIN_DIR "/batch_by_hand";

// What the program prints of the i-th prompt.
std::string alone(const Engine& engine, const std::string& prompt, std::size_t i, std::size_t tokens) {
  Session session = *engine.session();
  REQUIRE(session.append(*engine.tokenizer().encode(prompt)));
  Sampler sampler = sampling::chain().temperature(0.8f).top_p(0.95f).seed(i).build();
  std::string ids, text;
  for (const auto& piece : session.generate(sampler, {.max_tokens = tokens})) {
    REQUIRE(piece);
    ids += std::to_string(piece->token) + ' ';
    text += piece->text;
  }
  return ids + '|' + text + '\n';
}

}  // namespace

TEST_CASE("continuous batching by hand gives the tokens and the texts of generate()", "[cli]") {
  if (lacks(kByHand, "the example program \"batch_by_hand\" (not built)")) return;
  const Engine engine = *Engine::load(kTiny, {.threads = 1});
  const Args prompts = {"a", "a longer one, in several chunks", "yes", "b", "c d", "a longer one, in several chunks", "x y z"};
  Args args = {kTiny, "25"};
  args.insert(args.end(), prompts.begin(), prompts.end());
  std::string expected;
  for (std::size_t i = 0; i < prompts.size(); ++i) expected += alone(engine, prompts[i], i, 25);
  const Outcome run = run_program(kByHand, args);
  CHECK(run.err.empty());
  CHECK(run.status == 0);
  CHECK(run.out == expected);
  CHECK(run_program(kByHand, {kTiny, "5"}).status == 1);
}

}  // namespace test_batch_by_hand
