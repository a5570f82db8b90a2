// Drafts of an MTP head: contract 8, how often they are right, and that a mistake in the head would be seen in that.
#include "decoding/speculation_rig.hpp"
#include "engine/mtp_models.hpp"

#include <tessera/scheduler/scheduler.hpp>

namespace test_mtp_drafts {

using namespace tessera;
using namespace tessera::test;

namespace {

// The share of drafts that are right, one a step, of short texts in the trained model's language: it has seen 24 tokens at once, and its
// head was trained for the first draft.
double share_right(const Engine& engine, float temperature) {
  std::size_t drafted = 0, accepted = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const RequestKind kind{"", [&](const Engine&) {
                             return temperature == 0.0f ? sampling::chain().greedy().build()
                                                        : sampling::chain().temperature(temperature).seed(seed).build();
                           }, {.max_tokens = 19, .end_of_generation = EndOfGeneration::ignore}};
    const SpeculateOptions speculate{.drafter = must(head_drafter()), .max_drafts = 1, .length = DraftLength::longest};
    const Outcome spec = generated(engine, kind, make_tokens(seed, 3, 24), speculate);
    drafted += spec.figures.drafted;
    accepted += spec.figures.accepted;
  }
  return static_cast<double>(accepted) / static_cast<double>(drafted);
}

}  // namespace

TEST_CASE("with drafts of an MTP head and every sampler a request gives what it gives without", "[speculation][mtp]") {
  std::vector<std::string> names = mtp_models();
  names.push_back("trained");
  for (const std::string& name : names) {
    const Engine engine = load_mtp(name), bare = load_mtp(name, {});
    const auto prompt = make_tokens(3, 9, engine.spec().vocab_size);
    std::size_t turn = 0;
    for (const RequestKind& kind : request_kinds()) {
      const SessionOptions options{.kv = {.kind = turn++ % 3 == 0 ? KvKind::contiguous : KvKind::paged, .page_tokens = 16}};
      const Outcome plain = generated(engine, kind, prompt, {}, options);
      INFO(name << ", " << kind.name);
      CHECK(generated(bare, kind, prompt, {}, options).told == plain.told);  // nor does it matter that there is a head
      for (const DraftLength length : {DraftLength::longest, DraftLength::by_goodput}) {
        const Outcome spec = generated(engine, kind, prompt, {.drafter = must(head_drafter()), .max_drafts = 4, .length = length}, options);
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

TEST_CASE("other drafters work on an engine with an MTP head", "[speculation][mtp]") {
  const Engine engine = load_mtp("trained");
  const auto prompt = make_tokens(3, 9, 24);
  for (const RequestKind& kind : request_kinds()) {
    const Outcome plain = generated(engine, kind, prompt, {});
    for (const auto& drafter : {must(suffix_drafter()), must(early_exit_drafter(1)), must(model_drafter(engine)), liar(40)}) {
      const Outcome spec = generated(engine, kind, prompt, {.drafter = drafter, .max_drafts = 5, .length = DraftLength::longest});
      INFO(kind.name);
      CHECK(spec.told == plain.told);
      CHECK(*spec.session == *plain.session);
    }
  }
}

TEST_CASE("a trained MTP head is mostly right, and a mistake in it is seen", "[speculation][mtp]") {
  const Engine engine = load_mtp("trained");
  const double greedy = share_right(engine, 0.0f), drawn = share_right(engine, 1.0f);
  INFO("greedy " << greedy << ", drawn " << drawn);
  CHECK(greedy > 0.75);
  CHECK(drawn > 0.6);
  const std::string at = "blk.2.nextn.";
  const auto wrong = [&](const char* what, const std::string& tensor, const std::function<void(std::span<float>)>& change) {
    const double share = share_right(load_mtp_with("trained", tensor, change), 0.0f);
    INFO(what << ": " << share);
    CHECK(share < 0.6 * greedy);
  };
  const auto zero = [](std::span<float> values) { std::ranges::fill(values, 0.0f); };
  wrong("no hidden state", at + "hnorm.weight", zero);
  wrong("no token", at + "enorm.weight", zero);
  wrong("the halves of the projection changed for each other", at + "eh_proj.weight", [](std::span<float> values) {
    for (std::size_t row = 0; row < values.size(); row += 64) std::ranges::swap_ranges(values.subspan(row, 32), values.subspan(row + 32, 32));
  });
}

TEST_CASE("requests of a scheduler draft with the MTP head and give what they give alone", "[scheduler][speculation][mtp]") {
  for (const std::string& name : {std::string("trained"), std::string("qwen35")}) {
    const Engine engine = load_mtp(name);
    const auto kinds = request_kinds();
    Scheduler scheduler = must(Scheduler::create(engine, {}));
    std::vector<Told> alone;
    std::vector<RequestHandle> handles;
    for (std::size_t i = 0; i < 2 * kinds.size(); ++i) {
      const auto prompt = make_tokens(i, 5 + 3 * (i % 7), 24);
      alone.push_back(generated(engine, kinds[i % kinds.size()], prompt, {}).told);
      GenerateOptions options = kinds[i % kinds.size()].options;
      options.speculate = {.drafter = must(head_drafter()), .max_drafts = 4, .length = DraftLength::longest};
      handles.push_back(must(scheduler.submit({.prompt = prompt, .sampler = kinds[i % kinds.size()].sampler(engine), .generate = options})));
    }
    std::uint64_t drafted = 0;
    for (std::size_t i = 0; i < handles.size(); ++i) {
      Told told;
      while (auto piece = handles[i].next()) told.add(piece->piece);
      if (const Status status = handles[i].status(); !status) told.error = status.error().text();
      INFO(name << ", request " << i);
      CHECK(told == alone[i]);
      drafted += handles[i].figures().drafted;
    }
    CHECK(drafted > 100);
  }
}

TEST_CASE("drafts of an MTP head end where the context and the room end", "[speculation][mtp]") {
  const Engine engine = load_mtp("trained");
  const auto prompt = make_tokens(6, 10, 24);
  RequestKind kind = request_kinds()[1];
  kind.options.max_tokens = 0;
  const SessionOptions options{.kv = {.page_tokens = 16}, .context = 27};
  const Outcome plain = generated(engine, kind, prompt, {}, options);
  CHECK(!plain.told.error.empty());
  const Outcome spec = generated(engine, kind, prompt, {.drafter = must(head_drafter()), .length = DraftLength::longest}, options);
  CHECK(spec.told == plain.told);
  CHECK(*spec.session == *plain.session);
}

TEST_CASE("an MTP head that is not loaded, or that no file has, drafts nothing and says why", "[speculation][mtp]") {
  const auto why = [](const Engine& engine) { return must(head_drafter())->start(engine).error().text(); };
  CHECK(why(load_mtp("trained", {})).find("not loaded") != std::string::npos);
  CHECK(why(load_golden("llama-gqa")).find("has no MTP head") != std::string::npos);
}

}  // namespace test_mtp_drafts
