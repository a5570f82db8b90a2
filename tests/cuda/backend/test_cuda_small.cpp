// A little of everything that runs on the device, on shapes so small that a tool which watches every access of memory
// is done in minutes (scripts/gpu-check: compute-sanitizer). What is computed is compared too.
#include <tessera/extend/formats/rows.hpp>

#include "cuda/backend/rig.hpp"
#include "engine/kept_rows.hpp"
#include "engine/load/make_backend.hpp"
#include "engine/load/plan.hpp"
#include "engine/made_model.hpp"
#include "engine/scaled_model.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

// 2 heads of 64 to a key head: attention's tiles, and rows that are whole blocks of every weight format.
constexpr MadeShape kShape{.d_model = 256, .layers = 1, .heads = 4, .kv_heads = 2, .ffn = 256, .vocab = 67, .context = 128};
constexpr std::size_t kManyRows = 24;  // more than the products of few rows take

// The logits after `tokens` but the last, appended together, and after the last, alone.
std::vector<float> prefill_and_step(const Engine& engine, const KvOptions& kv, std::span<const Token> tokens) {
  Session session = must(engine.session({.kv = kv}));
  const Logits prompt = must(session.append(tokens.first(tokens.size() - 1)));
  std::vector<float> values(prompt.values.begin(), prompt.values.end());
  const Logits step = must(session.append(tokens.last(1)));
  values.insert(values.end(), step.values.begin(), step.values.end());
  return values;
}

}  // namespace

TEST_CASE("small: every architecture, a prompt and a step", "[cuda][small]") {
  for (const std::string& name : representative_models()) {
    DYNAMIC_SECTION(name) {
      const auto tokens = read_tokens(golden_dir() / (name + ".tokens.txt"));
      const auto some = std::span(tokens).first(std::min<std::size_t>(tokens.size(), kManyRows + 1));
      const KvOptions kv{.dtype = DType::f32, .page_tokens = 16};
      const auto ours = prefill_and_step(load_golden(name, on_cuda()), kv, some);
      const auto theirs = prefill_and_step(load_golden(name, on_reference()), kv, some);
      CHECK(relative_difference(ours, theirs) <= tolerance_of_kv(DType::f32));
    }
  }
}

TEST_CASE("small: every KV type and layout, moved and copied", "[cuda][small]") {
  const MadeModel model = make_model(kShape, DType::f32);
  const Engine cuda = model.load(on_cuda({.freed_pages = FreedPages::fill_nan}));
  const Engine cpu = model.load(on_reference());
  const auto tokens = made_tokens(40, kShape.vocab, 1);
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::int8, DType::fp8}) {
    for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
      DYNAMIC_SECTION(to_string(type) << (kind == KvKind::paged ? " paged" : " contiguous")) {
        const KvOptions kv{.dtype = type, .kind = kind, .page_tokens = kind == KvKind::paged ? 16u : 0u};
        const float tolerance = tolerance_of_kv(type);
        CHECK(relative_difference(prefill_and_step(cuda, kv, tokens), prefill_and_step(cpu, kv, tokens)) <= tolerance);
        const auto edited = [&](const Engine& engine) {
          Session session = must(engine.session({.kv = kv}));
          must(session.append(tokens));
          must(session.remove(3, 9));  // the later tokens move, and their keys turn
          Session copy = must(session.clone());
          const Logits after = must(copy.append(std::span(tokens).first(2)));
          return std::vector<float>(after.values.begin(), after.values.end());
        };
        CHECK(relative_difference(edited(cuda), edited(cpu)) <= tolerance);
      }
    }
  }
}

TEST_CASE("small: every weight format, few rows and many, own kernels and cuBLAS's", "[cuda][small]") {
  const auto tokens = made_tokens(kManyRows + 1, kShape.vocab, 2);
  for (const DType type : formats::all()) {
    DYNAMIC_SECTION(to_string(type)) {
      const MadeModel model = make_model(kShape, type);
      const auto theirs = prefill_and_step(model.load(on_reference()), {.dtype = DType::f32}, tokens);
      for (const Numerics numerics : {Numerics::automatic, Numerics::invariant}) {
        const auto ours = prefill_and_step(model.load(on_cuda({.numerics = numerics})), {.dtype = DType::f32}, tokens);
        INFO(to_string(numerics));
        const float of_gemm = numerics == Numerics::invariant ? 0.0f : tolerance_of_gemm(type);
        CHECK(relative_difference(ours, theirs) <= 1e-4f + of_gemm);
      }
    }
  }
}

TEST_CASE("small: numbers that products are multiplied by", "[cuda][small]") {
  const MadeModel model = make_model(kShape, DType::q8_0);
  const MadeModel scaled = with_scales(model.file(), [](const GgufTensor& tensor) {
    return tensor.name == "blk.0.ffn_up.weight" || tensor.name == "blk.0.ffn_down.weight" ? Factors{0.25f} : Factors{};
  });
  const auto tokens = made_tokens(kManyRows + 1, kShape.vocab, 2);
  const auto load = [&](const EngineOptions& options) { return must(Engine::load(scaled.file(), options)); };
  const auto theirs = prefill_and_step(load(on_reference()), {.dtype = DType::f32}, tokens);
  for (const Numerics numerics : {Numerics::automatic, Numerics::invariant}) {
    const float of_gemm = numerics == Numerics::invariant ? 0.0f : tolerance_of_gemm(DType::q8_0);
    const auto ours = prefill_and_step(load(on_cuda({.numerics = numerics})), {.dtype = DType::f32}, tokens);
    CHECK(relative_difference(ours, theirs) <= 1e-4f + of_gemm);
  }
}

TEST_CASE("small: sequences of several lengths in a step", "[cuda][small]") {
  const MadeModel model = make_model(kShape, DType::q8_0);
  const Engine engine = model.load(on_cuda({.numerics = Numerics::invariant}));
  const auto tokens = made_tokens(40, kShape.vocab, 3);
  std::vector<Session> alone, together;
  Batch batch;
  for (const std::size_t length : {1, 17, 39}) {
    for (auto* sessions : {&alone, &together}) {
      sessions->push_back(must(engine.session({.kv = {.dtype = DType::f16, .page_tokens = 16, .prefix = PrefixReuse::off}})));
      must(sessions->back().append(std::span(tokens).first(length)));
    }
  }
  for (Session& session : together) must(batch.add(session, {.token = tokens.back(), .want = Want::logits}));
  const Outputs outputs = must(engine.forward(batch));
  for (std::size_t i = 0; i < alone.size(); ++i) {
    must(alone[i].append(std::span(tokens).last(1)));
    CHECK(same_bits(outputs.row(i), alone[i].logits()));
  }
}

TEST_CASE("small: tokens drawn", "[cuda][small]") {
  const MadeModel model = make_model(kShape, DType::f32);
  const Engine cuda = model.load(on_cuda());
  const Engine cpu = model.load(on_reference());
  const auto prompt = made_tokens(9, kShape.vocab, 4);
  const auto drawn = [&](const Engine& engine, Sampler sampler) {
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(prompt));
    must(session.generate(sampler, {.max_tokens = 6, .end_of_generation = EndOfGeneration::ignore}, {}));
    return std::vector<Token>(session.tokens().begin(), session.tokens().end());
  };
  const auto greedy = [] { return sampling::chain().greedy().build(); };
  const auto random = [] { return sampling::chain().top_k(20).temperature(0.8f).top_p(0.9f, 2).seed(11, 1).build(); };
  CHECK(drawn(cuda, greedy()) == drawn(cpu, greedy()));
  CHECK(drawn(cuda, random()) == drawn(cpu, random()));
}

TEST_CASE("small: rows that are kept take all that follows rows with them", "[cuda][small]") {
  const EngineOptions options = must(detail::resolve_options(on_cuda({.numerics = Numerics::invariant})));
  const detail::Machine machine = must(detail::make_backend(options));
  check_kept_rows(*machine.backend);
}
