// The CUDA backend computes what the CPU computes in plain f32: every architecture, KV type and layout, weight format.
#include <nlohmann/json.hpp>

#include <tessera/extend/formats/rows.hpp>

#include "cuda/backend/rig.hpp"
#include "engine/made_model.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr DType kDeviceKvTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::fp8, DType::int4, DType::k8v4};

// Logits of all tokens, appended in chunks of 1, `chunk`, 1, `chunk`, ...: decode and prefill by turns.
std::vector<float> mixed_logits(Session& session, std::span<const Token> tokens, std::size_t chunk) {
  std::vector<float> values;
  for (std::size_t at = 0, turn = 0; at < tokens.size(); ++turn) {
    const std::size_t n = std::min(turn % 2 == 0 ? 1 : chunk, tokens.size() - at);
    const Logits logits = must(session.append(tokens.subspan(at, n), {.logits = LogitsOf::all}));
    values.insert(values.end(), logits.values.begin(), logits.values.end());
    at += n;
  }
  return values;
}

float difference_of(const Engine& cuda, const Engine& cpu, const KvOptions& kv, std::span<const Token> tokens, std::size_t chunk) {
  Session ours = must(cuda.session({.kv = kv}));
  Session theirs = must(cpu.session({.kv = {.dtype = kv.dtype}}));
  return relative_difference(mixed_logits(ours, tokens, chunk), all_logits(theirs, tokens, tokens.size()));
}

std::vector<Token> greedy(const Engine& engine, std::span<const Token> prompt, std::size_t n) {
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  must(session.append(prompt));
  Sampler sampler = sampling::chain().greedy().build();
  for (const auto& piece : session.generate(sampler, {.max_tokens = n, .end_of_generation = EndOfGeneration::ignore})) {
    if (!piece) FAIL(piece.error().text());
  }
  const auto tokens = session.tokens().subspan(prompt.size());
  return {tokens.begin(), tokens.end()};
}

}  // namespace

TEST_CASE("every architecture, KV type and layout agrees with the CPU", "[cuda]") {
  std::size_t turn = 0;
  for (const GoldenCase& golden : golden_cases()) {
    ++turn;
    DYNAMIC_SECTION(golden.name) {
      const auto tokens = read_tokens(golden_dir() / (golden.name + ".tokens.txt"));
      const Engine cuda = load_golden(golden.name, on_cuda());
      const Engine cpu = load_golden(golden.name, on_reference());
      const auto all = representative_models();
      const bool every_layout = std::find(all.begin(), all.end(), golden.name) != all.end();
      for (std::size_t i = 0; i < std::size(kDeviceKvTypes); ++i) {
        const DType type = kDeviceKvTypes[i];
        // The emulated device is slow. On it, representative models have every type in small pages, and by turns in large pages or contiguous.
        // All other models have F32, and by turns one of the other types (of those that the model's cache can have).
        const std::size_t others = holds(cpu, DType::int8) ? std::size(kDeviceKvTypes) - 1 : 2;
        const bool everything = on_real_device();
        if (!everything && !every_layout && i != 0 && i != 1 + turn % others) continue;
        const KvOptions layouts[] = {{.dtype = type, .kind = KvKind::paged, .page_tokens = 16},
                                     {.dtype = type, .kind = KvKind::paged, .page_tokens = 64},
                                     {.dtype = type, .kind = KvKind::contiguous}};
        for (std::size_t layout = 0; layout < std::size(layouts); ++layout) {
          const KvOptions& kv = layouts[layout];
          if (layout != 0 && (!every_layout || (!everything && layout != 1 + (i + turn) % 2))) continue;
          if (!cpu.session({.kv = {.dtype = type}})) {  // latent attention, which a KV type with a scale does not suit
            CHECK(!cuda.session({.kv = kv}));
            continue;
          }
          const float difference = difference_of(cuda, cpu, kv, tokens, 19);
          INFO(to_string(type) << ", pages of " << kv.page_tokens << ": " << difference);
          CHECK(difference <= tolerance_of_kv(type) + tolerance_of_gemm(DType::f32));
        }
      }
    }
  }
}

TEST_CASE("MTP heads are refused by name", "[cuda]") {
  EngineOptions options = on_cuda();
  options.mtp = MtpHeads::load;
  const auto engine = Engine::load(golden_dir() / "mtp/trained.gguf", options);
  REQUIRE(!engine);
  CHECK(engine.error().code() == ErrorCode::unsupported);
  CHECK_THAT(engine.error().message(), Catch::Contains("cuda does not compute draft heads (MTP head)"));
}

TEST_CASE("windows with global tokens, from the first token to beyond several segments", "[cuda]") {
  const MadeModel model = make_model({.d_model = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 60, .context = 1300,
                                      .windows = {10, 600}, .globals = {3, 40}}, DType::f16);
  const Engine cuda = model.load(on_cuda({.numerics = Numerics::invariant})), cpu = model.load(on_reference());
  const auto tokens = made_tokens(1210, 60, 5);
  CHECK(difference_of(cuda, cpu, {.dtype = DType::f32, .page_tokens = 16}, tokens, 150) <= tolerance_of_kv(DType::f32));
}

TEST_CASE("logits agree with transformers for every architecture on CUDA too", "[cuda]") {
  for (const GoldenCase& golden : golden_cases()) {
    DYNAMIC_SECTION(golden.name) {
      const auto tokens = read_tokens(golden_dir() / (golden.name + ".tokens.txt"));
      const auto expected = read_floats(golden_dir() / (golden.name + ".logits.f32"));
      const Engine engine = load_golden(golden.name, on_cuda());
      Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
      const auto logits = all_logits(session, tokens, tokens.size());
      float difference = 0.0f;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        difference = std::max(difference, std::abs(logits[golden.first_row * golden.vocab + i] - expected[i]));
      }
      INFO("largest difference " << difference);
      CHECK(difference <= golden.tolerance);
    }
  }
}

TEST_CASE("every weight format agrees with the CPU, in few rows and in many", "[cuda]") {
  const MadeShape shape{.d_model = 256, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 512, .vocab = 131, .context = 256};
  const auto tokens = made_tokens(90, shape.vocab, 3);
  for (const DType type : formats::all()) {
    DYNAMIC_SECTION(to_string(type)) {
      const MadeModel model = make_model(shape, type);
      const Engine cpu = model.load(on_reference());
      for (const Numerics numerics : {Numerics::automatic, Numerics::invariant}) {
        const Engine cuda = model.load(on_cuda({.numerics = numerics}));
        const Work before = work_of(cuda);
        const float few = difference_of(cuda, cpu, {.dtype = DType::f32}, tokens, 11);
        CHECK(work_of(cuda).kernels > before.kernels + 100);
        CHECK(work_of(cuda).products == before.products);
        const float many = difference_of(cuda, cpu, {.dtype = DType::f32}, tokens, 70);
        INFO(to_string(numerics) << ": few rows " << few << ", many " << many);
        CHECK((work_of(cuda).products > before.products) == (numerics == Numerics::automatic));
        CHECK(few <= 1e-4f);
        CHECK(many <= 1e-4f + (numerics == Numerics::invariant ? 0.0f : tolerance_of_gemm(type)));
      }
    }
  }
}

TEST_CASE("lengths around the borders of pages, chunks and segments, with pages that begin as NaN", "[cuda]") {
  const MadeShape shape{.d_model = 64, .layers = 1, .heads = 4, .kv_heads = 1, .ffn = 64, .vocab = 50, .context = 1200};
  const MadeModel model = make_model(shape, DType::f32);
  const Engine cpu = model.load(on_reference());
  const Engine cuda = model.load(on_cuda({.freed_pages = FreedPages::fill_nan}));
  const auto tokens = made_tokens(1100, shape.vocab, 5);
  for (const std::size_t n : {1, 15, 16, 17, 31, 33, 63, 64, 65, 511, 512, 513, 1025}) {
    INFO(n << " tokens");
    const auto some = std::span(tokens).first(n);
    {  // leaves NaN where the next ones write
      Session dirty = must(cuda.session({.kv = {.dtype = DType::f16, .prefix = PrefixReuse::off}}));
      must(dirty.append(some));
    }
    Session ours = must(cuda.session({.kv = {.dtype = DType::f32, .prefix = PrefixReuse::off}}));
    Session theirs = must(cpu.session({.kv = {.dtype = DType::f32}}));
    must(ours.append(some));
    must(theirs.append(some));
    CHECK(relative_difference(ours.logits(), theirs.logits()) <= tolerance_of_kv(DType::f32));
    // And the token after them, alone: its keys may be split over several blocks.
    must(ours.append(std::span(tokens).subspan(n, 1)));
    must(theirs.append(std::span(tokens).subspan(n, 1)));
    CHECK(relative_difference(ours.logits(), theirs.logits()) <= tolerance_of_kv(DType::f32));
  }
}

TEST_CASE("greedy text in F32 is the CPU's, and the kernels really ran", "[cuda]") {
  tessera_emulator_reset();
  std::uint64_t kernels = 0;
  SECTION("stories260K") {
    const auto model = shared_dir() / "models/stories260K-f32.gguf";
    if (!std::filesystem::exists(model)) return tests::skip("stories260K: the shared models are not there");
    auto expected = read_tokens(shared_dir() / "models/stories260K.greedy-tokens.txt");
    const Engine engine = must(Engine::load(model, on_cuda()));
    const auto prompt = must(engine.tokenizer().encode(""));
    expected.erase(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
    CHECK(greedy(engine, prompt, expected.size()) == expected);
    kernels = work_of(engine).kernels;
  }
  SECTION("the default model") {
    const auto models = source_dir() / "models";
    std::ifstream in(models / "tessera-stories.greedy.json");
    const auto expected = nlohmann::json::parse(in);
    const Engine engine = must(Engine::load(models / "tessera-stories.gguf", on_cuda()));
    const auto prompt = expected.at("prompt_ids").get<std::vector<Token>>();
    const auto ids = expected.at("greedy_ids").get<std::vector<Token>>();
    CHECK(greedy(engine, prompt, ids.size()) == ids);
    kernels = work_of(engine).kernels;
  }
  CHECK(kernels > 199 * 5 * 8);  // tokens, layers, kernels of a layer
  if (on_real_device()) return;
  for (const char* kernel : {"rms_norm", "rope_append_f32", "sample_tokens", "activate_gated_silu"}) {
    INFO(kernel);
    CHECK(tessera_emulator_launches(kernel) > 100);
  }
  CHECK(tessera_emulator_mistakes() == 0);
}

TEST_CASE("sequences of several KV types and page sizes in one step", "[cuda]") {
  const MadeShape shape{.d_model = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 60, .context = 128};
  const MadeModel model = make_model(shape, DType::f16);
  const Engine engine = model.load(on_cuda({.numerics = Numerics::invariant}));
  const auto tokens = made_tokens(40, shape.vocab, 8);
  std::vector<Session> alone, together;
  Batch batch;
  for (const DType type : kDeviceKvTypes) {
    for (const std::uint32_t page : {16u, 32u}) {  // of 32 tokens with another type in the last layer
      const WideLayers wide{.dtype = page == 16 ? DType::automatic : type == DType::int8 ? DType::f16 : DType::int8, .first = 0, .last = 1};
      const SessionOptions options{.kv = {.dtype = type, .page_tokens = page, .prefix = PrefixReuse::off, .wide = wide}};
      alone.push_back(must(engine.session(options)));
      together.push_back(must(engine.session(options)));
    }
  }
  for (std::size_t i = 0; i < together.size(); ++i) {
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      must(batch.add(together[i], {.token = tokens[t], .want = t + 1 == tokens.size() ? Want::logits : Want::nothing}));
    }
  }
  const Outputs outputs = must(engine.forward(batch));
  for (std::size_t i = 0; i < alone.size(); ++i) {
    must(alone[i].append(tokens));
    CHECK(same_bits(outputs.row(i * tokens.size() + tokens.size() - 1), alone[i].logits()));
    CHECK(checksums(together[i]) == checksums(alone[i]));
  }
}
