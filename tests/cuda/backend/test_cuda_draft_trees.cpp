// Drafts in trees on CUDA: rows whose keys and values go to several sequences. A request gives the same tokens with and without them.
#include "cuda/backend/rig.hpp"
#include "decoding/speculation_rig.hpp"

using namespace tessera;
using namespace tessera::test;

TEST_CASE("with trees of drafts a request on CUDA gives what it gives without", "[cuda]") {
  std::size_t accepted = 0;
  for (const char* model : {"llama-gqa", "gemma3", "deepseek-v2-lite"}) {
    for (const DType type : {DType::f16, DType::int8}) {
      if (type == DType::int8 && std::string_view(model) == "deepseek-v2-lite") continue;
      EngineOptions options = on_cuda({.numerics = Numerics::invariant});
      options.kv.dtype = type;
      options.kv.page_tokens = 16;
      const Engine engine = load_golden(model, options);
      const std::uint32_t vocab = engine.spec().vocab_size;
      const auto prompt = make_tokens(3, 13, vocab);
      const RequestKind kind = request_kinds().front();
      const Outcome plain = generated(engine, kind, prompt, {});
      for (const std::uint32_t branches : {2u, 5u}) {
        SpeculateOptions trees;
        trees.drafter = bush(vocab, plain.sequence);
        trees.max_drafts = 12;
        trees.length = DraftLength::longest;
        trees.branches = branches;
        const Outcome spec = generated(engine, kind, prompt, trees);
        INFO(model << ", " << to_string(type) << ", " << branches << " branches");
        CHECK(spec.told == plain.told);
        CHECK(*spec.session == *plain.session);
        accepted += spec.figures.accepted;
      }
    }
  }
  CHECK(accepted > 10);
  // Steps append by rope_append. Only copies for branches use append_kv.
  if (!on_real_device()) CHECK(tessera_emulator_launches("append_kv_f16") > 0);
}
