// Between begin() and end() the backend copies nothing to the device and allocates nothing there: a CUDA graph of a step could be captured.
#include <sstream>

#include "backend/joining_backend.hpp"
#include "core/error.hpp"
#include "cuda/backend/rig.hpp"
#include "decoding/speculation_rig.hpp"
#include "engine/made_adapter.hpp"
#include "engine/wrapped_backend.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

// Counts the copies to the device, and the buffers that appear or vanish, between begin() and end(). Nothing joins its products, so
// operations are fused as without it.
class UploadsCounted final : public backend::JoiningBackend {
 public:
  explicit UploadsCounted(std::unique_ptr<Backend> cuda) : JoiningBackend(std::move(cuda)) {}

  std::uint64_t steps = 0, in_begin = 0, between = 0, buffers_between = 0, changed_steps = 0;

  Status begin(const backend::StepTables& tables) override {
    const std::uint64_t before = tessera_emulator_uploads();
    TESSERA_TRY_STATUS(inner().begin(tables));
    begun_ = tessera_emulator_uploads();
    buffers_ = buffers();
    in_begin += begun_ - before;
    changed_steps += tables.changes.empty() ? 0 : 1;
    return {};
  }
  Status end() override {
    between += tessera_emulator_uploads() - begun_;
    buffers_between += buffers() != buffers_ ? 1 : 0;
    ++steps;
    return inner().end();
  }

 private:
  [[nodiscard]] bool joins(const Matrix&) const noexcept override { return false; }
  Status join(const Matrix&, Act, Act) override { return {}; }
  void join_expert(const Matrix&, std::uint32_t, std::uint32_t, std::span<const float>, std::span<float>) noexcept override {}

  static std::size_t buffers() {
    const auto live = tessera_emulator_live();
    return live.device_buffers + live.pinned_buffers;
  }

  std::uint64_t begun_ = 0;
  std::size_t buffers_ = 0;
};

void check_uploads(const UploadsCounted& counted, std::uint64_t steps) {
  CHECK(counted.steps >= steps);
  CHECK(counted.in_begin >= counted.steps);
  CHECK(counted.between == 0);
  CHECK(counted.buffers_between == 0);
}

std::vector<Token> some_tokens(const Engine& engine, std::size_t n, std::uint64_t seed = 1) {
  return make_tokens(seed, n, engine.spec().vocab_size);
}

// Draws tokens on the device, one a step.
void generate(Session& session, std::uint32_t n) {
  Sampler sampler = sampling::chain().temperature(0.8f).seed(3).build();
  must(session.generate(sampler, {.max_tokens = n, .end_of_generation = EndOfGeneration::ignore}, {}));
}

// Adds the tokens to a step. The last row alone wants an output, so the last layer drops the others.
void add_prompt(Batch& batch, Session& session, std::span<const Token> tokens) {
  for (const Token token : tokens.first(tokens.size() - 1)) must(batch.add(session, {.token = token}));
  must(batch.add(session, {.token = tokens.back(), .want = Want::logits}));
}

}  // namespace

TEST_CASE("a step uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;  // only the emulated device counts
  for (const char* name : {"llama-gqa", "gemma3"}) {  // gemma3 has layers of two windows
    const Engine engine = load_golden(name, on_cuda());
    auto& counted = wrap_backend<UploadsCounted>(engine);
    const auto tokens = some_tokens(engine, 70);
    // Sequences of two KV types in a batch: a prompt whose last row alone is wanted, a row with an embedding of its own, and single rows.
    Session wide = must(engine.session({.kv = {.dtype = DType::f16}})), narrow = must(engine.session({.kv = {.dtype = DType::int8}}));
    must(wide.append(std::span<const Token>(tokens).first(40)));
    const std::vector<float> embedding(engine.spec().d_model, 0.25f);
    Batch batch;
    must(batch.add(wide, {.embedding = embedding, .want = Want::logits}));
    add_prompt(batch, narrow, std::span<const Token>(tokens).first(31));
    must(engine.forward(batch));
    generate(narrow, 5);
    check_uploads(counted, 6);
  }
}

TEST_CASE("a step of any kind of model uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;
  // Learned positions; experts; recurrent layers, alone and with experts; latent attention; vectors of tokens in each layer.
  for (const char* name : {"gpt2", "qwen2moe", "gpt-oss", "qwen35", "lfm2", "granitehybrid", "nemotron_h_moe-narrow", "deepseek-v2-lite", "gemma4-e"}) {
    INFO(name);
    const Engine engine = load_golden(name, on_cuda());
    auto& counted = wrap_backend<UploadsCounted>(engine);
    const auto tokens = some_tokens(engine, 24);
    Session one = must(engine.session()), other = must(engine.session());
    must(one.append(std::span(tokens).first(5), {.logits = LogitsOf::all}));
    Batch batch;
    add_prompt(batch, one, std::span(tokens).subspan(5, 3));
    add_prompt(batch, other, std::span(tokens).first(14));
    must(engine.forward(batch));
    generate(other, 3);
    check_uploads(counted, 4);
  }
}

TEST_CASE("a step with adapters uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;
  const AdapterFolder folder;
  for (const char* name : {"llama-gqa", "qwen35", "deepseek-v2-lite", "gemma3", "qwen2moe"}) {
    INFO(name);
    const ModelFile file = must(ModelFile::open(golden_dir() / (std::string(name) + ".gguf")));
    const Engine engine = must(Engine::load(file, on_cuda()));
    auto& counted = wrap_backend<UploadsCounted>(engine);
    std::vector<Adapter> adapters;
    for (const std::uint32_t rank : {1u, 8u, 40u}) {
      const MadeAdapter how{.rank = rank, .seed = rank, .takes = [](std::string_view tensor) { return tensor.find("_exps") == tensor.npos; }};
      adapters.push_back(must(engine.adapter(folder.write(name + std::to_string(rank), file, how))));
    }
    // Tenants without an adapter, with one, with one of another scale, with two, and with the same two in another order.
    const std::vector<std::vector<AdapterUse>> tenants = {
        {}, {{adapters[0]}}, {{adapters[1], -0.5f}}, {{adapters[1], 2.0f}}, {{adapters[2]}, {adapters[0], 2.0f}}, {{adapters[0], 2.0f}, {adapters[2]}}};
    const auto tokens = some_tokens(engine, 9);
    std::vector<Session> sessions;
    SessionOptions options;
    options.kv.prefix = PrefixReuse::off;
    for (const auto& tenant : tenants) {
      options.adapters = tenant;
      sessions.push_back(must(engine.session(options)));
    }
    Batch prompts, steps;
    Sampler sampler = sampling::chain().temperature(0.8f).seed(5).build();
    // In the first step the last layer drops rows. The outputs of the second step are made in several selections.
    for (Session& session : sessions) add_prompt(prompts, session, tokens);
    must(engine.forward(prompts));
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      must(steps.add(sessions[i], {.token = tokens[3], .want = i < 2 ? Want::logits : i < 4 ? Want::embedding : Want::token, .sampler = &sampler}));
    }
    must(engine.forward(steps));
    must(sessions[4].append(tokens, {.logits = LogitsOf::all}));
    generate(sessions[5], 3);
    generate(sessions[0], 2);
    check_uploads(counted, 7);
    CHECK(counted.changed_steps >= 5);
    CHECK(counted.changed_steps < counted.steps);
    CHECK(tessera_emulator_launches("low_rank_up") > 0);
  }
}

TEST_CASE("a step in which rows vote uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;
  for (const TokenChoice choice : {TokenChoice::h2o, TokenChoice::snapkv}) {
    EngineOptions options = on_cuda();
    options.kv.dtype = DType::f16;
    options.kv.page_tokens = 16;
    options.kv.budget = {.tokens = 128, .choice = choice, .sinks = 3};
    const Engine engine = load_golden("llama-long", options);
    auto& counted = wrap_backend<UploadsCounted>(engine);
    Session session = must(engine.session());
    const auto tokens = some_tokens(engine, 180);
    for (std::size_t at = 0; at < tokens.size(); at += 60) must(session.append(std::span(tokens).subspan(at, 60)));
    CHECK(session.tokens().size() <= 128);
    check_uploads(counted, 3);
  }
  CHECK(tessera_emulator_launches("count_votes_f16") > 0);
}

TEST_CASE("a step with a tree of drafts uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;
  for (const char* name : {"llama-gqa", "deepseek-v2-lite"}) {
    EngineOptions options = on_cuda();
    options.kv.dtype = DType::f16;
    options.kv.page_tokens = 16;
    const Engine engine = load_golden(name, options);
    auto& counted = wrap_backend<UploadsCounted>(engine);
    SpeculateOptions trees;
    trees.drafter = bush(engine.spec().vocab_size);
    trees.max_drafts = 12;
    trees.length = DraftLength::longest;
    trees.branches = 4;
    const Outcome outcome = generated(engine, request_kinds().front(), some_tokens(engine, 13), trees);
    CHECK(outcome.figures.drafted > 10);
    check_uploads(counted, 5);
  }
}

TEST_CASE("a step of an encoder uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;
  for (const char* name : {"bert-wide", "modernbert"}) {
    EngineOptions options = on_cuda();
    options.tokenizer = TokenizerUse::none;
    const Engine engine = must(Engine::load(golden_dir() / "encoders" / name, options));
    auto& counted = wrap_backend<UploadsCounted>(engine);
    const std::vector<std::vector<Token>> texts = {some_tokens(engine, 12), some_tokens(engine, 30, 2)};
    must(engine.embed(texts));
    check_uploads(counted, 1);
  }
}
