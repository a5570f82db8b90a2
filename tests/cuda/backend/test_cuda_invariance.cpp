// Numerics "invariant": a row's logits are the same bits whatever is computed with it. And the default is not: what makes
// the difference is the family, not luck.
#include "cuda/backend/rig.hpp"
#include "engine/made_model.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr MadeShape kShape{.d_model = 64, .layers = 2, .heads = 4, .kv_heads = 2, .ffn = 96, .vocab = 61, .context = 256};

}  // namespace

TEST_CASE("invariant: cached, chunked, batched, paged and contiguous give the same bits", "[cuda]") {
  const auto tokens = made_tokens(130, kShape.vocab, 1);  // of five pages, and more than two chunks of attention
  for (const DType weights : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0}) {
    const MadeModel model = make_model(kShape, weights);
    const Engine engine = model.load(on_cuda({.numerics = Numerics::invariant}));
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::int8}) {
      if (weights != DType::q4_0 && type != DType::f16) continue;
      DYNAMIC_SECTION(to_string(weights) << " weights, " << to_string(type) << " KV") {
        Session whole = must(engine.session({.kv = {.dtype = type, .prefix = PrefixReuse::off}}));
        const auto expected = all_logits(whole, tokens, tokens.size());
        for (const std::size_t chunk : {1, 7, 33}) {
          INFO("chunks of " << chunk);
          Session session = must(engine.session({.kv = {.dtype = type, .page_tokens = 16, .prefix = PrefixReuse::off}}));
          CHECK(same_bits(all_logits(session, tokens, chunk), expected));
          CHECK(checksums(session) == checksums(whole));
        }
        Session contiguous = must(engine.session({.kv = {.dtype = type, .kind = KvKind::contiguous}}));
        CHECK(same_bits(all_logits(contiguous, tokens, 50), expected));

        // Beside others, which are at other places of their sequences.
        Session a = must(engine.session({.kv = {.dtype = type, .prefix = PrefixReuse::off}}));
        Session b = must(engine.session({.kv = {.dtype = type, .prefix = PrefixReuse::off}}));
        must(b.append(made_tokens(40, kShape.vocab, 2)));
        Batch batch;
        for (std::size_t t = 0; t < 60; ++t) {
          must(batch.add(a, {.token = tokens[t], .want = Want::logits}));
          must(batch.add(b, {.token = tokens[(t * 7) % tokens.size()], .want = Want::nothing}));
        }
        const Outputs outputs = must(engine.forward(batch));
        bool same = true;
        for (std::size_t t = 0; t < 60; ++t) {
          same = same && same_bits(outputs.row(2 * t), std::span(expected).subspan(t * kShape.vocab, kShape.vocab));
        }
        CHECK(same);
        CHECK(must(whole.verify()).verdict == Verdict::same);
      }
    }
  }
}

TEST_CASE("the default depends on how many rows are computed at once, and says so", "[cuda]") {
  const auto tokens = made_tokens(150, kShape.vocab, 1);
  const MadeModel model = make_model(kShape, DType::f16);
  const Engine engine = model.load(on_cuda());
  Session whole = must(engine.session({.kv = {.dtype = DType::f32}}));
  Session chunked = must(engine.session({.kv = {.dtype = DType::f32, .prefix = PrefixReuse::off}}));
  CHECK_FALSE(same_bits(all_logits(whole, tokens, tokens.size()), all_logits(chunked, tokens, 7)));
  bool said = false;
  for (const KernelUse& use : must(engine.explain())) said = said || use.kernel.find("depend on the rows") != std::string::npos;
  CHECK(said);
  CHECK(must(whole.verify()).verdict == Verdict::unverifiable);
}
