// Tokens that were drawn once and have to be drawn for ever: of the default model and of stories260K, greedy and seeded,
// in every KV type. However the sequence comes about (contiguous or paged, page size, saved and restored, forked, in a
// batch), they are the same. `test_token_goldens "[record]"` prints the file anew.
#include <iostream>
#include <map>

#include "engine/models.hpp"

namespace test_token_goldens {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kTokens = 96;

struct GoldenModel {
  const char* name;
  std::filesystem::path file;
};

std::vector<GoldenModel> golden_models() {
  return {{"default", source_dir() / "models/tessera-stories.gguf"},
          {"stories260K", shared_dir() / "models/stories260K-f32.gguf"}};
}

struct GoldenSampler {
  const char* name;
  Sampler (*make)();
};

constexpr GoldenSampler kSamplers[] = {
    {"greedy", [] { return sampling::chain().greedy().build(); }},
    {"seeded", [] {
       return sampling::chain().penalties({.repetition = 1.1f, .last_n = 64, .counted = sampling::Counted::sequence}).temperature(0.9f).top_k(40).top_p(0.95f).seed(1234, 5).build();
     }},
};

// Numerics of one order on every machine.
Engine load(const GoldenModel& model) {
  return must(Engine::load(model.file, {.numerics = Numerics::invariant, .threads = 2}));
}

std::vector<Token> prompt_of(const Engine& engine) {
  return must(engine.tokenizer().encode("Once upon a time, there was a little girl"));
}

std::string key_of(const GoldenModel& model, DType kv, const GoldenSampler& sampler) {
  return std::string(model.name) + " " + std::string(to_string(kv)) + " " + sampler.name;
}

void go_on(Session& session, Sampler& sampler, std::size_t n) {
  for (const auto& piece : session.generate(sampler, {.max_tokens = n, .end_of_generation = EndOfGeneration::ignore})) {
    if (!piece) FAIL(piece.error().text());
  }
}

std::vector<Token> drawn(const Session& session, std::size_t prompt) {
  return {session.tokens().begin() + static_cast<std::ptrdiff_t>(prompt), session.tokens().end()};
}

std::map<std::string, std::vector<Token>> goldens() {
  std::map<std::string, std::vector<Token>> all;
  std::ifstream in(golden_dir() / "drawn-tokens.txt");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    std::istringstream tokens(line.substr(colon + 1));
    for (Token token = 0; tokens >> token;) all[line.substr(0, colon)].push_back(token);
  }
  return all;
}

}  // namespace

TEST_CASE("drawn tokens are as they were recorded, however the sequence comes about", "[model]") {
  const auto expected = goldens();
  REQUIRE(expected.size() == 2 * 2 * kv_types().size());
  for (const GoldenModel& model : golden_models()) {
    if (!std::filesystem::exists(model.file)) {
      tests::skip("there is no " + model.file.string());
      continue;
    }
    const Engine engine = load(model);
    const auto prompt = prompt_of(engine);
    for (const DType kv : kv_types()) {
      for (const GoldenSampler& how : kSamplers) {
        const std::string key = key_of(model, kv, how);
        INFO(key);
        const std::vector<Token>& tokens = expected.at(key);
        REQUIRE(tokens.size() == kTokens);

        for (const KvOptions& options : {KvOptions{.dtype = kv, .kind = KvKind::contiguous},
                                         KvOptions{.dtype = kv, .kind = KvKind::paged, .page_tokens = 16},
                                         KvOptions{.dtype = kv, .kind = KvKind::paged, .page_tokens = 64}}) {
          INFO("pages of " << options.page_tokens);
          Session session = must(engine.session({.kv = options}));
          must(session.append(prompt));
          Sampler sampler = how.make();
          go_on(session, sampler, kTokens);
          CHECK(drawn(session, prompt.size()) == tokens);
        }

        Session first = must(engine.session({.kv = {.dtype = kv}}));
        must(first.append(prompt));
        Sampler sampler = how.make();
        go_on(first, sampler, kTokens / 3);
        std::vector<std::byte> saved;
        must(first.save([&](std::span<const std::byte> bytes) -> Status {
          saved.insert(saved.end(), bytes.begin(), bytes.end());
          return {};
        }));
        Session fork = must(first.fork());
        Session restored = must(engine.restore(saved));
        for (Session* session : {&first, &fork, &restored}) {
          Sampler copy = must(sampler.clone());
          go_on(*session, copy, kTokens - kTokens / 3);
          CHECK(drawn(*session, prompt.size()) == tokens);
        }
      }
    }
  }
}

TEST_CASE("tokens drawn by hand from a batch are as they were recorded", "[model]") {
  const auto expected = goldens();
  const GoldenModel model = golden_models().front();
  const Engine engine = load(model);
  const auto prompt = prompt_of(engine);
  struct Member {
    std::string key;
    Session session;
    Sampler sampler;
    std::vector<Token> tokens;
  };
  std::vector<Member> members;
  for (const DType kv : kv_types()) {
    for (const GoldenSampler& how : kSamplers) {
      members.push_back({key_of(model, kv, how), must(engine.session({.kv = {.dtype = kv}})), how.make(), {}});
    }
  }
  Batch batch;
  while (members.front().tokens.size() < kTokens) {
    batch.clear();
    std::vector<std::size_t> rows;
    for (Member& member : members) {
      if (member.tokens.empty()) must(batch.add(member.session, prompt));
      else must(batch.add(member.session, std::span(&member.tokens.back(), 1)));
      rows.push_back(batch.size() - 1);
    }
    const Outputs outputs = must(engine.forward(batch));
    for (std::size_t i = 0; i < members.size(); ++i) {
      Member& member = members[i];
      const auto history = member.session.tokens();
      const Token token = must(member.sampler.sample(outputs.row(rows[i]), history, history.size()));
      must(member.sampler.accept(token));
      member.tokens.push_back(token);
    }
  }
  for (const Member& member : members) {
    INFO(member.key);
    CHECK(member.tokens == expected.at(member.key));
  }
}

TEST_CASE("record", "[.][record]") {
  for (const GoldenModel& model : golden_models()) {
    const Engine engine = load(model);
    const auto prompt = prompt_of(engine);
    for (const DType kv : kv_types()) {
      for (const GoldenSampler& how : kSamplers) {
        Session session = must(engine.session({.kv = {.dtype = kv}}));
        must(session.append(prompt));
        Sampler sampler = how.make();
        go_on(session, sampler, kTokens);
        std::cout << key_of(model, kv, how) << ":";
        for (const Token token : drawn(session, prompt.size())) std::cout << " " << token;
        std::cout << "\n";
      }
    }
  }
}

}  // namespace test_token_goldens
