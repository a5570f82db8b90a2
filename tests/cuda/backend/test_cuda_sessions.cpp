// Sessions on CUDA: shared, copied, edited, suspended, saved, moved between backends, generating. What must be the same
// bits is so with invariant numerics; what the CPU computes too is within the tolerances of rig.hpp.
#include <optional>
#include <thread>

#include <tessera/extend/kv/layer_on_host.hpp>
#include <tessera/extend/kv/records.hpp>

#include "cuda/backend/rig.hpp"
#include "engine/kv_file.hpp"
#include "engine/kv_twins.hpp"
#include "engine/snapshot_bytes.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8};
const GenerateOptions kTwenty{.max_tokens = 20, .end_of_generation = EndOfGeneration::ignore};

Engine invariant(const std::string& name, EngineOptions options = {}) {
  options.numerics = Numerics::invariant;
  return load_golden(name, on_cuda(std::move(options)));
}

Session given(const Engine& engine, std::span<const Token> tokens, KvOptions kv = {}) {
  Session session = must(engine.session({.kv = std::move(kv)}));
  must(session.append(tokens));
  return session;
}

bool as_if_alone(const Session& session) {
  return same_bits(session.logits(), lone_logits(session.engine(), types_of(session), session.tokens()));
}

// All keys or values of a layer, decoded  [heads][positions][dim].
std::vector<float> decoded(const Session& session, std::size_t layer, kv::KeyOrValue part) {
  const KvCache& kv = session.kv();
  const auto host = must(kv::LayerOnHost::read(kv, layer, kv.first(), kv.length(), system_memory()));
  std::vector<float> values;
  for (std::size_t head = 0; head < kv.layout().layer(layer).shape.kv_heads; ++head) {
    const kv::HeadPart of = host.head(part, head);
    std::vector<float> record(kv::dim_of(*host.view().layout, of));
    for (std::uint64_t p = kv.first(); p < kv.length(); ++p) {
      kv::decode(host.view(), of, p, record.data());
      values.insert(values.end(), record.begin(), record.end());
    }
  }
  return values;
}

}  // namespace

TEST_CASE("forks diverge, and the parent keeps its bits", "[cuda][sessions]") {
  const Engine engine = invariant("llama-long");
  const auto tokens = make_tokens(1, 300, engine.spec().vocab_size);
  const auto all = std::span<const Token>(tokens);
  for (const DType type : kTypes) {
    Session parent = given(engine, all.first(70), {.dtype = type, .page_tokens = 16, .prefix = PrefixReuse::off});
    const Snapshot before(parent);
    Session a = must(parent.fork()), b = must(a.fork());
    CHECK(Snapshot(b) == before);
    must(a.append(all.subspan(100, 30)));
    CHECK(Snapshot(parent) == before);
    CHECK(Snapshot(b) == before);
    must(b.append(all.subspan(200, 1)));
    must(parent.append(all.subspan(150, 3)));
    CHECK(as_if_alone(a));
    CHECK(as_if_alone(b));
    CHECK(as_if_alone(parent));
    must(parent.truncate(33));
    must(parent.append(all.subspan(33, 37)));
    CHECK(Snapshot(parent) == before);
    CHECK(must(a.verify()).verdict == Verdict::same);
  }
}

TEST_CASE("pages of a common beginning are adopted, with the same bits", "[cuda][sessions]") {
  const Engine engine = invariant("llama-long");
  const auto tokens = make_tokens(2, 200, engine.spec().vocab_size);
  for (const DType type : kTypes) {
    const Session first = given(engine, tokens, {.dtype = type});
    const Session second = given(engine, tokens, {.dtype = type});
    CHECK(second.reused() == 192);
    CHECK(Snapshot(second) == Snapshot(first));
    CHECK(as_if_alone(second));
    CHECK(given(engine, tokens, {.dtype = type, .salt = "another tenant"}).reused() == 0);
  }
}

TEST_CASE("copies, also into other types and layouts", "[cuda][sessions]") {
  const Engine engine = invariant("llama-gqa");
  const auto tokens = make_tokens(3, 50, engine.spec().vocab_size);
  const auto more = make_tokens(4, 5, engine.spec().vocab_size);
  for (const DType type : kTypes) {
    const Session session = given(engine, tokens, {.dtype = type, .page_tokens = 16});
    Session clone = must(session.clone());
    CHECK(Snapshot(clone) == Snapshot(session));
    Session contiguous = must(session.convert({.kind = KvKind::contiguous, .page_tokens = 64}));
    CHECK(checksums(contiguous) == checksums(session));
    must(clone.append(more));
    must(contiguous.append(more));
    CHECK(same_bits(clone.logits(), contiguous.logits()));
    for (const DType to : kTypes) {
      INFO(to_string(type) << " to " << to_string(to));
      Session converted = must(session.convert({.dtype = to, .page_tokens = 32}));
      CHECK(converted.edited() == (to != type));
      must(converted.append(more));
      CHECK(relative_difference(converted.logits(), clone.logits()) <= tolerance_of_kv(type) + tolerance_of_kv(to));
      // To F32 nothing is lost.
      Session back = must(converted.convert({.dtype = DType::f32}));
      CHECK(decoded(back, 0, kv::KeyOrValue::key) == decoded(converted, 0, kv::KeyOrValue::key));
    }
  }
}

TEST_CASE("tokens removed from the middle: values keep their bits, keys are the CPU's", "[cuda][sessions]") {
  const std::vector<const char*> names = {"qwen3", "falcon-7b", "llama-gqa"};
  for (const char* name : std::span(names).first(kSlower == 1 ? 3 : 1)) {
    const Engine cuda = invariant(name), cpu = load_golden(name, on_reference());
    const auto tokens = make_tokens(5, 60, cuda.spec().vocab_size);
    for (const DType type : kTypes) {
      for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
        INFO(name << " " << to_string(type));
        // Layers of one type, and of two.
        const DType at_end = kind == KvKind::paged ? DType::automatic : type == DType::int8 ? DType::f32 : DType::int8;
        const KvOptions kv{.dtype = type, .kind = kind, .page_tokens = 16, .wide = {.dtype = at_end, .first = 1, .last = 0}};
        const float tolerance = std::max(tolerance_of_kv(type), at_end == DType::automatic ? 0.0f : tolerance_of_kv(at_end));
        Session ours = given(cuda, tokens, kv);
        // The same bytes on the CPU, so that the edit alone can make a difference.
        Session theirs = must(cpu.restore(saved(ours), {.kv = kv}));
        must(ours.remove(5, 23));
        must(theirs.remove(5, 23));
        CHECK(checksums(ours) == checksums(theirs));
        CHECK(must(ours.verify()).verdict == Verdict::same);
        must(ours.append(std::span(tokens).first(7)));
        must(theirs.append(std::span(tokens).first(7)));
        CHECK(relative_difference(ours.logits(), theirs.logits()) <= tolerance);
        must(ours.keep_window(3, 10));
        CHECK(ours.tokens().size() == 13);
        CHECK(must(ours.verify()).verdict == Verdict::same);
      }
    }
  }
  const Engine learned = invariant("gpt2");
  Session session = given(learned, make_tokens(1, 20, learned.spec().vocab_size));
  CHECK(session.remove(3, 5).error().code() == ErrorCode::unsupported);
}

TEST_CASE("a stream goes on past its context as the CPU's does", "[cuda][sessions]") {
  const Engine cuda = invariant("llama-gqa"), cpu = load_golden("llama-gqa", on_reference());
  const auto tokens = make_tokens(6, 130, cuda.spec().vocab_size);
  const SessionOptions options{.kv = {.dtype = DType::f32, .page_tokens = 16}, .context = 40, .stream = {.sinks = 3, .window = 20}};
  Session ours = must(cuda.session(options)), theirs = must(cpu.session(options));
  for (const Token token : tokens) {
    must(ours.append(std::span(&token, 1)));
    must(theirs.append(std::span(&token, 1)));
    REQUIRE(ours.position() == theirs.position());
    CHECK(relative_difference(ours.logits(), theirs.logits()) <= tolerance_of_kv(DType::f32));
  }
  CHECK(must(ours.verify()).verdict == Verdict::same);
}

TEST_CASE("what a sliding window has passed is given back", "[cuda][sessions]") {
  const Engine cuda = invariant("mistral-long", {.sliding_window = 40, .freed_pages = FreedPages::fill_nan});
  const Engine cpu = load_golden("mistral-long", on_reference({.sliding_window = 40}));
  const auto tokens = make_tokens(7, 220, cuda.spec().vocab_size);
  for (const DType type : {DType::f32, DType::int8}) {
    const KvOptions kv{.dtype = type, .page_tokens = 16};
    Session ours = must(cuda.session({.kv = kv})), theirs = must(cpu.session({.kv = kv}));
    for (std::size_t i = 0; i < tokens.size(); i += 44) {
      must(ours.append(std::span(tokens).subspan(i, 44)));
      must(theirs.append(std::span(tokens).subspan(i, 44)));
      CHECK(ours.kv().first() == theirs.kv().first());
      CHECK(ours.kv().bytes() == theirs.kv().bytes());
      CHECK(relative_difference(ours.logits(), theirs.logits()) <= tolerance_of_kv(type));
    }
    CHECK(ours.kv().first() > 100);
    CHECK(must(ours.verify()).verdict == Verdict::same);
    must(ours.truncate(150));  // before what is still there: computed again
    must(ours.append(std::span(tokens).subspan(150, 20)));
    CHECK(as_if_alone(ours));
  }
}

TEST_CASE("suspended to the file and resumed with the same bits", "[cuda][sessions]") {
  for (const char* name : {"llama-long", "gpt2"}) {
    const Engine engine = invariant(name, with_file("cuda-resume", std::uint64_t{4} << 20));
    const auto tokens = make_tokens(8, std::min<std::size_t>(engine.spec().context, 120), engine.spec().vocab_size);
    const auto half = tokens.size() / 2;
    for (const DType type : kTypes) {
      INFO(name << " " << to_string(type));
      const KvOptions kv{.dtype = type, .page_tokens = 16, .prefix = PrefixReuse::off};
      Session session = given(engine, std::span(tokens).first(half), kv);
      const auto sums = checksums(session);
      must(session.suspend());
      CHECK(eventually([&] { return session.kv().bytes() == 0; }));
      if (type != DType::f16) must(session.prefetch());
      if (type != DType::int8) must(session.resume());  // else the append does
      if (type != DType::int8) CHECK(checksums(session) == sums);
      must(session.append(std::span(tokens).subspan(half)));
      CHECK(as_if_alone(session));
      CHECK(engine.kv_figures().file_bytes == 0);
    }
  }
}

TEST_CASE("saved and restored: on CUDA the same bits, on the other backend what it goes on from", "[cuda][sessions]") {
  for (const char* name : {"llama-gqa", "mistral", "gpt2", "falcon-7b"}) {
    const Engine cuda = invariant(name), again = invariant(name), cpu = load_golden(name, on_reference());
    const auto tokens = read_tokens(golden_dir() / (std::string(name) + ".tokens.txt"));
    const auto some = std::span(tokens).first(tokens.size() - 3), rest = std::span(tokens).last(3);
    for (const DType type : kTypes) {
      INFO(name << " " << to_string(type));
      Session session = given(cuda, some, {.dtype = type, .page_tokens = 16, .prefix = PrefixReuse::off});
      const Bytes bytes = saved(session);
      Session same = must(again.restore(bytes, {.kv = {.page_tokens = 64}}));
      Session contiguous = must(again.restore(bytes, {.kv = {.kind = KvKind::contiguous}}));
      CHECK(checksums(same) == checksums(session));
      CHECK(same_bits(same.logits(), session.logits()));
      CHECK(must(same.verify()).verdict == Verdict::same);
      Session there = must(cpu.restore(bytes));
      CHECK(checksums(there) == checksums(session));
      CHECK(there.edited());
      CHECK(must(there.verify()).verdict == Verdict::unverifiable);
      Session back = must(cuda.restore(saved(there)));
      CHECK(checksums(back) == checksums(session));
      CHECK(must(back.verify()).verdict == Verdict::unverifiable);
      for (Session* s : {&session, &same, &contiguous, &there, &back}) must(s->append(rest));
      CHECK(same_bits(same.logits(), session.logits()));
      CHECK(same_bits(contiguous.logits(), session.logits()));
      CHECK(same_bits(back.logits(), session.logits()));
      CHECK(relative_difference(there.logits(), session.logits()) <= tolerance_of_kv(type));
    }
  }
  // The other numerics are another family.
  const Session session = given(invariant("llama-gqa"), make_tokens(1, 20, 90));
  CHECK(load_golden("llama-gqa", on_cuda()).restore(saved(session)).error().code() == ErrorCode::invalid_argument);
}

TEST_CASE("states of recurrent layers: chunks, forks, copies, checkpoints, saved and restored", "[cuda][sessions]") {
  for (const char* name : {"qwen3next", "granitehybrid", "lfm2"}) {
    DYNAMIC_SECTION(name) {
      const Engine engine = invariant(name);
      const auto tokens = make_tokens(5, 60, engine.spec().vocab_size);
      const auto all = std::span<const Token>(tokens);
      const KvOptions kv{.dtype = DType::f32, .page_tokens = 16, .prefix = PrefixReuse::off};
      Session session = given(engine, all.first(40), kv);
      Session one_by_one = must(engine.session({.kv = kv}));
      for (const Token token : all.first(40)) must(one_by_one.append({&token, 1}));
      CHECK(same_bits(one_by_one.logits(), session.logits()));
      CHECK(checksums(one_by_one) == checksums(session));

      Session fork = must(session.fork()), clone = must(session.clone());
      Session contiguous = must(session.convert({.kind = KvKind::contiguous, .page_tokens = 64}));
      const Snapshot before(session);
      for (Session* copy : {&fork, &clone, &contiguous}) must(copy->append(all.subspan(40, 12)));
      CHECK(Snapshot(session) == before);
      must(session.append(all.subspan(40, 12)));
      for (Session* copy : {&fork, &clone, &contiguous}) CHECK(same_bits(copy->logits(), session.logits()));
      CHECK(must(session.verify()).verdict == Verdict::same);

      Session restored = must(engine.restore(saved(session)));
      must(restored.append(all.subspan(52, 8)));
      must(session.append(all.subspan(52, 8)));
      CHECK(same_bits(restored.logits(), session.logits()));
      const Engine cpu = load_golden(name, on_reference());
      Session on_cpu = must(cpu.session({.kv = {.dtype = DType::f32}}));
      must(on_cpu.append(all.first(60)));
      CHECK(relative_difference(session.logits(), on_cpu.logits()) <= tolerance_of_kv(DType::f32));
    }
  }
}

TEST_CASE("tokens drawn on the device are those of a sampler over the logits", "[cuda][sessions]") {
  const Engine engine = invariant("llama-gqa");
  const auto tokens = make_tokens(9, 12, engine.spec().vocab_size);
  const std::vector<std::function<Sampler()>> samplers = {
      [] { return sampling::chain().greedy().build(); },
      [] { return sampling::chain().temperature(0.8f).top_p(0.9f).seed(3).build(); },
      [] { return sampling::chain().top_k(10).temperature(1.3f).seed(4, 1).build(); },
      [] { return sampling::chain().seed(5).build(); },
  };
  for (const auto& make : samplers) {
    Session session = given(engine, tokens);
    Sampler sampler = make(), host = make();
    if (!on_real_device()) tessera_emulator_reset();
    must(session.generate(sampler, kTwenty, {}));
    if (!on_real_device()) CHECK(tessera_emulator_launches("sample_tokens") == 19);  // the first one's logits were there
    Session expected = given(engine, tokens);
    GenerateOptions with_logprobs = kTwenty;  // logits come to the host, and its sampler draws
    with_logprobs.logprobs = 3;
    std::vector<Piece> pieces;
    must(expected.generate(host, with_logprobs, [&](const Piece& piece) {
      pieces.push_back(piece);
      return true;
    }));
    CHECK(std::ranges::equal(session.tokens(), expected.tokens()));
    for (const Piece& piece : pieces) {
      CHECK(piece.top.size() == 3);
      CHECK(piece.top[0].logprob >= piece.logprob);
    }
    CHECK(session.has_pending());
    must(session.append({}));
    must(expected.append({}));
    CHECK(Snapshot(session) == Snapshot(expected));
  }
}

TEST_CASE("stop strings, tokens and callbacks end a generation where the CPU's ends", "[cuda][sessions]") {
  const auto path = source_dir() / "models/tessera-stories.gguf";
  const Engine engine = must(Engine::load(path, on_cuda()));
  const auto prompt = must(engine.tokenizer().encode("Once upon a time"));
  Session session = given(engine, prompt);
  Sampler greedy = sampling::chain().greedy().build();
  std::string text;
  GenerateOptions options{.max_tokens = 12};
  std::vector<Token> drawn;
  must(session.generate(greedy, options, [&](const Piece& piece) {
    text += piece.text;
    drawn.push_back(piece.token);
    return true;
  }));
  REQUIRE(text.size() > 12);
  const std::string stop = text.substr(8, 4);
  options.stop_strings = {stop};
  std::string cut;
  Session other = given(engine, prompt);
  const auto summary = must(other.generate(greedy, options, [&](const Piece& piece) {
    cut += piece.text;
    return true;
  }));
  CHECK(summary.finish == FinishReason::stop_string);
  CHECK(cut == text.substr(0, text.find(stop)));
  Session third = given(engine, prompt);
  CHECK(must(third.generate(greedy, {.max_tokens = 12, .stop_tokens = {drawn[4]}}, {})).finish == FinishReason::stop_token);
  Session fourth = given(engine, prompt);
  std::size_t pieces = 0;
  CHECK(must(fourth.generate(greedy, kTwenty, [&](const Piece&) { return ++pieces < 3; })).finish == FinishReason::callback);
  CHECK(fourth.tokens().size() == prompt.size() + 3);
}

TEST_CASE("cancelled: within a step, and the session is as it was", "[cuda][sessions]") {
  const Engine engine = invariant("llama-long", {.step_rows = 32});
  const auto tokens = make_tokens(10, 200, engine.spec().vocab_size);
  Session session = given(engine, std::span(tokens).first(20), {.prefix = PrefixReuse::off});
  const Snapshot before(session);
  std::size_t steps = 0;
  const auto by_callback = session.append(std::span(tokens).subspan(20), {.progress = [&](std::size_t, std::size_t) { return ++steps < 2; }});
  REQUIRE(!by_callback);
  CHECK(by_callback.error().code() == ErrorCode::cancelled);
  CHECK(steps == 2);
  CHECK(Snapshot(session) == before);
  std::stop_source stop;
  steps = 0;
  const auto by_stop = session.append(std::span(tokens).subspan(20), {.stop = stop.get_token(), .progress = [&](std::size_t, std::size_t) {
                                                                        ++steps;
                                                                        return stop.request_stop();
                                                                      }});
  REQUIRE(!by_stop);
  CHECK(by_stop.error().code() == ErrorCode::cancelled);
  CHECK(steps == 1);
  CHECK(Snapshot(session) == before);
  {  // while it computes
    std::stop_source late;
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      late.request_stop();
    });
    const auto result = session.append(std::span(tokens).subspan(20), {.stop = late.get_token()});
    canceller.join();
    if (!result) CHECK(Snapshot(session) == before);
    else must(session.truncate(20));
  }
  must(session.append(std::span(tokens).subspan(session.tokens().size())));
  CHECK(as_if_alone(session));
}

TEST_CASE("embeddings as rows, hidden states, and ranges of layers", "[cuda][sessions]") {
  for (const char* name : {"llama-gqa", "gpt2", "falcon-7b"}) {
    INFO(name);
    const Engine cuda = invariant(name), cpu = load_golden(name, on_reference());
    const std::uint32_t layers = cuda.spec().n_layers(), d = cuda.spec().d_model;
    const auto tokens = make_tokens(11, 21, cuda.spec().vocab_size);
    std::vector<float> results[2];
    for (const Engine* engine : {&cuda, &cpu}) {
      std::vector<float>& out = results[engine == &cpu];
      Session lower = must(engine->session({.kv = {.dtype = DType::f32}})), upper = must(engine->session({.kv = {.dtype = DType::f32}}));
      Batch first;
      for (const Token token : tokens) must(first.add(lower, {.token = token, .embedding = {}, .want = Want::hidden}));
      const Outputs hidden = must(engine->forward(first, {.first_layer = 0, .last_layer = 1}));
      Batch second;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        REQUIRE(hidden.row(i).size() == d);
        out.insert(out.end(), hidden.row(i).begin(), hidden.row(i).end());
        must(second.add(upper, {.embedding = hidden.row(i), .want = Want::logits}));
      }
      const Outputs logits = must(engine->forward(second, {.first_layer = 1, .last_layer = layers}));
      Session whole = must(engine->session({.kv = {.dtype = DType::f32}}));
      const auto expected = all_logits(whole, tokens, tokens.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        CHECK(same_bits(logits.row(i), std::span(expected).subspan(i * cuda.spec().vocab_size, cuda.spec().vocab_size)));
      }
      // Tokens and embeddings by turns.
      Session mixed = must(engine->session({.kv = {.dtype = DType::f32}}));
      Batch both;
      for (std::size_t i = 0; i < 6; ++i) {
        if (i % 2 == 0) must(both.add(mixed, {.token = tokens[i], .embedding = {}, .want = Want::nothing}));
        else must(both.add(mixed, {.embedding = hidden.row(i), .want = i == 5 ? Want::logits : Want::hidden}));
      }
      const Outputs outputs = must(engine->forward(both));
      out.insert(out.end(), outputs.row(3).begin(), outputs.row(3).end());
      out.insert(out.end(), outputs.row(5).begin(), outputs.row(5).end());
    }
    CHECK(relative_difference(results[0], results[1]) <= tolerance_of_kv(DType::f32));
  }
}

TEST_CASE("two engines on one device, and several threads of one engine", "[cuda][sessions]") {
  const Engine engines[] = {invariant("llama-long"), invariant("llama-long", {.step_rows = 40})};
  const auto tokens = make_tokens(12, 90, engines[0].spec().vocab_size);
  const std::vector<float> expected = lone_logits(engines[0], DType::f16, tokens);
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 3; ++i) {
        const Engine& engine = engines[(t + i) % 2];
        auto session = engine.session({.kv = {.dtype = DType::f16, .page_tokens = 16}});
        if (!session || !session->append(std::span(tokens).first(30 + t))) return void(++wrong[t]);
        auto fork = session->fork();
        if (!fork || !fork->append(std::span(tokens).subspan(30 + t))) return void(++wrong[t]);
        auto copy = fork->clone();
        if (!copy || !same_bits(fork->logits(), expected) || checksums(*copy) != checksums(*fork)) ++wrong[t];
        Sampler sampler = sampling::chain().greedy().build();
        if (!copy->generate(sampler, {.max_tokens = 2, .end_of_generation = EndOfGeneration::ignore}, {})) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("sessions and copies of caches outlive the engine", "[cuda][sessions]") {
  if (!on_real_device()) tessera_emulator_reset();
  {
    std::optional<KvCache> fork, clone;
    std::optional<Session> session;
    std::vector<std::uint64_t> sums;
    {
      const Engine engine = invariant("llama-gqa");
      session.emplace(given(engine, make_tokens(13, 40, engine.spec().vocab_size)));
      fork.emplace(must(session->kv().fork()));
      clone.emplace(must(must(session->convert({.kind = KvKind::contiguous})).kv().clone()));
      sums = checksums(*session);
    }
    must(session->append(std::vector<Token>{1}));
    session.reset();
    for (std::size_t layer = 0; layer < sums.size(); ++layer) {
      CHECK(fork->checksum(layer) == sums[layer]);
      CHECK(clone->checksum(layer) == sums[layer]);
    }
    must(fork->reserve(45));
  }
  if (on_real_device()) return;
  CHECK(tessera_emulator_live_count() == 0);
  CHECK(tessera_emulator_mistakes() == 0);
}
