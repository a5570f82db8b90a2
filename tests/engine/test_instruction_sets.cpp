// Contract 2 for every instruction set that runs here, every weight format and all kinds of numerics that promise it:
// one token at a time, in chunks, at once, batched, on any number of threads, a token's logits are the same bits; and on
// another instruction set, if that computes in the same families.
#include <map>

#include <tessera/extend/formats/rows.hpp>

#include "cpu/tile_emulator.hpp"
#include "engine/made_model.hpp"
#include "engine/snapshot_bytes.hpp"
#include "kv/held_types.hpp"
#include "sanitized.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

bool can_run(const ModelFile& file, InstructionSet set) { return Engine::plan(file, {.instruction_set = set}).has_value(); }

// What the products and the attention of an engine are computed in.
std::string families(const Engine& engine, DType kv) {
  std::string all;
  for (const KernelUse& use : must(engine.explain())) {
    if (use.kind == Operation::linear || (use.kind == Operation::attention && use.dtype == to_string(kv))) {
      all += use.family + " ";
    }
  }
  return all;
}

// True if the CPU has VDPBF16PS in the order of docs/reference/numerics.md.
bool has_pairs() {
  const MadeModel model = make_model({}, DType::bf16);
  if (!can_run(model.file(), InstructionSet::avx512_vnni)) return false;
  return families(model.load({.instruction_set = InstructionSet::avx512_vnni}), DType::bf16).starts_with("bf16-pairs");
}

// Logits of all tokens of `tokens`, in a batch with another sequence that advances at another pace.
std::vector<float> batched_logits(const Engine& engine, std::span<const Token> tokens, DType kv) {
  Session session = must(engine.session({.kv = {.dtype = kv}}));
  Session other = must(engine.session({.kv = {.dtype = kv}}));
  std::vector<float> values;
  std::size_t done = 0;
  for (std::size_t step = 1; done < tokens.size(); ++step) {
    Batch batch;
    std::vector<std::size_t> mine;
    for (std::size_t i = 0; i < 1 + step % 3; ++i) must(batch.add(other, {.token = static_cast<Token>(step), .embedding = {}}));
    for (std::size_t i = 0; i < 1 + step % 4 && done < tokens.size(); ++i) {
      mine.push_back(1 + step % 3 + i);
      must(batch.add(session, {.token = tokens[done++], .embedding = {}, .want = Want::logits}));
    }
    const Outputs outputs = must(engine.forward(batch));
    for (const std::size_t row : mine) values.insert(values.end(), outputs.row(row).begin(), outputs.row(row).end());
  }
  return values;
}

// Logits of all tokens, those from `single` on in steps of one token; the others in one step. Each step of one costs as much as
// one of sixteen where tiles are emulated, and reads all weights.
std::vector<float> single_logits(const Engine& engine, std::span<const Token> tokens, DType kv, std::size_t single) {
  Session session = must(engine.session({.kv = {.dtype = kv}}));
  std::vector<float> values = all_logits(session, tokens.first(single), single);
  const std::vector<float> rest = all_logits(session, tokens.subspan(single), 1);
  values.insert(values.end(), rest.begin(), rest.end());
  return values;
}

void check_chunks(const Engine& engine, std::span<const Token> tokens, DType kv, std::span<const float> expected) {
  if (!tests::kSanitized) CHECK(same_bits(single_logits(engine, tokens, kv, 29), expected));  // 29 to 40: a border of 32
  for (const std::size_t chunk : {std::size_t{7}, std::size_t{16}, tokens.size()}) {
    Session session = must(engine.session({.kv = {.dtype = kv}}));
    INFO("chunks of " << chunk);
    CHECK(same_bits(all_logits(session, tokens, chunk), expected));
  }
}

}  // namespace

TEST_CASE("the same bits on every instruction set, in every format", "[bits]") {
  std::size_t combination = 0;
  for (const DType format : formats::all()) {
    const MadeModel model = make_model({.d_model = 256, .layers = 1, .heads = 4, .kv_heads = 2, .ffn = 512, .vocab = 100}, format);
    const ModelFile file = model.file();
    const auto tokens = made_tokens(41, 100, 1);
    for (const Numerics numerics : {Numerics::automatic, Numerics::bf16, Numerics::invariant}) {
      const bool quantised = format != DType::f32 && format != DType::f16 && format != DType::bf16;
      if (numerics == Numerics::invariant && quantised && format != DType::q4_0) continue;  // as automatic
      const DType kv = kKvTypes[combination++ % std::size(kKvTypes)];
      std::map<std::string, std::vector<float>> expected_of;  // by families
      for (const InstructionSet set : kInstructionSets) {
        if (!can_run(file, set)) continue;
        INFO(to_string(format) << ", numerics " << to_string(numerics) << ", KV " << to_string(kv) << ", " << to_string(set));
        const std::uint32_t threads = 1 + static_cast<std::uint32_t>(set) % 3;
        const Engine engine = model.load({.numerics = numerics, .instruction_set = set, .threads = threads});
        std::vector<float>& expected = expected_of[families(engine, kv)];
        if (expected.empty()) {
          Session session = must(engine.session({.kv = {.dtype = kv}}));
          expected = all_logits(session, tokens, tokens.size());
          CHECK(std::all_of(expected.begin(), expected.end(), [](float value) { return std::isfinite(value); }));
        } else if (set != InstructionSet::baseline) {  // which has no FMA and takes its time
          check_chunks(engine, tokens, kv, expected);
        }
        CHECK(same_bits(batched_logits(engine, tokens, kv), expected));
      }
      const bool own_kv = numerics == Numerics::automatic && kv != DType::f32;
      const bool own_weights = numerics == Numerics::automatic && (format == DType::f16 || format == DType::bf16);
      CHECK(expected_of.size() <= (own_weights ? 3u : own_kv ? 2u : 1u));
    }
  }
}

TEST_CASE("the same bits at the shape of a 1.1B model, cached, uncached, chunked and batched", "[bits]") {
  for (const DType format : {DType::q4_0, DType::q8_0, DType::q4_k, DType::bf16}) {
    DYNAMIC_SECTION(to_string(format)) {
      const MadeModel model = make_model(
          {.d_model = 2048, .layers = 2, .heads = 32, .kv_heads = 4, .ffn = 5632, .vocab = 1000, .context = 2048}, format);
      const std::size_t n_tokens = tests::kSanitized ? 66 : 300;
      const auto tokens = made_tokens(n_tokens, 1000, 2);
      const Engine engine = model.load();
      Session session = must(engine.session());
      const auto expected = all_logits(session, tokens, tokens.size());
      CHECK(same_bits(single_logits(engine, tokens, DType::automatic, n_tokens * 5 / 6), expected));  // 250 to 299: one of 256
      for (const std::size_t chunk : {std::size_t{33}, std::size_t{150}}) {
        Session chunked = must(engine.session());
        INFO("chunks of " << chunk);
        CHECK(same_bits(all_logits(chunked, tokens, chunk), expected));
      }
      const std::span<const Token> some = std::span(tokens).first(60);
      CHECK(same_bits(batched_logits(engine, some, DType::automatic), std::span(expected).first(60 * 1000)));
      // Uncached: every prefix from nothing.
      for (const std::size_t n : {std::size_t{1}, std::size_t{17}, std::size_t{256}, std::size_t{257}}) {
        if (n > n_tokens) continue;
        Session fresh = must(engine.session());
        const Logits last = must(fresh.append(std::span(tokens).first(n)));
        CHECK(same_bits(last.values, std::span(expected).subspan((n - 1) * 1000, 1000)));
      }
    }
  }
}

TEST_CASE("16-bit weights and KV are computed in what the set is fast at, or as tiles do where all shall be the same", "[isa]") {
  const auto check = [](DType format, DType kv, Numerics numerics, InstructionSet set, const std::string& wanted) {
    const MadeModel model = make_model({}, format);
    if (!can_run(model.file(), set)) return;
    INFO(to_string(format) << ", " << to_string(numerics) << ", " << to_string(set));
    CHECK(families(model.load({.numerics = numerics, .instruction_set = set}), kv) == wanted + " ");
  };
  const bool pairs_as_written = has_pairs();
  if (!pairs_as_written) WARN("no VDPBF16PS here, or not as written: bf16-pairs is not tested");
  for (const InstructionSet set : kInstructionSets) {
    const bool tiles = set == InstructionSet::amx, pairs = set == InstructionSet::avx512_vnni && pairs_as_written;
    check(DType::f16, DType::f16, Numerics::automatic, set, tiles ? "bf16x3 bf16x3" : "f32 f32");
    check(DType::bf16, DType::bf16, Numerics::automatic, set, tiles ? "bf16 bf16" : pairs ? "bf16-pairs bf16-pairs" : "f32 bf16");
    check(DType::q8_0, DType::int8, Numerics::automatic, set, pairs ? "int8 bf16-pairs" : "int8 bf16");
    check(DType::f32, DType::f32, Numerics::automatic, set, "f32 f32");
    check(DType::f16, DType::f16, Numerics::fastest, set, tiles ? "bf16x3 bf16x3" : "f32 f32");
    check(DType::q8_0, DType::f16, Numerics::fastest, set, tiles ? "int8+bf16 bf16" : pairs ? "int8 bf16-pairs" : "int8 f32");
    check(DType::q8_0, DType::f16, Numerics::automatic, set, tiles ? "int8 bf16x3" : "int8 f32");
    for (const Numerics numerics : {Numerics::invariant, Numerics::bf16}) {
      check(DType::f16, DType::f16, numerics, set, "bf16x3 bf16x3");
      check(DType::bf16, DType::int8, numerics, set, "bf16 bf16");
    }
  }
}

TEST_CASE("a saved session goes on, in the same bits, on every set that computes its KV type in the same families", "[bits]") {
  const MadeModel model = make_model({}, DType::q8_0);
  const auto tokens = made_tokens(20, 300, 4);
  const bool pairs = has_pairs();
  const auto family_of = [&](DType kv, InstructionSet set) {
    if (kv == DType::f32) return "f32";
    if (kv == DType::f16) return set == InstructionSet::amx ? "bf16x3" : "f32";
    return set == InstructionSet::avx512_vnni && pairs ? "bf16-pairs" : "bf16";
  };
  std::size_t crossed = 0;
  for (const DType kv : kKvTypes) {
    for (const InstructionSet from : {InstructionSet::avx2, InstructionSet::avx512_vnni, InstructionSet::amx}) {
      if (!can_run(model.file(), from)) continue;
      const Engine engine = model.load({.instruction_set = from});
      Session session = must(engine.session({.kv = {.dtype = kv}}));
      must(session.append(tokens));
      const Bytes bytes = saved(session);
      const Logits expected = must(session.append(std::span(tokens).first(3)));
      for (const InstructionSet to : {InstructionSet::avx2, InstructionSet::avx512, InstructionSet::avx512_vnni, InstructionSet::amx}) {
        if (!can_run(model.file(), to)) continue;
        INFO(to_string(kv) << " from " << to_string(from) << " to " << to_string(to));
        const Engine other = model.load({.instruction_set = to});
        auto restored = other.restore(bytes);
        const bool same = families(engine, kv) == families(other, kv);
        CHECK(same == (std::string_view(family_of(kv, from)) == family_of(kv, to)));
        CHECK(restored.has_value() == same);
        if (!restored) {
          CHECK_THAT(restored.error().message(), Catch::Contains("other numerics") && Catch::Contains(family_of(kv, from)));
          continue;
        }
        CHECK(same_bits(must(restored->append(std::span(tokens).first(3))).values, expected.values));
        crossed += from != to;
      }
    }
  }
  // AVX-512 with VNNI and tiles differ in what they compute F16 in, and in pairs where there are such: F32 at least crosses.
  if (can_run(model.file(), InstructionSet::amx)) CHECK(crossed >= (pairs ? 2 : 2 * (std::size(kKvTypes) - 1)));
}

TEST_CASE("a session whose products other families would go on with is refused", "[bits]") {
  // Of all families that the first engine names, the second has each: for other operations.
  const auto check = [](DType format, DType kv) {
    const MadeModel model = make_model({}, format);
    if (!can_run(model.file(), InstructionSet::avx2)) return;
    const Engine as_tiles = model.load({.numerics = Numerics::invariant, .instruction_set = InstructionSet::avx2});
    const Engine as_vectors = model.load({.instruction_set = InstructionSet::avx2});
    Session session = must(as_tiles.session({.kv = {.dtype = kv}}));
    const auto tokens = made_tokens(40, 300, 5);
    must(session.append(tokens));
    const auto restored = as_vectors.restore(saved(session));
    REQUIRE_FALSE(restored);
    CHECK_THAT(restored.error().message(), Catch::Contains("other numerics"));
    Session fresh = must(as_vectors.session({.kv = {.dtype = kv}}));
    must(fresh.append(tokens));
    CHECK(fresh.reused() == 0);
  };
  check(DType::bf16, DType::f32);
  check(DType::bf16, DType::bf16);
}

#if defined(__x86_64__)
TEST_CASE("engines run on tiles, real or emulated, wherever that can be", "[isa]") {
  CHECK(can_run(make_model({}, DType::f32).file(), InstructionSet::amx) == (tile_unit() != TileUnit::none));
}
#endif

TEST_CASE("numerics fastest gives up the same bits, and says so", "[bits]") {
  const MadeModel model = make_model({}, DType::q8_0);
  const Engine engine = model.load({.numerics = Numerics::fastest});
  if (must(engine.explain()).front().kernel != "amx") {  // nothing is faster than 8 bits there
    CHECK(families(engine, DType::f32) == "int8 f32 ");
    return;
  }
  bool told = false;
  for (const KernelUse& use : must(engine.explain())) told = told || use.family == "int8+bf16";
  CHECK(told);
  const auto tokens = made_tokens(64, 300, 3);
  Session at_once = must(engine.session()), one_by_one = must(engine.session());
  CHECK_FALSE(same_bits(all_logits(at_once, tokens, 64), all_logits(one_by_one, tokens, 1)));
}

TEST_CASE("numerics fastest keeps the same bits where there are no tiles", "[bits]") {
  const MadeModel model = make_model({}, DType::q8_0);
  const auto tokens = made_tokens(80, 300, 3);
  for (const InstructionSet set : {InstructionSet::avx2, InstructionSet::avx512_vnni}) {
    if (!can_run(model.file(), set)) continue;
    const Engine engine = model.load({.numerics = Numerics::fastest, .instruction_set = set});
    Session session = must(engine.session());
    const auto expected = all_logits(session, tokens, tokens.size());
    check_chunks(engine, tokens, DType::automatic, expected);
    CHECK(same_bits(batched_logits(engine, tokens, DType::automatic), expected));
  }
}

TEST_CASE("an instruction set that cannot run here is an error that names those that can", "[isa]") {
  const MadeModel model = make_model({}, DType::f32);
  const InstructionSet foreign =
      can_run(model.file(), InstructionSet::baseline) ? InstructionSet::neon : InstructionSet::baseline;
  const auto engine = Engine::load(model.file(), {.instruction_set = foreign});
  REQUIRE_FALSE(engine);
  CHECK(engine.error().code() == ErrorCode::unsupported);
  CHECK(engine.error().message().find("auto") != std::string::npos);
}

TEST_CASE("explain names the instruction set, chosen or forced, and strict finds no fallback", "[isa]") {
  const MadeModel model = make_model({}, DType::q4_0);
  for (const InstructionSet set : kInstructionSets) {
    if (!can_run(model.file(), set)) continue;
    const Engine engine = model.load({.instruction_set = set, .fallback = Fallback::refuse});
    CHECK(must(engine.explain()).front().kernel == to_string(set));
  }
}
