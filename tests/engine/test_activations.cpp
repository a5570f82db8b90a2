// What an operation of a backend reads, writes and uses up is what its signature says: the forward pass relies on no more.
#include <set>

#include <tessera/decoding/drafters.hpp>

#include "engine/head_models.hpp"
#include "engine/made_adapter.hpp"
#include "engine/strict_backend.hpp"
#include "engine/wrapped_backend.hpp"

namespace test_activations {

using namespace tessera;
using namespace tessera::test;
using backend::Act;

TEST_CASE("the forward pass reads no activation without a value, and operations change those alone that they name",
          "[activations]") {
  for (const std::string& name : representative_models()) {
    DYNAMIC_SECTION(name) {
      std::set<std::string> complaints;
      const Engine plain = load_golden(name), watched = load_golden(name);
      wrap_backend<StrictBackend>(watched, complaints);
      auto tokens = read_tokens(golden_dir() / (name + ".tokens.txt"));
      tokens.resize(std::min<std::size_t>(tokens.size(), 24));
      for (const LogitsOf which : {LogitsOf::all, LogitsOf::last}) {
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, tokens.size()}) {
          Session expected = must(plain.session()), session = must(watched.session());
          for (std::size_t i = 0; i < tokens.size(); i += chunk) {
            const auto piece = std::span(tokens).subspan(i, std::min(chunk, tokens.size() - i));
            const Logits theirs = must(expected.append(piece, {.logits = which}));
            const Logits ours = must(session.append(piece, {.logits = which}));
            REQUIRE(same_bits(ours.values, theirs.values));
          }
        }
      }
      CHECK(complaints == std::set<std::string>());
    }
  }
}

TEST_CASE("draft heads read no activation without a value", "[activations][heads]") {
  for (const HeadCase& heads : head_cases()) {
    std::set<std::string> complaints;
    const Engine plain = load_heads(heads), watched = load_heads(heads);
    wrap_backend<StrictBackend>(watched, complaints);
    const auto guesses = [&](const Engine& engine) {
      Session session = must(engine.session());
      Sampler sampler = sampling::chain().temperature(0.8f).seed(3).build();
      must(session.append(std::vector<Token>{1, 2, 3, 4, 5, 6, 7}));
      Generation generation = session.generate(sampler, {.max_tokens = 20, .end_of_generation = EndOfGeneration::ignore,
                                                         .speculate = {.drafter = must(head_drafter()), .length = DraftLength::longest, .branches = 3}});
      std::vector<Token> tokens;
      for (const auto& piece : generation) tokens.push_back(must(Result<Piece>(piece)).token);
      must(generation.drafting());
      CHECK(generation.figures().drafted > 0);
      return tokens;
    };
    INFO(heads.name());
    CHECK(guesses(watched) == guesses(plain));
    CHECK(complaints == std::set<std::string>());
  }
}

TEST_CASE("adapters change rows that begin() was told of, and nothing else", "[activations][adapters]") {
  const AdapterFolder folder;
  for (const std::string name : {"llama-gqa", "gemma3", "qwen2moe", "qwen35", "deepseek-v2-lite"}) {
    INFO(name);
    const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
    std::set<std::string> complaints;
    const EngineOptions options{.threads = 2};
    const Engine plain = must(Engine::load(file, options)), watched = must(Engine::load(file, options));
    wrap_backend<StrictBackend>(watched, complaints);
    const auto one = folder.write(name + "1", file, {.rank = 2, .seed = 1}), two = folder.write(name + "2", file, {.rank = 9, .seed = 2});
    const auto outputs = [&](const Engine& engine) {
      const Adapter a = must(engine.adapter(one)), b = must(engine.adapter(two));
      // Rows of several groups, dropped by the last layer, and selected for outputs of two kinds.
      const std::vector<std::vector<AdapterUse>> tenants = {{}, {{a}}, {{b, 0.5f}}, {{a, 2.0f}, {b}}, {{b, 0.5f}, {a, 2.0f}}};
      std::vector<Session> sessions;
      for (const auto& uses : tenants) sessions.push_back(must(engine.session({.kv = {.prefix = PrefixReuse::off}, .adapters = uses})));
      Batch batch;
      for (std::size_t i = 0; i < sessions.size(); ++i) {
        must(batch.add(sessions[i], std::vector<Token>{1, 5, 9, 3}, i % 2 == 0 ? Want::logits : Want::embedding));
      }
      const Outputs first = must(engine.forward(batch));
      std::vector<float> values;
      for (std::size_t i = 0; i < sessions.size(); ++i) values.insert(values.end(), first.row(4 * i + 3).begin(), first.row(4 * i + 3).end());
      for (Session& session : sessions) {
        const Logits logits = must(session.append(std::vector<Token>{2, 7}, {.logits = LogitsOf::all}));
        values.insert(values.end(), logits.values.begin(), logits.values.end());
      }
      return values;
    };
    CHECK(same_bits(outputs(watched), outputs(plain)));
    CHECK(complaints == std::set<std::string>());
  }
}

TEST_CASE("an operation that names rows which begin() was not told of is found", "[activations]") {
  std::set<std::string> complaints;
  const Engine engine = load_golden("llama-gqa");
  auto& strict = wrap_backend<StrictBackend>(engine, complaints);
  const auto found = [&](const std::string& complaint) {
    INFO(complaint);
    CHECK(complaints.contains(complaint));
    complaints.clear();
  };
  CHECK(!strict.set_tokens({}));
  found("set_tokens outside of a step");
  const backend::RowTable rows[] = {{}, {.position = 1}, {.position = 2, .n_adapters = 1}};
  const KvView sequences[] = {KvView{}};
  const std::uint32_t wanted[] = {0, 2}, list[] = {1}, strange[] = {2}, others[] = {0};
  const std::span<const std::uint32_t> selections[] = {list};
  const backend::AdapterWeights weights;
  const backend::StepAdapter adapters[] = {{.weights = &weights, .scale = 0.5f}};
  const backend::ChangedRows changes[] = {{.rows = list, .numbers = 4}, {.rows = strange, .numbers = 4}, {.rows = others, .numbers = 4}};
  const std::vector<std::byte> zeros(5 * sizeof(float));
  const auto change_of_rank = [&](std::uint32_t rank) {
    const auto numbers = std::span(zeros).first(rank * sizeof(float));
    return must(strict.hold_low_rank({.outputs = 1, .inputs = 1, .rank = rank}, {.a = numbers, .b = numbers, .lengths = {}}));
  };
  const auto change = change_of_rank(4), large = change_of_rank(5);
  const auto add = [&](const std::shared_ptr<const backend::LowRank>& of, std::uint32_t at, float scale) {
    const backend::LowRankTerm term{.change = of.get(), .scale = scale, .rows = at, .out = Act::x};
    return strict.add_low_rank({&term, 1}, Act::h);
  };
  must(strict.begin({.rows = rows,
                     .sequences = sequences,
                     .ropes = {},
                     .wanted = wanted,
                     .selections = selections,
                     .adapters = adapters,
                     .changes = changes}));
  CHECK(complaints == std::set<std::string>());
  CHECK(!add(change, 3, 0.5f));
  found("add_low_rank names a list of rows that begin() did not name");
  (void)strict.read(Act::x, 3, {});
  found("read names a row that is not present");
  CHECK(!strict.set_tokens(std::vector<Token>{1}));
  found("set_tokens: other rows than those of the step");
  CHECK(!strict.rope(2, 1, Act::x));
  found("rope by a rope that begin() did not name");
  must(strict.keep_rows({}));
  CHECK(!add(change, 1, 0.5f));
  found("add_low_rank names a row that is not present");
  (void)add(large, 0, 0.5f);
  found("add_low_rank makes a larger change than begin() was told");
  (void)add(change, 0, 0.25f);
  found("add_low_rank changes a row that has no such adapter");
  (void)add(change, 2, 0.5f);
  found("add_low_rank changes a row that has no such adapter");
  CHECK(!strict.select_rows(1, Act::x, Act::h));
  found("select_rows selects rows that begin() did not name");
  CHECK(!strict.keep_rows({}));
  found("keep_rows: the rows of the step have been dropped already");
  must(strict.end());
  (void)strict.end();
  found("end: no step has begun");
}

namespace {

// Its norm writes somewhere else too, as a mistake would.
class CarelessBackend final : public ForwardingBackend {
 public:
  explicit CarelessBackend(std::unique_ptr<Backend> inner) : ForwardingBackend(std::move(inner)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "careless"; }
  Status norm(const backend::Norm& norm, Act in, Act out) override {
    TESSERA_TRY_STATUS(inner().norm(norm, in, out));
    return inner().scale(2.0f, in);
  }
};

}  // namespace

TEST_CASE("whoever reads what is used up, or changes what is not its own, is found", "[activations]") {
  std::set<std::string> complaints;
  const Engine engine = load_golden("llama-gqa");
  wrap_backend<CarelessBackend>(engine);
  auto& strict = wrap_backend<StrictBackend>(engine, complaints);
  Session session = must(engine.session());
  must(session.append(std::vector<Token>{1, 2, 3}));
  CHECK(complaints.contains("norm_linear_group changes activation 0"));
  complaints.clear();
  must(strict.begin({}));
  must(strict.add(Act::h, Act::x));
  CHECK(complaints == std::set<std::string>{"add reads, without a value, activation 0", "add reads, without a value, activation 1"});
  complaints.clear();
  (void)strict.attention({}, Act::q, Act::attn);
  CHECK(complaints.contains("attention of a shape that begin() did not name"));
  Token token = 0;
  CHECK(!strict.sample(Act::logits, 0, {&token, 1}));
  CHECK(complaints.contains("sample draws what begin() did not name"));
  must(strict.end());
}

}  // namespace test_activations
