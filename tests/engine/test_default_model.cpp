// The model in models/: what it says, greedily, is what PyTorch computes from the same file in f32; and contract 2 holds
// on it.
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "engine/models.hpp"

namespace test_default_model {

using namespace tessera;
using namespace tessera::test;

namespace {

std::filesystem::path model_file(const char* name) { return std::filesystem::path(TESSERA_SOURCE_DIR) / "models" / name; }

// Compares the greedy text of a session, which is empty, with what PyTorch computed.
void check_greedy(const Engine& engine, Session& session, const char* file) {
  std::ifstream in(model_file(file));
  const auto expected = nlohmann::json::parse(in);
  const auto prompt = must(engine.tokenizer().encode(""));
  REQUIRE(prompt == expected.at("prompt_ids").get<std::vector<Token>>());

  // f32 in two orders of additions, over six layers of logits up to about 20.
  const auto first = must(session.append(prompt));
  const auto logits = expected.at("first_logits").get<std::vector<float>>();
  REQUIRE(logits.size() == first[0].size());
  float difference = 0.0f;
  for (std::size_t i = 0; i < logits.size(); ++i) difference = std::max(difference, std::fabs(logits[i] - first[0][i]));
  INFO("largest difference " << difference);
  CHECK(difference < 1e-3f);

  const auto ids = expected.at("greedy_ids").get<std::vector<Token>>();
  Sampler sampler = sampling::chain().greedy().build();
  for (const auto& piece :
       session.generate(sampler, {.max_tokens = ids.size(), .end_of_generation = EndOfGeneration::ignore})) {
    if (!piece) FAIL(piece.error().text());
  }
  const auto generated = session.tokens().subspan(prompt.size());
  CHECK(std::vector<Token>(generated.begin(), generated.end()) == ids);
}

}  // namespace

TEST_CASE("the default model's greedy text and first logits are PyTorch's, also with its adapter", "[model]") {
  const Engine engine = must(Engine::load(model_file("tessera-stories.gguf"), {.numerics = Numerics::reference, .threads = 2}));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  check_greedy(engine, session, "tessera-stories.greedy.json");
  const Adapter pirate = must(engine.adapter(model_file("tessera-stories-pirate.gguf")));
  Session pirates = must(engine.session({.kv = {.dtype = DType::f32}, .adapters = {{pirate}}}));
  check_greedy(engine, pirates, "tessera-stories-pirate.greedy.json");
}

TEST_CASE("the default model's draft heads are right often, and change no token", "[model]") {
  struct Heads {
    const char* name;
    double least;  // tokens a step
  };
  for (const Heads& heads : {Heads{"tessera-stories-eagle.gguf", 1.4}, Heads{"tessera-stories-medusa", 1.2}}) {
    CAPTURE(heads.name);
    const Engine engine = must(Engine::load(model_file("tessera-stories.gguf"), {.draft_heads = model_file(heads.name), .numerics = Numerics::invariant, .threads = 2}));
    std::vector<Token> texts[2];
    for (const bool drafts : {false, true}) {
      Session session = must(engine.session());
      must(session.append(must(engine.tokenizer().encode("Once upon a time"))));
      Sampler sampler = sampling::chain().greedy().build();
      SpeculateOptions speculate{.max_drafts = 4, .length = DraftLength::longest};
      if (drafts) speculate.drafter = must(head_drafter());
      Generation generation = session.generate(sampler, {.max_tokens = 120, .speculate = speculate});
      for (const auto& piece : generation) {
        if (!piece) FAIL(piece.error().text());
      }
      texts[drafts ? 1 : 0].assign(session.tokens().begin(), session.tokens().end());
      const Figures figures = generation.figures();
      if (drafts) CHECK(static_cast<double>(figures.tokens) > heads.least * static_cast<double>(figures.steps));
    }
    CHECK(texts[0] == texts[1]);
  }
}

// Prints tokens a step of ten greedy stories, with as many drafts as allowed in each step: bench/results/speculation.md.
TEST_CASE("figures of the default model's draft heads", "[model]") {
  if (std::getenv("TESSERA_TEST_FIGURES") == nullptr) return;
  struct Form {
    const char* name;
    std::uint32_t drafts, branches;
  };
  for (const char* heads : {"tessera-stories-eagle.gguf", "tessera-stories-medusa"}) {
    const Engine engine = must(Engine::load(model_file("tessera-stories.gguf"), {.draft_heads = model_file(heads), .numerics = Numerics::invariant, .threads = 2}));
    for (const Form& form : {Form{"chain of 4", 4, 1}, Form{"chain of 8", 8, 1}, Form{"tree of 8 in 6 chains", 8, 6}}) {
      std::size_t tokens = 0, steps = 0;
      for (const char* name : {"Anna", "Ben", "Clara", "Dylan", "Emma", "Felix", "Greta", "Hugo", "Ines", "Jonas"}) {
        Session session = must(engine.session());
        must(session.append(must(engine.tokenizer().encode("Once upon a time there was a child called " + std::string(name)))));
        Sampler sampler = sampling::chain().greedy().build();
        const SpeculateOptions speculate{.drafter = must(head_drafter()), .max_drafts = form.drafts, .length = DraftLength::longest, .branches = form.branches};
        Generation generation = session.generate(sampler, {.max_tokens = 200, .speculate = speculate});
        for (const auto& piece : generation) {
          if (!piece) FAIL(piece.error().text());
        }
        tokens += generation.figures().tokens;
        steps += generation.figures().steps;
      }
      std::printf("%-26s %-22s %.2f tokens a step\n", heads, form.name, static_cast<double>(tokens) / static_cast<double>(steps));
    }
  }
}

TEST_CASE("draft heads may come from a source in memory", "[model]") {
  const auto heads = std::make_shared<const ModelFile>(must(ModelFile::open(model_file("tessera-stories-eagle.gguf"))));
  const Engine engine = must(Engine::load(model_file("tessera-stories.gguf"), {.draft_heads_source = heads, .threads = 2}));
  const Engine from_path = must(Engine::load(model_file("tessera-stories.gguf"), {.draft_heads = model_file("tessera-stories-eagle.gguf"), .threads = 2}));
  CHECK(engine.spec().has_draft_heads());
  CHECK(engine.plan().weights == from_path.plan().weights);
  const auto both = Engine::load(model_file("tessera-stories.gguf"), {.draft_heads = model_file("tessera-stories-eagle.gguf"), .draft_heads_source = heads});
  REQUIRE(!both);
  CHECK(both.error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("the default and the draft model give the same bits however a story is cut", "[model]") {
  for (const char* name : {"tessera-stories.gguf", "tessera-stories-draft.gguf"}) {
    DYNAMIC_SECTION(name) {
      const Engine alone = must(Engine::load(model_file(name), {.threads = 1}));
      const Engine engine = must(Engine::load(model_file(name), {.threads = 3, .step_rows = 24}));
      Session writer = must(engine.session());
      must(writer.append(must(engine.tokenizer().encode("Once upon a time"))));
      Sampler sampler = sampling::chain().temperature(0.8f).top_p(0.95f).seed(7).build();
      for (const auto& piece : writer.generate(sampler, {.max_tokens = 280, .end_of_generation = EndOfGeneration::ignore})) {
        if (!piece) FAIL(piece.error().text());
      }
      const std::vector<Token> story(writer.tokens().begin(), writer.tokens().end());
      for (const DType kv : {DType::f32, DType::f16}) {
        Session whole = must(alone.session({.kv = {.dtype = kv}}));
        const auto expected = all_logits(whole, story, story.size());
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}}) {
          Session session = must(engine.session({.kv = {.dtype = kv}}));
          CHECK(same_bits(all_logits(session, story, chunk), expected));
          CHECK(session.kv().checksum(0) == whole.kv().checksum(0));
        }
      }
    }
  }
}

}  // namespace test_default_model
