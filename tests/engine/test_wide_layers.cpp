// KvOptions::wide: layers at the two ends have a KV type of their own, and everything else holds as with one type.
#include <tessera/scheduler/scheduler.hpp>

#include "engine/kv_rig.hpp"
#include "engine/made_model.hpp"
#include "engine/snapshot_bytes.hpp"

namespace test_wide_layers {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr WideLayers kInt8{.dtype = DType::int8, .first = 1, .last = 0};

// Pairs that a model of two layers tells apart; none with scales for latent attention.
std::vector<KvTypes> mixtures(const Engine& engine) {
  if (!holds(engine, DType::int8)) return {{DType::f16, {.dtype = DType::f32, .first = 1, .last = 0}}};
  return {{DType::int4, {.dtype = DType::int8, .first = 1, .last = 0}},
          {DType::k8v4, {.dtype = DType::f32, .first = 0, .last = 1}},
          {DType::f16, {.dtype = DType::fp8, .first = 0, .last = 1}}};
}
KvOptions options_of(const KvTypes& types) { return {.dtype = types.dtype, .wide = types.wide}; }

std::vector<DType> types_of_layers(const KvLayout& layout) {
  std::vector<DType> types;
  for (std::size_t i = 0; i < layout.layers.size(); ++i) types.push_back(layout.layer(i).dtype);
  return types;
}

template <class T>
std::string refusal(const Result<T>& result) {
  return result ? "" : result.error().message();
}

}  // namespace

TEST_CASE("layers at the ends have their type, and the plan counts it", "[wide]") {
  const MadeShape shape{.d_model = 128, .layers = 5, .heads = 2, .kv_heads = 2, .ffn = 128, .vocab = 60, .context = 64};
  const MadeModel model = make_model(shape, DType::f16);
  const auto plan_of = [&](const KvOptions& kv) { return must(Engine::plan(model.file(), {.kv = kv, .threads = 1})); };
  const std::uint64_t narrow = plan_of({.dtype = DType::int4}).kv_per_token / 5, wide = plan_of({.dtype = DType::f32}).kv_per_token / 5;
  REQUIRE(wide == 2 * 2 * 64 * 4);
  for (std::uint32_t first = 0; first <= 5; ++first) {
    for (std::uint32_t last = 0; first + last <= 5; ++last) {
      const KvOptions kv{.dtype = DType::int4, .wide = {.dtype = DType::f32, .first = first, .last = last}};
      const Plan plan = plan_of(kv);
      CHECK(plan.kv_per_token == (first + last) * wide + (5 - first - last) * narrow);
      CHECK(plan.kv == plan.kv_per_token * plan.context);
      const Engine engine = model.load({.kv = kv});
      CHECK(engine.plan().kv_wide == (first + last == 0 ? WideLayers{} : kv.wide));
      Session session = must(engine.session());
      const auto types = types_of_layers(session.kv().layout());
      for (std::uint32_t i = 0; i < 5; ++i) CHECK(types[i] == (i < first || i >= 5 - last ? DType::f32 : DType::int4));
      must(session.append(std::vector<Token>(64, 3)));
      CHECK(session.kv().bytes() == plan.kv);
    }
  }
}

TEST_CASE("wide layers in place of all are that type", "[wide]") {
  const KvRig rig;
  const Session all = rig.given(rig.prompt(150), {.dtype = DType::int8});
  for (const std::uint32_t first : {0u, 1u, 2u}) {
    const Session ends = rig.given(rig.prompt(150), {.dtype = DType::int4, .wide = {.dtype = DType::int8, .first = first, .last = 2 - first}});
    CHECK(checksums(ends) == checksums(all));
    CHECK(same_bits(ends.logits(), all.logits()));
  }
}

TEST_CASE("a layer's records are those of its type", "[wide]") {
  const KvRig rig;
  const Session floats = rig.given(rig.prompt(100), {.dtype = DType::f32});
  const auto converted = [&](const KvOptions& to) { return checksums(must(floats.convert(to))); };
  const auto mixed = converted({.dtype = DType::int4, .wide = kInt8});
  CHECK(mixed[0] == converted({.dtype = DType::int8})[0]);
  CHECK(mixed[1] == converted({.dtype = DType::int4})[1]);
  // Computed: the first layer's do not depend on what the others keep.
  const Session session = rig.given(rig.prompt(100), {.dtype = DType::int4, .wide = kInt8});
  CHECK(checksums(session)[0] == checksums(rig.given(rig.prompt(100), {.dtype = DType::int8}))[0]);
  CHECK(checksums(session)[1] != checksums(rig.given(rig.prompt(100), {.dtype = DType::int4}))[1]);
}

TEST_CASE("the same bits with wide layers, whatever the chunks, layouts and neighbours", "[wide]") {
  for (const std::string& model : representative_models()) {
    const Engine engine = load_golden(model);
    const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
    for (const KvTypes& types : mixtures(engine)) {
      INFO(model << ", " << to_string(types.dtype) << " and " << to_string(types.wide.dtype));
      Session whole = lone_session(engine, types);
      const auto expected = all_logits(whole, tokens, tokens.size());
      for (const Place& place : kPlaces) {
        KvOptions kv = options_of(types);
        kv.kind = place.kind;
        kv.page_tokens = place.page_tokens;
        Session session = must(engine.session({.kv = kv}));
        CHECK(same_bits(all_logits(session, tokens, 1 + place.page_tokens % 24), expected));
        if (session.kv().first() == whole.kv().first()) CHECK(checksums(session) == checksums(whole));  // windows give back whole pages
        CHECK(must(session.verify()).verdict == Verdict::same);
      }
      // Sessions of other types beside it in a step.
      Session mixed = must(engine.session({.kv = options_of(types)})), plain = must(engine.session({.kv = {.dtype = types.dtype}}));
      Batch batch;
      must(batch.add(plain, tokens));
      must(batch.add(mixed, tokens));
      const Outputs outputs = must(engine.forward(batch));
      CHECK(same_bits(outputs.row(batch.size() - 1), whole.logits()));
    }
  }
}

TEST_CASE("sessions with wide layers come back from files, and from no others'", "[wide]") {
  for (const std::string& model : representative_models()) {
    const Engine engine = load_golden(model), other = load_golden(model, {.threads = 1});
    const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
    for (const KvTypes& types : mixtures(engine)) {
      INFO(model << ", " << to_string(types.dtype) << " and " << to_string(types.wide.dtype));
      Session session = must(engine.session({.kv = options_of(types)}));
      must(session.append(tokens));
      const Bytes bytes = saved(session);
      for (const Place& place : kPlaces) {
        const Session restored = must(other.restore(bytes, place_options(place)));
        CHECK(types_of_layers(restored.kv().layout()) == types_of_layers(session.kv().layout()));
        check_same(session, restored);
        if (restored.kv().first() == session.kv().first()) CHECK(saved(restored) == bytes);
      }
      CHECK(other.restore(bytes, {.kv = options_of(types)}).has_value());
      CHECK_THAT(refusal(other.restore(bytes, {.kv = {.wide = {.dtype = DType::bf16}}})), Catch::Contains("not type BF16 in the first 1"));
      Session plain = must(engine.session({.kv = {.dtype = types.dtype}}));
      must(plain.append(tokens));
      CHECK_THAT(refusal(other.restore(saved(plain), {.kv = {.wide = types.wide}})), Catch::Contains("values of one type, not type"));
    }
  }
}

TEST_CASE("a file with more wide layers than the model has is damaged", "[wide]") {
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session({.kv = {.dtype = DType::int4, .wide = kInt8}}));
  must(session.append(std::vector<Token>{1, 2, 3}));
  for (const std::uint32_t value : {0u, 2u, 3u, ~0u}) {  // of none, of all, and of more
    Bytes bytes = saved(session);
    put_number(bytes, section(bytes, "STAT").payload + 52, value);
    reseal(bytes);
    const auto restored = engine.restore(bytes);
    REQUIRE(!restored);
    CHECK(restored.error().code() == ErrorCode::corrupt_file);
  }
}

TEST_CASE("pages are shared with sessions of the same types alone", "[wide]") {
  const KvRig rig;
  const KvOptions mixed{.dtype = DType::int4, .wide = kInt8};
  (void)rig.given(rig.prompt(100), {.dtype = DType::int4});
  (void)rig.given(rig.prompt(100), {.dtype = DType::int8});
  const Session first = rig.given(rig.prompt(100), mixed);
  CHECK(first.reused() == 0);
  const Session second = rig.given(rig.prompt(100), mixed);
  CHECK(second.reused() == 96);
  CHECK(as_if_alone(second));
  CHECK(rig.given(rig.prompt(100), {.dtype = DType::int4, .wide = {.dtype = DType::int8, .first = 0, .last = 1}}).reused() == 0);
  // In one step too: the second one waits for the first one's pages only if their types are the same.
  for (const bool same : {true, false}) {
    KvOptions other = mixed;
    if (!same) other.wide.dtype = DType::f16;
    Session a = rig.session(mixed), b = rig.session(other);
    Batch batch;
    must(batch.add(a, rig.part(150, 100)));
    must(batch.add(b, rig.part(150, 100)));
    must(rig.engine.forward(batch));
    CHECK(b.reused() == (same ? 96 : 0));
    rig.engine.trim();
  }
}

TEST_CASE("what is done to a session with wide layers can be replayed", "[wide]") {
  const KvRig rig(EngineOptions{.kv = {.budget = {.tokens = 160, .choice = TokenChoice::snapkv}}});
  Session session = rig.session({.dtype = DType::int4, .budget = {.tokens = 160}, .wide = {.dtype = DType::f16, .first = 0, .last = 1}});
  must(session.append(rig.prompt(200)));
  CHECK(session.tokens().size() < 160);
  must(session.remove(10, 20));
  must(session.append(rig.part(200, 20)));
  Session fork = must(session.fork());
  must(fork.truncate(fork.position() - 33));
  must(fork.append(rig.part(250, 9)));
  for (const Session* each : {&session, &fork}) CHECK(must(each->verify()).verdict == Verdict::same);
}

TEST_CASE("a conversion to other types at the ends is an edit, to the same ones it is none", "[wide]") {
  const KvRig rig;
  const Session session = rig.given(rig.prompt(70), {.dtype = DType::int4, .wide = kInt8});
  CHECK(!must(session.convert({.kind = KvKind::contiguous})).edited());
  CHECK(!must(session.convert({.dtype = DType::int4, .wide = kInt8})).edited());
  const Session plain = must(session.convert({.dtype = DType::int4}));
  CHECK(plain.edited());
  CHECK(types_of(plain).wide == WideLayers{});
  CHECK(checksums(plain)[1] == checksums(session)[1]);  // only the first layer was decoded
  CHECK(must(plain.verify()).verdict == Verdict::unverifiable);
}

TEST_CASE("the engine's wide layers are a session's unless it names types", "[wide]") {
  const Engine engine = load_golden("llama-gqa", {.kv = {.dtype = DType::int4, .wide = kInt8}});
  const auto wide = [&](const KvOptions& kv) { return types_of(must(engine.session({.kv = kv}))).wide; };
  CHECK(wide({}) == kInt8);
  CHECK(wide({.page_tokens = 16}) == kInt8);
  CHECK(wide({.dtype = DType::f32}) == WideLayers{});
  CHECK(wide({.wide = {.dtype = DType::f16, .first = 0, .last = 1}}) == WideLayers{.dtype = DType::f16, .first = 0, .last = 1});
  CHECK(wide({.wide = {.dtype = DType::int4}}) == WideLayers{});  // the same type
  for (const KernelUse& use : must(engine.explain())) {
    if (use.kind == Operation::append_kv) CHECK(use.dtype == "INT4+INT8");
  }
}

TEST_CASE("wide layers that cannot be are refused", "[wide]") {
  const Engine engine = load_golden("llama-gqa");
  const auto more = engine.session({.kv = {.wide = {.dtype = DType::int8, .first = 2, .last = 1}}});
  REQUIRE(!more);
  CHECK(more.error().code() == ErrorCode::invalid_argument);
  CHECK_THAT(more.error().message(), Catch::Contains("first 2 and the last 1 layers"));
  CHECK(!engine.session({.kv = {.wide = {.dtype = DType::int8, .first = ~0u, .last = ~0u}}}));
  CHECK_THAT(refusal(engine.session({.kv = {.wide = {.dtype = DType::q4_0}}})), Catch::Contains("type Q4_0"));
  CHECK(refusal(engine.session({.kv = {.wide = {.dtype = DType::int8}}})).empty());
}

TEST_CASE("requests with wide layers share what theirs compute, and answer as alone", "[wide][scheduler]") {
  const Engine engine = load_golden("llama-long", {.kv = {.page_tokens = 16}});
  const auto prompt = make_tokens(3, 70, engine.spec().vocab_size);
  const auto alone = [&](const KvTypes& types) {
    Session session = lone_session(engine, types);
    must(session.append(prompt));
    Sampler greedy = sampling::chain().greedy().build();
    std::vector<Token> tokens;
    for (const auto& piece : session.generate(greedy, {.max_tokens = 6, .end_of_generation = EndOfGeneration::ignore})) {
      tokens.push_back(must(Result<Piece>(piece)).token);
    }
    return tokens;
  };
  Scheduler scheduler = must(Scheduler::create(engine, {}));
  const KvTypes kinds[] = {{DType::int4, kInt8}, DType::int4, {DType::int4, kInt8}, DType::int4};
  std::vector<RequestHandle> handles;
  for (const KvTypes& types : kinds) {
    handles.push_back(must(scheduler.submit({.prompt = prompt,
                                             .session_options = {.kv = options_of(types)},
                                             .generate = {.max_tokens = 6, .end_of_generation = EndOfGeneration::ignore}})));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    std::vector<Token> tokens;
    while (auto piece = handles[i].next()) tokens.push_back(piece->piece.token);
    must(handles[i].status());
    CHECK(tokens == alone(kinds[i]));
    CHECK(handles[i].figures().reused_tokens == (i < 2 ? 0 : 64));
  }
}

}  // namespace test_wide_layers
