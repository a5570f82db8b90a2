// An empty handle never takes a process down: default-constructed, moved from, or the value of a failed Result. The table below
// has every public function of every handle; tests/checks/handles.sh fails if one is missing.
#include <tessera/conversation/conversation.hpp>
#include <tessera/decoding/drafters.hpp>
#include <tessera/decoding/samples.hpp>
#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/grammar/cache.hpp>
#include <tessera/extend/kv/layer_on_host.hpp>
#include <tessera/scheduler/scheduler.hpp>
#include <tessera/tessera.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_empty_handles {

using namespace tessera;
using namespace tessera::test;
using kv::LayerOnHost;
using namespace std::chrono_literals;

namespace {

// What is wrong with what a function gave; nothing: it is invalid_state.
std::string fault(const Error& error) {
  if (error.code() != ErrorCode::invalid_state) return "gave " + std::string(to_string(error.code())) + ": " + error.text();
  return error.message().empty() ? "says nothing" : "";
}
template <class T>
std::string fault(const Result<T>& result) {
  return fault(result.error());
}
template <class T>
std::string fault(const std::optional<Result<T>>& result) {
  return result ? fault(*result) : "gave nothing";
}

template <class X>
struct Call {
  const char* function;
  std::function<std::string(X&)> fault;
};
template <class X>
using Calls = std::vector<Call<X>>;

// A function whose Result is invalid_state; one of which an expression in `x` is true; one that gives nothing.
#define FAILS(X, f, ...) \
  Call<X> { #X "::" #f, [](X& x) { return fault(x.f(__VA_ARGS__)); } }
#define HOLDS(X, f, ...) \
  Call<X> { #X "::" #f, []([[maybe_unused]] X& x) { return (__VA_ARGS__) ? std::string() : std::string("does not hold: " #__VA_ARGS__); } }
#define DOES(X, f, ...) \
  Call<X> { #X "::" #f, [](X& x) { return x.f(__VA_ARGS__), std::string(); } }

int calls_made = 0;

template <class X>
void run(const Calls<X>& calls, X& handle, const char* how) {
  for (const Call<X>& call : calls) {
    INFO(call.function << " of a handle that is " << how);
    ++calls_made;
    CHECK(call.fault(handle) == "");
  }
}

template <class X>
void check(const Calls<X>& calls, X filled) {
  X made;
  run(calls, made, "default-constructed");
  X to = std::move(filled);
  run(calls, filled, "moved from");
  X assigned;
  assigned = std::move(to);
  run(calls, to, "moved from by assignment");
  to = std::move(assigned);  // and is one again
  Result<X> failed = Error(ErrorCode::io, "a read failed");
  run(calls, *failed, "the value of a failed Result");
}

const Engine& stories() {
  static const Engine engine = must(Engine::load(source_dir() / "models/tessera-stories.gguf", {.threads = 1}));
  return engine;
}
Sampler greedy() { return sampling::chain().greedy().build(); }
Session reading(const char* text = "Once upon a time") {
  Session session = must(stories().session({.context = 128}));
  must(session.append(must(stories().tokenizer().encode(text))));
  return session;
}
const Token kTokens[] = {1, 2};
const std::function<bool(const Piece&)> kGoOn = [](const Piece&) { return true; };
Sampler& sampler() {
  static Sampler one = greedy();
  return one;
}
template <class X>
X& empty() {
  static X one;
  one = X();
  return one;
}

GrammarVocabulary letters() {
  const std::vector<std::string> tokens = {"a", "b", ""};
  const Token end = 2;
  return must(GrammarVocabulary::create(tokens, {&end, 1}));
}
CompiledGrammar compiled() { return must(CompiledGrammar::create(must(Grammar::literal("ab")), letters())); }
KvLayout layout() {
  const KvLayerShape shape{1, 8, 8};
  return must(make_kv_layout({&shape, 1}, DType::f32));
}
KvCache cache() { return must(KvCache::contiguous(layout(), {.capacity = 64}, system_memory())); }

}  // namespace

TEST_CASE("engines, sessions and batches") {
  check<Engine>({FAILS(Engine, session), FAILS(Engine, restore, std::filesystem::path("/none")),
                 FAILS(Engine, restore, std::shared_ptr<ByteSource>()), FAILS(Engine, restore, std::span<const std::byte>()),
                 FAILS(Engine, adapter, "/none"), FAILS(Engine, forward, Batch()), FAILS(Engine, kv_need, Batch()),
                 FAILS(Engine, embed, std::span<const std::string_view>()), FAILS(Engine, rerank, "", {}), FAILS(Engine, explain),
                 HOLDS(Engine, kv_room, x.kv_room().bytes == 0), HOLDS(Engine, kv_figures, x.kv_figures().held_bytes == 0),
                 DOES(Engine, trim), HOLDS(Engine, spec, x.spec().layers.empty()), HOLDS(Engine, metadata, !x.metadata().has(Setting::name)),
                 HOLDS(Engine, plan, x.plan().peak == 0), HOLDS(Engine, tokenizer, x.tokenizer().vocab_size() == 0),
                 HOLDS(Engine, threads, x.threads() == 0),
                 Call<Engine>{"Engine::load", [](Engine&) { return fault(Engine::load(empty<ModelFile>())); }},
                 Call<Engine>{"Engine::plan", [](Engine&) { return fault(Engine::plan(empty<ModelFile>())); }}},
                stories());

  check<Session>({FAILS(Session, append, kTokens), FAILS(Session, score, kTokens),
                  Call<Session>{"Session::generate", [](Session& x) { return fault(x.generate(sampler()).next()); }},
                  FAILS(Session, generate, sampler(), {}, kGoOn), FAILS(Session, add_pending, 1), FAILS(Session, truncate, 0),
                  FAILS(Session, use_adapters, {}), FAILS(Session, adapters),
                  FAILS(Session, clear), FAILS(Session, remove, 0, 1), FAILS(Session, keep_window, 1, 1),
                  HOLDS(Session, edited, !x.edited()), FAILS(Session, fork), FAILS(Session, clone), FAILS(Session, convert, {}),
                  FAILS(Session, suspend), FAILS(Session, prefetch), FAILS(Session, resume), HOLDS(Session, suspended, !x.suspended()),
                  FAILS(Session, verify), FAILS(Session, save, std::filesystem::path("/none/none")), FAILS(Session, save, ByteSink()),
                  HOLDS(Session, position, x.position() == 0), HOLDS(Session, tokens, x.tokens().empty()),
                  HOLDS(Session, contents, x.contents().empty()),
                  HOLDS(Session, has_pending, !x.has_pending()), HOLDS(Session, next_position, x.next_position() == 0),
                  HOLDS(Session, logits, x.logits().empty()), HOLDS(Session, context, x.context() == 0),
                  HOLDS(Session, reused, x.reused() == 0), HOLDS(Session, budget, x.budget().tokens == 0),
                  HOLDS(Session, kv, x.kv().length() == 0), HOLDS(Session, engine, x.engine().threads() == 0)},
                 reading());
  Session session = reading();
  CHECK(fault(session.generate(empty<Sampler>()).next()) == "");
  CHECK(fault(session.generate(empty<Sampler>(), {}, kGoOn)) == "");

  check<Adapter>({HOLDS(Adapter, name, x.name().empty()), HOLDS(Adapter, base_name, x.base_name().empty()),
                  HOLDS(Adapter, content, x.content() == Hash128{}), HOLDS(Adapter, bytes, x.bytes() == 0),
                  HOLDS(Adapter, rank, x.rank() == 0), HOLDS(Adapter, matrices, x.matrices() == 0),
                  HOLDS(Adapter, invocation, x.invocation().empty()), HOLDS(Adapter, engine, x.engine().threads() == 0),
                  HOLDS(Adapter, state, x.state() == nullptr)},
                 must(stories().adapter(source_dir() / "tests/data/stories-adapter.gguf")));

  // A Batch is a value: without rows it is what it is at the beginning.
  Batch batch;
  CHECK(fault(batch.add(empty<Session>(), Row{})) == "");
  CHECK(fault(batch.add(empty<Session>(), kTokens)) == "");
  CHECK(fault(batch.add(empty<Session>(), kTokens, sampler())) == "");
  CHECK(fault(batch.set_stop(empty<Session>(), {})) == "");
  check<Batch>({HOLDS(Batch, add, x.size() == 0), HOLDS(Batch, set_stop, x.stops().empty()), DOES(Batch, clear),
                HOLDS(Batch, size, x.size() == 0), HOLDS(Batch, entries, x.entries().empty()), HOLDS(Batch, stops, x.stops().empty())},
               Batch());

  must(batch.add(session, kTokens));
  check<Outputs>({FAILS(Outputs, outcome, 0), FAILS(Outputs, outcome, 99), FAILS(Outputs, status),
                  HOLDS(Outputs, row, x.row(0).empty()), HOLDS(Outputs, token, x.token(0) == -1)},
                 must(stories().forward(batch)));
  Batch draws;
  must(draws.add(session, kTokens, empty<Sampler>()));
  CHECK(fault(stories().forward(draws)) == "");
}

TEST_CASE("a row that a batch did not have") {
  Session session = reading();
  Batch batch;
  must(batch.add(session, kTokens));
  const Outputs outputs = must(stories().forward(batch));
  CHECK(outputs.outcome(1));
  CHECK(outputs.outcome(2).error().code() == ErrorCode::invalid_argument);
  CHECK(outputs.outcome(99).error().code() == ErrorCode::invalid_argument);
  CHECK(outputs.row(99).empty());
  CHECK(outputs.token(99) == -1);
  CHECK(outputs.status());
}

TEST_CASE("what generates") {
  Session session = reading();
  check<Generation>({FAILS(Generation, next), HOLDS(Generation, next, !x.next()), HOLDS(Generation, begin, x.begin() == x.end()),
                     HOLDS(Generation, end, x.begin() == x.end()),
                     HOLDS(Generation, finish_reason, x.finish_reason() == FinishReason::error),
                     HOLDS(Generation, figures, x.figures().tokens == 0), FAILS(Generation, drafting)},
                    session.generate(sampler(), {.max_tokens = 1}));
  check<TextStream>({FAILS(TextStream, push, 1), HOLDS(TextStream, finish_reason, x.finish_reason() == FinishReason::error),
                     HOLDS(TextStream, figures, x.figures().tokens == 0),
                     Call<TextStream>{"TextStream::create", [](TextStream&) { return fault(TextStream::create(empty<Session>())); }}},
                    must(TextStream::create(session)));
  check<Samples>({FAILS(Samples, status), HOLDS(Samples, next, !x.next()), HOLDS(Samples, size, x.size() == 0),
                  HOLDS(Samples, finish_reason, x.finish_reason(0) == FinishReason::error),
                  HOLDS(Samples, figures, x.figures(0).tokens == 0), HOLDS(Samples, logprob, x.logprob(0) == 0.0),
                  HOLDS(Samples, score, std::isinf(x.score(0))), HOLDS(Samples, best, !x.best()),
                  HOLDS(Samples, take_session, !x.take_session(0)),
                  Call<Samples>{"Samples::start", [](Samples&) { return fault(Samples::start(empty<Session>(), sampler(), {})); }},
                  Call<Samples>{"Samples::start", [](Samples&) { return fault(Samples::start(reading(), empty<Sampler>(), {})); }}},
                 must(Samples::start(session, sampler(), {.samples = 2, .generate = {.max_tokens = 1}})));
  check<BeamSearch>({FAILS(BeamSearch, step), FAILS(BeamSearch, results), HOLDS(BeamSearch, running, x.running().empty()),
                     Call<BeamSearch>{"BeamSearch::start", [](BeamSearch&) { return fault(BeamSearch::start(empty<Session>(), {})); }}},
                    must(BeamSearch::start(session, {.beams = 2, .max_tokens = 2})));
  CHECK(fault(beam_search(empty<Session>())) == "");
  check<Sampler>({FAILS(Sampler, status), FAILS(Sampler, sample, {}, {}, 0), FAILS(Sampler, distribution, {}, {}, 0),
                  FAILS(Sampler, accept, 1), FAILS(Sampler, rollback, 0), FAILS(Sampler, begin_text, kTokens), DOES(Sampler, begin_answer, 0),
                  FAILS(Sampler, check_tokenizer, {}), FAILS(Sampler, forced), FAILS(Sampler, clone), HOLDS(Sampler, seed, x.seed() == 0),
                  HOLDS(Sampler, stream, x.stream() == 0), DOES(Sampler, reseed, 1), HOLDS(Sampler, recipe, !x.recipe()),
                  HOLDS(Sampler, workspace_bytes, Sampler::workspace_bytes(0) == 0)},
                 greedy());
  // A Chain that has built its sampler, or was moved from, builds empty ones.
  sampling::Chain chain;
  const sampling::Chain moved = std::move(chain);
  CHECK(fault(chain.greedy().top_k(2).stage([](sampling::Candidates&, const sampling::Context&) {}).seed(1).build().status()) == "");
}

TEST_CASE("drafters of and for an empty engine") {
  CHECK(fault(model_drafter(empty<Engine>())) == "");
  for (const auto& drafter : {must(ngram_drafter()), must(suffix_drafter()), must(lookahead_drafter()), must(forced_drafter()),
                              must(early_exit_drafter(1)), must(head_drafter()), must(model_drafter(stories()))}) {
    CHECK(fault(drafter->start(empty<Engine>())) == "");
  }
}

TEST_CASE("schedulers, their drivers and requests") {
  Scheduler scheduler = must(Scheduler::create(stories()));
  check<RequestHandle>({FAILS(RequestHandle, status), FAILS(RequestHandle, drive_status), HOLDS(RequestHandle, next, !x.next(0ns)), HOLDS(RequestHandle, try_next, !x.try_next()), DOES(RequestHandle, cancel),
                        DOES(RequestHandle, pause), DOES(RequestHandle, resume), HOLDS(RequestHandle, id, x.id() == 0),
                        HOLDS(RequestHandle, state, x.state() == RequestState::ended),
                        HOLDS(RequestHandle, finish_reason, x.finish_reason() == FinishReason::none),
                        HOLDS(RequestHandle, figures, x.figures().tokens == 0), HOLDS(RequestHandle, take_beams, x.take_beams().empty()),
                        HOLDS(RequestHandle, take_session, !x.take_session())},
                       must(scheduler.submit({.prompt = {1}})));
  check<Driver>({FAILS(Driver, wait_until_idle), DOES(Driver, stop),
                 Call<Driver>{"Driver::start", [](Driver&) { return fault(Driver::start(empty<Scheduler>())); }}},
                must(Driver::start(scheduler)));
  check<Scheduler>({FAILS(Scheduler, submit, {.prompt = {1}}), FAILS(Scheduler, step),
                    HOLDS(Scheduler, wake_time, std::isinf(x.wake_time())), FAILS(Scheduler, cancel, 1), DOES(Scheduler, drain),
                    FAILS(Scheduler, between_steps, [] {}),
                    HOLDS(Scheduler, idle, x.idle()), HOLDS(Scheduler, expected_wait, x.expected_wait() == 0.0),
                    HOLDS(Scheduler, figures, x.figures().submitted == 0), HOLDS(Scheduler, engine, x.engine().threads() == 0),
                    Call<Scheduler>{"Scheduler::create", [](Scheduler&) { return fault(Scheduler::create(empty<Engine>())); }}},
                   must(Scheduler::create(stories())));
  Request of_empty{.prompt = {1}};
  of_empty.session.emplace();
  CHECK(fault(scheduler.submit(std::move(of_empty))) == "");
  Request by_empty{.prompt = {1}};
  by_empty.sampler.emplace();
  CHECK(fault(scheduler.submit(std::move(by_empty))) == "");
}

TEST_CASE("keys and values") {
  check<KvCache>({FAILS(KvCache, reserve, 1), FAILS(KvCache, reserve_branch, 0, 1), DOES(KvCache, commit, 1), DOES(KvCache, truncate, 0),
                  DOES(KvCache, clear), HOLDS(KvCache, states, x.states().empty()), HOLDS(KvCache, adopt, x.adopt(kTokens) == 0),
                  FAILS(KvCache, edit, 0), FAILS(KvCache, begin_removal, 0, 1, 1), DOES(KvCache, end_removal, {}), FAILS(KvCache, install, {}),
                  FAILS(KvCache, suspend), FAILS(KvCache, prefetch), FAILS(KvCache, resume), HOLDS(KvCache, suspended, !x.suspended()),
                  FAILS(KvCache, fork), FAILS(KvCache, clone),
                  Call<KvCache>{"KvCache::convert_to",
                                [](KvCache& x) {
                                  KvCache to = cache();
                                  return fault(x.convert_to(to)) + fault(cache().convert_to(x));
                                }},
                  HOLDS(KvCache, checksum, x.checksum(0) == 0), HOLDS(KvCache, kind, x.kind() == KvKind::contiguous),
                  HOLDS(KvCache, length, x.length() == 0), HOLDS(KvCache, first, x.first() == 0),
                  HOLDS(KvCache, first_of_group, x.first_of_group(9) == 0), HOLDS(KvCache, first_of_layer, x.first_of_layer(9) == 0),
                  HOLDS(KvCache, capacity, x.capacity() == 0), HOLDS(KvCache, layout, x.layout().layers.empty()),
                  HOLDS(KvCache, checkpoints, x.checkpoints() == 0), HOLDS(KvCache, dtype, x.dtype() == DType::f32),
                  HOLDS(KvCache, bytes, x.bytes() == 0), HOLDS(KvCache, edited, !x.edited()),
                  HOLDS(KvCache, view, x.view().pages == nullptr && x.view().layout->layers.empty()),
                  HOLDS(KvCache, memory, &x.memory() == &system_memory()),
                  HOLDS(KvCache, contiguous, KvCache::contiguous(layout(), {.capacity = 1}, system_memory()).has_value()),
                  Call<KvCache>{"KvCache::paged", [](KvCache&) { return fault(KvCache::paged(layout(), {.capacity = 1}, empty<KvPools>())); }}},
                 cache());
  check<KvPools>({HOLDS(KvPools, figures, x.figures().held_bytes == 0), DOES(KvPools, trim), HOLDS(KvPools, state, x.state() == nullptr),
                  HOLDS(KvPools, create, KvPools::create({}).has_value())},
                 must(KvPools::create({})));
  KvCache held = cache();
  must(held.reserve(1));
  held.commit(1);
  check<LayerOnHost>({HOLDS(LayerOnHost, view, x.view().pages == nullptr), HOLDS(LayerOnHost, head, x.head(kv::KeyOrValue::key, 0).head == 0),
                      FAILS(LayerOnHost, write_back),
                      Call<LayerOnHost>{"LayerOnHost::read", [](LayerOnHost&) { return fault(LayerOnHost::read(empty<KvCache>(), 0, 0, 1)); }},
                      Call<LayerOnHost>{"LayerOnHost::blank", [](LayerOnHost&) { return fault(LayerOnHost::blank(empty<KvCache>(), 0, 0, 1)); }}},
                     must(LayerOnHost::read(held, 0, 0, 1)));
  check<Buffer>({HOLDS(Buffer, data, x.data() == nullptr), HOLDS(Buffer, size, x.size() == 0), HOLDS(Buffer, bytes, x.bytes().empty()),
                 HOLDS(Buffer, populate, !x.populate(0, 1)), HOLDS(Buffer, allocate, Buffer::allocate(system_memory(), 0, "nothing").has_value()),
                 HOLDS(Buffer, claim, Buffer::claim(system_memory(), 0, "nothing").has_value())},
                must(Buffer::allocate(system_memory(), 8, "bytes")));
}

TEST_CASE("files and tokenizers") {
  const auto path = source_dir() / "models/tessera-stories.gguf";
  static constexpr auto says_nothing = [](const Settings& settings) {
    const auto name = settings.string(Setting::name);
    return !settings.has(Setting::name) && !settings.file_key(0) && !name && name.error().code() == ErrorCode::invalid_state;
  };
  check<ModelFile>({HOLDS(ModelFile, metadata, x.metadata().version() == 0), HOLDS(ModelFile, settings, says_nothing(x.settings())), HOLDS(ModelFile, parts, x.parts().empty()),
                    HOLDS(ModelFile, tensors, x.tensors().empty()), HOLDS(ModelFile, find_tensor, x.find_tensor("a") == nullptr),
                    HOLDS(ModelFile, memory_bytes, x.memory_bytes() == 0), FAILS(ModelFile, read, {}, 0, {}),
                    HOLDS(ModelFile, open, !ModelFile::open("/none")), HOLDS(ModelFile, from_memory, !ModelFile::from_memory({})),
                    HOLDS(ModelFile, from_source, !ModelFile::from_source({})), HOLDS(ModelFile, from_sources, !ModelFile::from_sources({}))},
                   must(ModelFile::open(path)));
  check<GgufFile>({HOLDS(GgufFile, version, x.version() == 0), HOLDS(GgufFile, alignment, x.alignment() == 0),
                   HOLDS(GgufFile, header_bytes, x.header_bytes() == 0), HOLDS(GgufFile, memory_bytes, x.memory_bytes() == 0),
                   HOLDS(GgufFile, source, x.source().size() == 0 && x.source().name().empty() && fault(x.source().read(0, {})).empty()),
                   HOLDS(GgufFile, settings, says_nothing(x.settings())),
                   HOLDS(GgufFile, entries, x.entries().empty()), HOLDS(GgufFile, tensors, x.tensors().empty()),
                   HOLDS(GgufFile, find, x.find("a") == nullptr), HOLDS(GgufFile, find_tensor, x.find_tensor("a") == nullptr),
                   FAILS(GgufFile, unsigned_integer, "a"), FAILS(GgufFile, number, "a"), FAILS(GgufFile, boolean, "a"),
                   FAILS(GgufFile, string, "a"), FAILS(GgufFile, array, "a"), FAILS(GgufFile, unsigned_integer_or, "a", 1),
                   FAILS(GgufFile, number_or, "a", 1), FAILS(GgufFile, boolean_or, "a", true), FAILS(GgufFile, string_or, "a", "b"),
                   HOLDS(GgufFile, read, !GgufFile::read({}))},
                  must(ModelFile::open(path)).metadata());
  check<ValueList>({HOLDS(ValueList, type, x.type() == ValueType::u8), HOLDS(ValueList, size, x.size() == 0),
                    HOLDS(ValueList, bytes, x.bytes().empty()), HOLDS(ValueList, is_whole, x.is_whole()), HOLDS(ValueList, text_bytes, x.text_bytes() == 0), HOLDS(ValueList, is_integer, x.is_integer()),
                    HOLDS(ValueList, is_number, x.is_number()), HOLDS(ValueList, integer, x.integer(0) == 0),
                    HOLDS(ValueList, number, x.number(0) == 0), HOLDS(ValueList, strings, x.strings().begin() == x.strings().end())},
                   ValueList());
  GgufWriter writer;  // a value, like a Batch
  must(writer.set("a", std::uint32_t{1}));
  const GgufWriter moved = std::move(writer);
  must(writer.set("b", std::uint32_t{2}));

  check<Tokenizer>({FAILS(Tokenizer, encode, "a"), FAILS(Tokenizer, decode, kTokens), FAILS(Tokenizer, decode, {}),
                    HOLDS(Tokenizer, memory_bytes, x.memory_bytes() == 0), HOLDS(Tokenizer, piece, x.piece(1).empty()),
                    HOLDS(Tokenizer, is_control, !x.is_control(1)), HOLDS(Tokenizer, text, x.text(1).empty()),
                    HOLDS(Tokenizer, find, !x.find("a")), HOLDS(Tokenizer, vocab_size, x.vocab_size() == 0),
                    HOLDS(Tokenizer, type, x.type(1) == TokenType::undefined), HOLDS(Tokenizer, model, x.model() == TokenizerModel::none),
                    HOLDS(Tokenizer, pre_tokenizer, x.pre_tokenizer().empty()),
                    HOLDS(Tokenizer, pre_tokenizer_is_assumed, !x.pre_tokenizer_is_assumed()), HOLDS(Tokenizer, bos, !x.bos()),
                    HOLDS(Tokenizer, eos, !x.eos()), HOLDS(Tokenizer, adds_bos, !x.adds_bos()), HOLDS(Tokenizer, frame, x.frame().front.empty()),
                    HOLDS(Tokenizer, pair_frame, x.pair_frame().between.empty()), HOLDS(Tokenizer, adds_eos, !x.adds_eos()),
                    HOLDS(Tokenizer, adds_space_prefix, !x.adds_space_prefix()),
                    HOLDS(Tokenizer, is_end_of_generation, !x.is_end_of_generation(1)), HOLDS(Tokenizer, suppressed, x.suppressed().empty()),
                    HOLDS(Tokenizer, fingerprint, x.fingerprint() == Hash128{}),
                    Call<Tokenizer>{"Tokenizer::from_settings", [](Tokenizer&) { return fault(Tokenizer::from_settings(empty<GgufFile>().settings())); }},
                    Call<Tokenizer>{"Tokenizer::plan", [](Tokenizer&) { return fault(Tokenizer::plan(empty<GgufFile>().settings())); }}},
                   stories().tokenizer());
  check<Detokenizer>({FAILS(Detokenizer, push, 1), HOLDS(Detokenizer, finish, x.finish().empty()),
                      HOLDS(Detokenizer, held_bytes, x.held_bytes() == 0)},
                     Detokenizer(stories().tokenizer()));
}

TEST_CASE("targets of drafters") {
  std::vector<float> floats(8);
  check<DraftTarget>({HOLDS(DraftTarget, engine, x.engine().spec().vocab_size == 0), HOLDS(DraftTarget, computed, x.computed() == 0),
                      HOLDS(DraftTarget, hidden, x.hidden().empty()), FAILS(DraftTarget, guess_by_layers, 1),
                      FAILS(DraftTarget, check_layers, empty<Engine>(), 1),
                      Call<DraftTarget>{"DraftTarget::guess_by_heads", [&](DraftTarget& x) { return fault(x.guess_by_heads(1, floats)); }}},
                     DraftTarget());
  check<TargetGuesses>({Call<TargetGuesses>{"TargetGuesses::next", [&](TargetGuesses& x) { return fault(x.next(0, floats)); }}}, TargetGuesses());
}

TEST_CASE("grammars") {
  check<Grammar>({Call<Grammar>{"Grammar::sequence", [](Grammar& x) { return fault(Grammar::sequence({x, x})); }},
                  Call<Grammar>{"Grammar::alternatives", [](Grammar& x) { return fault(Grammar::alternatives({x, x})); }},
                  Call<Grammar>{"Grammar::repeat", [](Grammar& x) { return fault(Grammar::repeat(x, 0, 1)); }},
                  HOLDS(Grammar, ignored, x.ignored().empty()), HOLDS(Grammar, ir, x.ir() == nullptr),
                  HOLDS(Grammar, regex, Grammar::regex("a").has_value()), HOLDS(Grammar, literal, Grammar::literal("a").has_value()),
                  HOLDS(Grammar, choice, !Grammar::choice({})), HOLDS(Grammar, json, Grammar::json().has_value()),
                  HOLDS(Grammar, json_schema, !Grammar::json_schema("")), HOLDS(Grammar, ebnf, !Grammar::ebnf("")),
                  HOLDS(Grammar, until, !Grammar::until({})), HOLDS(Grammar, without, Grammar::without({}).has_value()), HOLDS(Grammar, text, Grammar::text({}, {}).has_value())},
                 must(Grammar::literal("a")));
  check<GrammarVocabulary>({HOLDS(GrammarVocabulary, size, x.size() == 0), HOLDS(GrammarVocabulary, memory_bytes, x.memory_bytes() == 0),
                            HOLDS(GrammarVocabulary, bytes, x.bytes(0).empty()), HOLDS(GrammarVocabulary, tokenizer, x.tokenizer() == Hash128{}),
                            HOLDS(GrammarVocabulary, state, x.state() == nullptr),
                            Call<GrammarVocabulary>{"GrammarVocabulary::create",
                                                    [](GrammarVocabulary&) { return fault(GrammarVocabulary::create(empty<Tokenizer>())); }}},
                           letters());
  check<CompiledGrammar>(
      {FAILS(CompiledGrammar, check, "a"), HOLDS(CompiledGrammar, vocabulary, x.vocabulary().size() == 0),
       HOLDS(CompiledGrammar, memory_bytes, x.memory_bytes() == 0),
       Call<CompiledGrammar>{"CompiledGrammar::create", [](CompiledGrammar&) { return fault(CompiledGrammar::create(empty<Grammar>(), letters())); }},
       Call<CompiledGrammar>{"CompiledGrammar::create",
                             [](CompiledGrammar&) { return fault(CompiledGrammar::create(must(Grammar::json()), empty<GrammarVocabulary>())); }}},
      compiled());
  check<Matcher>({FAILS(Matcher, status), FAILS(Matcher, mask), FAILS(Matcher, accept, 0), FAILS(Matcher, rollback, 0),
                  FAILS(Matcher, check, kTokens), FAILS(Matcher, forced), HOLDS(Matcher, may_end, !x.may_end()),
                  HOLDS(Matcher, ended, !x.ended()), HOLDS(Matcher, accepted, x.accepted() == 0),
                  HOLDS(Matcher, tokenizer, x.tokenizer() == Hash128{}),
                  Call<Matcher>{"Matcher::create", [](Matcher&) { return fault(Matcher::create(empty<CompiledGrammar>())); }}},
                 must(Matcher::create(compiled())));
  CHECK(fault(sampling::chain().stage(sampling::GrammarStage{Matcher()}).build().status()) == "");
  check<GrammarCache>(
      {FAILS(GrammarCache, get, {GrammarSource::Kind::regex, "a", {}}), HOLDS(GrammarCache, size, x.size() == 0),
       Call<GrammarCache>{"GrammarCache::create", [](GrammarCache&) { return fault(GrammarCache::create(empty<GrammarVocabulary>(), {})); }}},
      must(GrammarCache::create(letters(), {})));
}

TEST_CASE("chats") {
  const OutputFormat think = must(find_output_format("think"));
  check<ChatTemplate>(
      {FAILS(ChatTemplate, render, ChatRequest()), FAILS(ChatTemplate, render, Json::object()), FAILS(ChatTemplate, status), HOLDS(ChatTemplate, source, x.source().empty()),
       HOLDS(ChatTemplate, special_texts, !x.special_texts().bos), HOLDS(ChatTemplate, parse, !ChatTemplate::parse("{%")),
       HOLDS(ChatTemplate, from_tokenizer_config, !ChatTemplate::from_tokenizer_config("")),
       Call<ChatTemplate>{"ChatTemplate::from_settings", [](ChatTemplate&) { return fault(ChatTemplate::from_settings(empty<GgufFile>().settings())); }}},
      must(ChatTemplate::parse("a")));
  CHECK(fault(choose_output_format(empty<ChatTemplate>())) == "");
  CHECK(fault(SpecialTexts::from_settings(empty<GgufFile>().settings())) == "");
  CHECK(fault(RenderedText().encode(empty<Tokenizer>())) == "");
  CHECK(fault(tool_vocabulary(empty<Tokenizer>(), think)) == "");
  check<OutputParser>({FAILS(OutputParser, push, "a"), FAILS(OutputParser, finish), FAILS(OutputParser, message), FAILS(OutputParser, take_text_spans),
                       HOLDS(OutputParser, create, OutputParser::create({}).has_value())},
                      must(OutputParser::create(think)));
  check<ReasoningBudget>(
      {FAILS(ReasoningBudget, check), FAILS(ReasoningBudget, accept, 1, 0.0f), DOES(ReasoningBudget, rollback, 1),
       HOLDS(ReasoningBudget, tokenizer, x.tokenizer() == Hash128{}), HOLDS(ReasoningBudget, text_ended, !x.text_ended()),
       Call<ReasoningBudget>{"ReasoningBudget::create",
                             [](ReasoningBudget&) {
                               return fault(ReasoningBudget::create(empty<Tokenizer>(), must(find_output_format("think")), {}));
                             }}},
      must(ReasoningBudget::create(stories().tokenizer(), think, {.tokens = 1})));
  CHECK(fault(sampling::chain().stage(ReasoningBudget()).build().status()) == "");

  const ChatRequest hi{.messages = {{.role = "user", .content = "Hi"}}};
  check<Conversation>(
      {HOLDS(Conversation, request, x.request().messages.empty()), HOLDS(Conversation, request, std::as_const(x).request().messages.empty()),
       FAILS(Conversation, prompt), FAILS(Conversation, read), FAILS(Conversation, answer, sampler()),
       Call<Conversation>{"Conversation::answer",
                          [](Conversation& x) {
                            Scheduler scheduler = must(Scheduler::create(stories()));
                            return fault(x.answer(scheduler, {}));
                          }},
       FAILS(Conversation, use_adapters, {}), FAILS(Conversation, drop_old), FAILS(Conversation, summarise_old, sampler()), FAILS(Conversation, tool_matcher),
       HOLDS(Conversation, tool_warnings, x.tool_warnings().empty()),
       FAILS(Conversation, reasoning_budget, {}), HOLDS(Conversation, session, x.session().context() == 0),
       HOLDS(Conversation, chat_template, x.chat_template().source().empty()), HOLDS(Conversation, output_format, x.output_format().regions.empty()),
       HOLDS(Conversation, has_template, !x.has_template()),
       Call<Conversation>{"Conversation::create", [](Conversation&) { return fault(Conversation::create(empty<Engine>())); }}},
      must(Conversation::create(stories(), hi)));
  Conversation talk = must(Conversation::create(stories(), hi));
  CHECK(fault(talk.answer(empty<Sampler>())) == "");
  CHECK(fault(talk.answer(empty<Scheduler>(), {})) == "");
  CHECK(fault(Conversation::create(stories(), hi, {.chat_template = ChatTemplate()})) == "");
  check<Answer>({FAILS(Answer, status), HOLDS(Answer, next, !x.next()), HOLDS(Answer, finish_reason, x.finish_reason() == FinishReason::none),
                 HOLDS(Answer, figures, x.figures().tokens == 0), HOLDS(Answer, prompt, x.prompt().tokens == 0), FAILS(Answer, message)},
                must(talk.answer(sampler(), {.max_tokens = 1})));
}

TEST_CASE("the tables are read") { CHECK((calls_made == 0 || calls_made > 4 * 150)); }

}  // namespace test_empty_handles
