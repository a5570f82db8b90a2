// Model files that were changed or are plain wrong, and callers that ask for nonsense: an error or a result, in little
// memory, and a session that is as it was.
#include "counted_new.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include <tessera/extend/files/gguf_writer.hpp>

#include "engine/models.hpp"
#include "sanitized.hpp"

namespace test_hostile_models {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::size_t kAllowance = std::size_t{64} << 20;

class InlineExecutor final : public Executor {
 public:
  std::size_t concurrency() const noexcept override { return 1; }
  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
    for (std::size_t i = 0; i < n; ++i) task(context, i);
  }
};

// Counts what is really taken: address space is free.
class CountingMemory final : public Memory {
 public:
  void* allocate(std::size_t bytes) noexcept override {
    if (bytes > 16 * kAllowance) return nullptr;
    add(bytes);
    return system_memory().allocate(bytes);
  }
  void release(void* base, std::size_t bytes) noexcept override {
    live -= bytes;
    system_memory().release(base, bytes);
  }
  std::size_t granularity() const noexcept override { return system_memory().granularity(); }
  void* reserve(std::size_t bytes) noexcept override { return system_memory().reserve(bytes); }
  void unreserve(void* base, std::size_t bytes) noexcept override { system_memory().unreserve(base, bytes); }
  bool commit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    add(bytes);
    return system_memory().commit(base, offset, bytes);
  }
  void decommit(void* base, std::size_t offset, std::size_t bytes) noexcept override {
    live -= bytes;
    system_memory().decommit(base, offset, bytes);
  }
  std::size_t live = 0, peak = 0;

 private:
  void add(std::size_t bytes) noexcept { peak = std::max(peak, live += bytes); }
};

// A golden model, and where in its bytes the things lie that are worth changing.
struct Base {
  explicit Base(const std::string& name) {
    std::ifstream in(golden_dir() / (name + ".gguf"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto view = std::as_bytes(std::span(text));
    bytes.assign(view.begin(), view.end());
    const ModelFile file = must(ModelFile::from_memory(bytes));
    header = file.metadata().header_bytes();
    const auto find = [&](std::string_view what) {
      std::string sized(8, '\0');
      const std::uint64_t length = what.size();
      std::memcpy(sized.data(), &length, 8);
      const std::size_t at = text.find(sized.append(what));
      REQUIRE(at != std::string::npos);
      return at + sized.size();
    };
    for (const GgufEntry& entry : file.metadata().entries()) {
      const std::size_t end = find(entry.key);
      names.push_back(end - 1);
      types.push_back(end);
      if (entry.key.find("tokenizer") == std::string_view::npos) values.push_back(end + 4);
    }
    for (const GgufTensor& tensor : file.tensors()) {
      const std::size_t end = find(tensor.name);
      names.push_back(end - 1);
      dims.push_back(end);  // u32 count, then u64 each, u32 type, u64 offset
      for (std::uint32_t i = 0; i < tensor.n_dims; ++i) dims.push_back(end + 4 + 8 * i);
      types.push_back(end + 4 + 8 * tensor.n_dims);
      dims.push_back(end + 8 + 8 * tensor.n_dims);
    }
  }
  std::vector<std::byte> bytes;
  std::size_t header = 0;
  std::vector<std::size_t> names, types, values, dims;
};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  void change(std::vector<std::byte>& bytes, const Base& base) {
    switch (below(14)) {
      case 0: return put(bytes, any(base.values), number(), 4);
      case 1: {  // the same number in two places that must agree
        const std::uint64_t value = number();
        put(bytes, any(base.values), value, 4);
        return put(bytes, any(base.values), value, 4);
      }
      case 2: {
        const float value = real();
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, 4);
        return put(bytes, any(base.values), bits, 4);
      }
      case 3: return put(bytes, any(base.dims), number(), below(2) == 0 ? 4 : 8);
      case 4: return put(bytes, any(base.types), below(32), 4);
      case 5: return put(bytes, any(base.names), 'a' + below(26), 1);
      case 6:
        if (below(8) == 0) return bytes.resize(below(bytes.size() + 1));
        for (auto n = 1 + below(3); n > 0; --n) flip(bytes, below(base.header));
        return;
      default: {  // weights: low bits, or any bits, infinities, NaN
        const bool gentle = below(2) == 0;
        for (auto n = 1 + below(40); n > 0; --n) {
          const std::size_t at = base.header + below(base.bytes.size() - base.header);
          if (gentle) {
            flip(bytes, at / 4 * 4);
          } else if (below(2) == 0) {
            flip(bytes, at);
          } else {
            const float value = real();
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, 4);
            put(bytes, at / 4 * 4, bits, 4);
          }
        }
      }
    }
  }

  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }

 private:
  std::size_t any(const std::vector<std::size_t>& places) { return places[below(places.size())]; }
  static void put(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value, std::size_t width) {
    if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &value, width);
  }
  void flip(std::vector<std::byte>& bytes, std::size_t at) {
    if (at < bytes.size()) bytes[at] ^= std::byte{1} << below(8);
  }
  std::uint64_t number() {
    constexpr std::uint64_t kNumbers[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 64, 96, 128, 255, 256, 1000, 65536, 1 << 20,
                                          0x7fffffff, 0x80000000, 0xffffffff, std::uint64_t{1} << 32,
                                          std::uint64_t{1} << 61, std::uint64_t{1} << 63, ~std::uint64_t{0}};
    return below(4) == 0 ? below(600) : kNumbers[below(std::size(kNumbers))];
  }
  float real() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e-40f, 1e-5f, 1e30f, -3e38f, 1e-30f, kInfinity, -kInfinity, NAN};
    return values[below(std::size(values))];
  }
  std::mt19937_64 random_;
};

bool is_clear(const Error& error) {
  return !error.message().empty() && error.text().find('\n') == std::string::npos && error.code() != ErrorCode::internal &&
         error.code() != ErrorCode::callback_failed;
}

enum class Outcome { refused, failed, generated, broken };

// Loads, appends, scores, generates.
Outcome use(std::span<const std::byte> bytes, const std::shared_ptr<Executor>& executor) {
  CountingMemory memory;
  Outcome outcome = Outcome::refused;
  counted::Scope scope;
  {
    const auto note = [&](const Error& error, Outcome as) {
      outcome = outcome != Outcome::broken && is_clear(error) ? as : Outcome::broken;
    };
    auto file = ModelFile::from_memory(bytes);
    EngineOptions options;
    options.executor = executor;
    options.step_rows = 4;
    options.memory = &memory;
    auto engine = file ? Engine::load(*file, options) : Result<Engine>(file.error());
    if (!engine) {
      note(engine.error(), Outcome::refused);
    } else {
      outcome = Outcome::failed;
      const std::vector<Token> tokens = {0, 1, 0, 1, 1};  // a vocabulary of two is possible
      if (auto session = engine->session(); !session) {
        note(session.error(), Outcome::failed);
      } else {
        if (const auto prompt = session->append(tokens); !prompt) note(prompt.error(), Outcome::failed);
        if (const auto scores = session->score(tokens); !scores) note(scores.error(), Outcome::failed);
        Sampler sampler = sampling::chain().top_k(5).temperature(0.7f).build();
        for (const auto& piece : session->generate(sampler, {.max_tokens = 2, .logprobs = 2})) {
          if (piece) {
            outcome = Outcome::generated;
          } else {
            note(piece.error(), Outcome::failed);
          }
        }
      }
    }
  }
  scope.stop();
  if (memory.live != 0 || counted::live != 0 || memory.peak + counted::peak > bytes.size() + kAllowance) {
    outcome = Outcome::broken;
  }
  return outcome;
}

}  // namespace

TEST_CASE("changed models are refused, fail or generate, within their memory", "[hostile]") {
  std::vector<Base> bases;
  for (const std::string& name : representative_models()) bases.emplace_back(name);
  const char* given = std::getenv("TESSERA_TEST_MUTATIONS");
  const int n = given != nullptr ? std::atoi(given) : tests::unless_sanitized(20'000, 8'000);
  const auto executor = std::make_shared<InlineExecutor>();
  for (const Base& base : bases) REQUIRE(use(base.bytes, executor) == Outcome::generated);
  Mutator mutator(20'260'601);
  std::size_t seen[4] = {};
  std::vector<std::byte> bytes;
  for (int i = 0; i < n; ++i) {
    const Base& base = bases[mutator.below(bases.size())];
    bytes = base.bytes;
    for (auto changes = 1 + mutator.below(2); changes > 0; --changes) mutator.change(bytes, base);
    const Outcome outcome = use(bytes, executor);
    if (outcome == Outcome::broken) FAIL("model " << i << " gives an unclear error, leaks, or takes too much");
    ++seen[static_cast<int>(outcome)];
  }
  INFO(seen[0] << " refused, " << seen[1] << " failed later, " << seen[2] << " generated");
  if (given != nullptr) WARN(seen[0] << " refused, " << seen[1] << " failed later, " << seen[2] << " generated");
  CHECK(seen[0] > static_cast<std::size_t>(n) / 4);
  CHECK(seen[1] > 0);
  CHECK(seen[2] > static_cast<std::size_t>(n) / 10);
}

TEST_CASE("a context that a file merely claims takes nothing", "[hostile]") {
  const Base base("llama-gqa");
  auto bytes = base.bytes;
  const std::string key = "llama.context_length";
  const auto words = std::as_bytes(std::span(key));
  const auto at = std::search(bytes.begin(), bytes.end(), words.begin(), words.end());
  REQUIRE(at != bytes.end());
  const std::uint32_t claim = 1'000'000'000;
  std::memcpy(&*at + key.size() + 4, &claim, 4);
  CHECK(use(bytes, std::make_shared<InlineExecutor>()) == Outcome::generated);
}

TEST_CASE("layers whose heads differ in size are refused: rope has one table", "[hostile]") {
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  const auto heads = static_cast<std::int32_t>(must(file.metadata().unsigned_integer("llama.attention.head_count")));
  const auto kv_heads = static_cast<std::int32_t>(must(file.metadata().unsigned_integer("llama.attention.head_count_kv")));
  const auto n_layers = must(file.metadata().unsigned_integer("llama.block_count"));
  std::vector<std::int32_t> q(n_layers, heads), kv(n_layers, kv_heads);
  q.back() *= 2;  // twice the heads of half the size: every tensor has the shape it should
  kv.back() *= 2;
  GgufWriter writer;
  for (const GgufEntry& entry : file.metadata().entries()) must(writer.copy(entry));
  must(writer.set_array("llama.attention.head_count", q));
  must(writer.set_array("llama.attention.head_count_kv", kv));
  for (const GgufTensor& tensor : file.tensors()) {
    must(writer.add_tensor(tensor.name, tensor.dtype, std::span(tensor.dims).first(tensor.n_dims)));
  }
  std::vector<std::byte> bytes;
  must(writer.write(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.insert(bytes.end(), piece.begin(), piece.end());
        return {};
      },
      [&](std::string_view name, const ByteSink& write) -> Status {
        const GgufTensor* tensor = file.find_tensor(name);
        std::vector<std::byte> data(tensor->bytes);
        must(file.read(*tensor, 0, data));
        return write(data);
      }));
  const auto engine = Engine::load(must(ModelFile::from_memory(bytes)));
  REQUIRE(!engine);
  CHECK(engine.error().code() == ErrorCode::unsupported);
}

TEST_CASE("nonsense from the caller is a clear error, and the session is as it was", "[hostile]") {
  const Engine engine = load_golden("llama-gqa", {.context = 20});
  const Engine other = load_golden("llama-gqa");
  Session session = must(engine.session());
  const Token prompt[] = {1, 2, 3};
  must(session.append(prompt));
  const std::vector<float> logits(session.logits().begin(), session.logits().end());
  const auto checksum = session.kv().checksum(0);
  const auto vocab = static_cast<Token>(engine.spec().vocab_size);
  const auto refused = [&](const auto& result, ErrorCode code) {
    REQUIRE(!result);
    INFO(result.error().text());
    CHECK(result.error().code() == code);
    CHECK(is_clear(result.error()));
    CHECK(session.tokens().size() == 3);
    CHECK(session.position() == 3);
    CHECK(same_bits(session.logits(), logits));
    CHECK(session.kv().checksum(0) == checksum);
  };

  for (const Token bad : {-1, vocab, std::numeric_limits<Token>::max(), std::numeric_limits<Token>::min()}) {
    const Token tokens[] = {4, bad, 5};
    refused(session.append(tokens), ErrorCode::invalid_argument);
    refused(session.score(tokens), ErrorCode::invalid_argument);
    refused(session.score(std::span(tokens).subspan(1)), ErrorCode::invalid_argument);
    Batch batch;
    must(batch.add(session, tokens));
    refused(engine.forward(batch), ErrorCode::invalid_argument);
  }
  refused(session.score({}), ErrorCode::invalid_argument);
  const std::vector<Token> many(1'000'000, 1);
  refused(session.append(many, {.logits = LogitsOf::all}), ErrorCode::cache_full);
  refused(session.score(many), ErrorCode::cache_full);

  Session foreign = must(other.session());
  Batch mixed;
  must(mixed.add(foreign, prompt));
  refused(engine.forward(mixed), ErrorCode::invalid_argument);
  CHECK(foreign.position() == 0);
  const std::vector<float> narrow(engine.spec().d_model - 1);
  Batch embedded;
  must(embedded.add(session, {.token = 0, .embedding = narrow, .want = Want::logits}));
  refused(engine.forward(embedded), ErrorCode::invalid_argument);
  Batch good;
  must(good.add(session, prompt));
  refused(engine.forward(good, {.first_layer = 7, .last_layer = 3}), ErrorCode::invalid_argument);
  refused(engine.forward(good, {.first_layer = 1}), ErrorCode::invalid_argument);
  refused(engine.forward(good, {.last_layer = 1}), ErrorCode::invalid_state);  // it holds all layers
  Session fresh = must(engine.session());
  Batch short_of_logits;
  must(short_of_logits.add(fresh, prompt));
  refused(engine.forward(short_of_logits, {.last_layer = 1}), ErrorCode::invalid_argument);
  CHECK(engine.forward(Batch()).has_value());

  refused(engine.session({.context = 21}), ErrorCode::invalid_argument);
  refused(engine.session({.kv = {.dtype = DType::q4_0}}), ErrorCode::unsupported);
  refused(engine.session({.kv = {.page_tokens = 24}}), ErrorCode::invalid_argument);
  refused(engine.session({.kv = {.prefix = static_cast<PrefixReuse>(9)}}), ErrorCode::invalid_argument);
  refused(engine.session({.kv = {.kind = KvKind::contiguous, .prefix = PrefixReuse::on}}), ErrorCode::invalid_argument);
  refused(Engine::load(golden_dir() / "llama-gqa.gguf", {.kv_file_bytes = 4096}), ErrorCode::invalid_argument);
  refused(engine.session({.kv = {.kind = static_cast<KvKind>(7)}}), ErrorCode::invalid_argument);
  const auto path = golden_dir() / "llama-gqa.gguf";
  refused(Engine::load(path, {.tokenizer = static_cast<TokenizerUse>(9)}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.numerics = static_cast<Numerics>(50)}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.fallback = static_cast<Fallback>(-1)}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.freed_pages = static_cast<FreedPages>(9)}), ErrorCode::invalid_argument);
  for (const std::int32_t want : {-1, 3, 99, 257}) {  // 257 ends like `logits`
    Batch batch;
    must(batch.add(fresh, {.token = 1, .embedding = {}, .want = static_cast<Want>(want)}));
    refused(engine.forward(batch), ErrorCode::invalid_argument);
  }
  refused(Engine::load(path, {.step_rows = 0}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.step_rows = 1u << 30}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.threads = 1'000'000}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.context = 1'000'000}), ErrorCode::invalid_argument);
  refused(Engine::load(path, {.backend = BackendKind::cuda}), ErrorCode::unsupported);
  refused(Engine::load(golden_dir()), ErrorCode::invalid_argument);  // there are many GGUF files
  refused(Engine::load(source_dir() / "tests/engine"), ErrorCode::not_found);

  Sampler greedy = sampling::chain().greedy().build();
  Session empty = must(engine.session());
  refused(empty.generate(greedy, {.max_tokens = 1}, {}), ErrorCode::invalid_state);
  Sampler liar = sampling::chain().stage([&](sampling::Candidates& candidates, const sampling::Context&) {
    for (float& logit : candidates.change_logits()) logit = std::numeric_limits<float>::quiet_NaN();
  }).build();
  refused(session.generate(liar, {.max_tokens = 1, .logprobs = 3}, {}), ErrorCode::numeric);
  Sampler moved = std::move(greedy);
  refused(session.generate(greedy, {.max_tokens = 1}, {}), ErrorCode::invalid_state);

  // Absurd options that have an answer all the same.
  const std::string long_stop(1 << 20, 'x');
  const auto done = session.generate(moved, {.max_tokens = SIZE_MAX, .stop_tokens = {-5, vocab}, .stop_strings = {"", long_stop},
                                             .end_of_generation = EndOfGeneration::ignore, .logprobs = 0xffffffff}, {});
  REQUIRE(!done);
  CHECK(done.error().code() == ErrorCode::cache_full);
  CHECK(session.tokens().size() == 21);
}

}  // namespace test_hostile_models
