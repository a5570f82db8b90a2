// Drafts of heads from files of their own (Medusa, EAGLE): contract 8, and drafts that end where the heads' guesses end.
#include <filesystem>
#include <fstream>
#include <limits>
#include <unistd.h>

#include "decoding/speculation_rig.hpp"
#include "engine/head_models.hpp"
#include "engine/made_adapter.hpp"

#include <tessera/scheduler/scheduler.hpp>

namespace test_head_drafts {

using namespace tessera;
using namespace tessera::test;

TEST_CASE("with drafts of heads and every sampler a request gives what it gives without", "[speculation][heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine engine = load_heads(heads), bare = load_golden(heads.model);
    const auto prompt = make_tokens(3, 9, engine.spec().vocab_size);
    std::size_t turn = 0;
    for (const RequestKind& kind : request_kinds()) {
      const SessionOptions options{.kv = {.kind = turn++ % 3 == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16}};
      const Outcome plain = generated(engine, kind, prompt, {}, options);
      INFO(heads.name() << ", " << kind.name);
      CHECK(generated(bare, kind, prompt, {}, options).told == plain.told);
      for (const DraftLength length : {DraftLength::longest, DraftLength::by_goodput}) {
        const Outcome spec = generated(engine, kind, prompt, {.drafter = must(head_drafter()), .max_drafts = 5, .length = length, .branches = 3}, options);
        CHECK(spec.told == plain.told);
        CHECK(*spec.session == *plain.session);
        CHECK(spec.figures.tokens == 1 + spec.figures.steps + spec.figures.accepted);
        if (length == DraftLength::longest) CHECK(spec.figures.drafted > 0);
      }
      for (const std::size_t pieces : {1, 5, 11}) {  // a generation that is left
        const Outcome left = generated(engine, kind, prompt, {}, options, pieces);
        const Outcome spec = generated(engine, kind, prompt, {.drafter = must(head_drafter()), .length = DraftLength::longest}, options, pieces);
        CHECK(spec.told == left.told);
        CHECK(*spec.session == *left.session);
      }
    }
  }
}

TEST_CASE("other drafters and liars work on an engine with draft heads", "[speculation][heads]") {
  for (const std::size_t i : {0u, 1u, 2u}) {
    const Engine engine = load_heads(head_cases()[i]);
    const auto prompt = make_tokens(3, 9, 24);
    for (const RequestKind& kind : request_kinds()) {
      const Outcome plain = generated(engine, kind, prompt, {});
      for (const auto& drafter : {must(suffix_drafter()), must(early_exit_drafter(1)), must(model_drafter(engine)), liar(40), oracle(plain.told.tokens, 3)}) {
        const Outcome spec = generated(engine, kind, prompt, {.drafter = drafter, .max_drafts = 5, .length = DraftLength::longest});
        INFO(head_cases()[i].name() << ", " << kind.name);
        CHECK(spec.told == plain.told);
        CHECK(*spec.session == *plain.session);
      }
    }
  }
}

TEST_CASE("requests of a scheduler draft with heads and give what they give alone", "[scheduler][speculation][heads]") {
  for (const std::size_t i : {0u, 1u, 2u, 6u}) {
    const Engine engine = load_heads(head_cases()[i]);
    const auto kinds = request_kinds();
    for (const std::size_t at_once : {1u, 4u, 16u}) {
      Scheduler scheduler = must(Scheduler::create(engine, {}));
      std::vector<Told> alone;
      std::vector<RequestHandle> handles;
      for (std::size_t n = 0; n < at_once; ++n) {
        const auto prompt = make_tokens(n, 5 + 3 * (n % 7), 24);
        const RequestKind& kind = kinds[n % kinds.size()];
        alone.push_back(generated(engine, kind, prompt, {}).told);
        GenerateOptions options = kind.options;
        options.speculate = {.drafter = must(head_drafter()), .max_drafts = 4, .length = DraftLength::longest};
        handles.push_back(must(scheduler.submit({.prompt = prompt, .sampler = kind.sampler(engine), .generate = options})));
      }
      std::uint64_t drafted = 0;
      for (std::size_t n = 0; n < handles.size(); ++n) {
        Told told;
        while (auto piece = handles[n].next()) told.add(piece->piece);
        if (const Status status = handles[n].status(); !status) told.error = status.error().text();
        INFO(head_cases()[i].name() << ", request " << n << " of " << at_once);
        CHECK(told == alone[n]);
        drafted += handles[n].figures().drafted;
      }
      CHECK(drafted > 0);
    }
  }
}

TEST_CASE("a request with an adapter gives the same with drafts of heads, which have none", "[speculation][heads][adapters]") {
  const ModelFile base = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  const AdapterFolder folder;
  const auto path = folder.write("adapter", base, {.rank = 4, .alpha = 16.0f, .seed = 1, .size = 0.3f});
  for (const std::size_t i : {0u, 1u, 2u}) {
    const Engine engine = load_heads(head_cases()[i]), bare = load_golden("llama-gqa");
    const auto with = [&](const Engine& of) { return SessionOptions{.kv = {.page_tokens = 16}, .adapters = {{.adapter = must(of.adapter(path))}}}; };
    const auto prompt = make_tokens(3, 9, engine.spec().vocab_size);
    for (const RequestKind& kind : request_kinds()) {
      const Outcome plain = generated(bare, kind, prompt, {}, with(bare));
      INFO(head_cases()[i].name() << ", " << kind.name);
      CHECK(generated(engine, kind, prompt, {}, with(engine)).told == plain.told);
      for (const std::uint32_t branches : {1u, 4u}) {
        const Outcome spec = generated(engine, kind, prompt,
                                       {.drafter = must(head_drafter()), .max_drafts = 5, .length = DraftLength::longest, .branches = branches}, with(engine));
        CHECK(spec.told == plain.told);
        CHECK(spec.figures.drafted > 0);
      }
    }
  }
}

TEST_CASE("trees of heads give what chains give, also where liars grow them", "[speculation][heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine engine = load_heads(heads);
    const auto prompt = make_tokens(4, 11, engine.spec().vocab_size);
    for (const RequestKind& kind : request_kinds()) {
      const SessionOptions options{.kv = {.page_tokens = 16}};
      const Outcome plain = generated(engine, kind, prompt, {}, options);
      std::vector<Token> text = prompt;
      text.insert(text.end(), plain.told.tokens.begin(), plain.told.tokens.end());
      for (const auto& drafter : {must(head_drafter()), bush(40), bush(40, text)}) {
        const Outcome spec = generated(engine, kind, prompt, {.drafter = drafter, .max_drafts = 8, .length = DraftLength::longest, .branches = 4}, options);
        INFO(heads.name() << ", " << kind.name);
        CHECK(spec.told == plain.told);
        CHECK(*spec.session == *plain.session);
      }
    }
  }
}

TEST_CASE("Medusa heads make as many guesses in a row as there are heads", "[speculation][heads]") {
  const Engine engine = load_heads(head_cases()[0]);
  REQUIRE(engine.spec().draft_heads.most_guesses == 3);
  const auto prompt = make_tokens(3, 9, engine.spec().vocab_size);
  const Outcome spec = generated(engine, request_kinds()[0], prompt, {.drafter = must(head_drafter()), .max_drafts = 8, .length = DraftLength::longest});
  CHECK(spec.figures.drafted > 0);
  CHECK(spec.figures.drafted <= 3 * (spec.figures.steps + 1));
  // A tree has leaves beside them.
  const Outcome tree = generated(engine, request_kinds()[0], prompt,
                                 {.drafter = must(head_drafter()), .max_drafts = 8, .length = DraftLength::longest, .branches = 4}, {.kv = {.page_tokens = 32}});
  CHECK(tree.told == spec.told);
  CHECK(tree.figures.drafted > 3 * tree.figures.steps);
  bool called = false;
  const auto looks = says([&](const DraftContext& context, std::span<Token>) {
    if (std::exchange(called, true)) return std::size_t{0};
    std::vector<float> hidden(context.target.hidden().size());
    CHECK(context.target.guess_by_heads(3, hidden));
    const auto more = context.target.guess_by_heads(4, hidden);
    REQUIRE(!more);
    CHECK(more.error().text().find("the draft heads make at most 3") != std::string::npos);
    return std::size_t{0};
  });
  (void)generated(engine, request_kinds()[0], prompt, {.drafter = looks, .length = DraftLength::longest});
  CHECK(called);
}

// An EAGLE-3 head guesses some of the tokens. If the request allows none of them, there is no draft, and no error.
TEST_CASE("a head that can guess no token that the request allows drafts nothing", "[speculation][heads]") {
  const Engine engine = load_heads(head_cases()[2]);
  const std::size_t vocab = engine.spec().vocab_size;
  std::vector<float> logits(vocab);
  const auto prompt = make_tokens(3, 9, vocab);
  // Tokens that the head cannot guess have -inf.
  std::vector<bool> guessed(vocab, true);
  const auto looks = says([&](const DraftContext& context, std::span<Token>) {
    std::vector<float> hidden(context.target.hidden().size());
    if (auto guesses = context.target.guess_by_heads(1, hidden)) {
      must(guesses->next(context.history.back(), logits));
      for (std::size_t i = 0; i < vocab; ++i) guessed[i] = logits[i] > -1e30f;
    }
    return std::size_t{0};
  });
  (void)generated(engine, request_kinds()[0], prompt, {.drafter = looks, .length = DraftLength::longest});
  CHECK(std::ranges::count(guessed, true) == 69);
  const RequestKind kind{"tokens that the head cannot guess", [&](const Engine&) {
                           return sampling::chain().stage([&](sampling::Candidates& candidates, const sampling::Context&) {
                             candidates.remove_if([&](const sampling::Candidate& c) { return guessed[static_cast<std::size_t>(c.token)]; });
                           }).temperature(1.0f).seed(3).build();
                         }};
  const Outcome plain = generated(engine, kind, prompt, {});
  CHECK(plain.told.tokens.size() == 24);
  const Outcome spec = generated(engine, kind, prompt, {.drafter = must(head_drafter()), .max_drafts = 4, .length = DraftLength::longest});
  CHECK(spec.told == plain.told);
  CHECK(spec.figures.drafted == 0);
  CHECK(*spec.session == *plain.session);
}

TEST_CASE("heads whose weights are broken draft nothing, say so, and change no token", "[speculation][heads]") {
  for (const std::size_t i : {0u, 1u, 2u}) {
    const HeadCase& heads = head_cases()[i];
    const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("tessera-broken-heads-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder);
    std::filesystem::copy(heads.file(), folder, std::filesystem::copy_options::recursive);
    const auto file = folder / (heads.is_medusa() ? "medusa_lm_head.safetensors" : "model.safetensors");
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    std::uint64_t header = 0;
    stream.read(reinterpret_cast<char*>(&header), sizeof header);
    std::string text(header, ' ');
    stream.read(text.data(), static_cast<std::streamsize>(header));
    const std::size_t entry = text.find(heads.is_medusa() ? "\"0.1.weight\"" : "\"fc.weight\"");
    const std::size_t begin = std::stoul(text.substr(text.find('[', text.find("data_offsets", entry)) + 1));
    stream.seekp(static_cast<std::streamoff>(sizeof header + header + begin));
    const std::vector<float> broken(36, std::numeric_limits<float>::quiet_NaN());
    stream.write(reinterpret_cast<const char*>(broken.data()), static_cast<std::streamsize>(broken.size() * sizeof(float)));
    stream.close();
    const Engine engine = must(Engine::load(golden_dir() / "llama-gqa.gguf", {.draft_heads = folder, .threads = 2}));
    std::filesystem::remove_all(folder);
    const auto prompt = make_tokens(3, 9, engine.spec().vocab_size);
    const RequestKind kind = request_kinds()[1];
    const Outcome plain = generated(engine, kind, prompt, {});
    const SpeculateOptions speculate{.drafter = must(head_drafter()), .max_drafts = 4, .length = DraftLength::longest};
    INFO(heads.name());
    Session session = must(engine.session());
    must(session.append(prompt));
    Sampler sampler = kind.sampler(engine);
    GenerateOptions how = kind.options;
    how.speculate = speculate;
    Generation generation = session.generate(sampler, how);
    Told told;
    for (const auto& piece : generation) told.add(must(Result<Piece>(piece)));
    CHECK(told == plain.told);
    REQUIRE(!generation.drafting());
    CHECK(generation.drafting().error().code() == ErrorCode::numeric);
  }
}

TEST_CASE("drafts of heads end where the context and the room end", "[speculation][heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine engine = load_heads(heads);
    const auto prompt = make_tokens(6, 10, 24);
    RequestKind kind = request_kinds()[1];
    kind.options.max_tokens = 0;
    const SessionOptions options{.kv = {.page_tokens = 16}, .context = 27};
    const Outcome plain = generated(engine, kind, prompt, {}, options);
    CHECK(!plain.told.error.empty());
    const Outcome spec = generated(engine, kind, prompt, {.drafter = must(head_drafter()), .length = DraftLength::longest}, options);
    INFO(heads.name());
    CHECK(spec.told == plain.told);
    CHECK(*spec.session == *plain.session);
  }
}

}  // namespace test_head_drafts
