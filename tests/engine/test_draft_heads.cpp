// Draft heads in files of their own: what they guess against the published code in torch, and that a session with them is what it is without,
// and keeps what a session promises.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include <tessera/extend/decoding/draft_target.hpp>

#include "engine/head_models.hpp"
#include "engine/inside.hpp"
#include "engine/kv_twins.hpp"
#include "engine/session_walk.hpp"
#include "engine/views.hpp"

namespace test_draft_heads {

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr float kTolerance = 1e-4f;
constexpr std::size_t kChain = 3;

std::size_t most_guesses(const Engine& engine, std::size_t wanted) {
  const std::uint32_t most = engine.spec().draft_heads.most_guesses;
  return most == 0 ? wanted : std::min<std::size_t>(wanted, most);
}

// Guesses for a session with one pending token: the logits behind it, and behind each of the further tokens. nullopt: there is no room.
std::optional<std::vector<float>> guesses_or_full(Session& session, std::span<const Token> further) {
  Session::State& state = *state_of(session);
  const ModelSpec& spec = session.engine().spec();
  std::vector<float> hidden(spec.d_model), logits((1 + further.size()) * spec.vocab_size);
  auto head = DraftTarget(state).guess_by_heads(1 + further.size(), hidden);
  if (!head) {
    REQUIRE(head.error().code() == ErrorCode::cache_full);
    return std::nullopt;
  }
  for (std::size_t i = 0; i <= further.size(); ++i) {
    const Token token = i == 0 ? session.tokens().back() : further[i - 1];
    must(head->next(token, std::span(logits).subspan(i * spec.vocab_size, spec.vocab_size)));
  }
  kv_of(session).commit(session.kv().length());  // what was reserved
  return logits;
}

// Returns the largest difference; infinity where only one of the two is a number.
float difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  float largest = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // -inf too
    const float d = std::fabs(a[i] - b[i]);
    if (!(d <= largest)) largest = d;
  }
  return largest;
}

Token likeliest_of(std::span<const float> logits) { return static_cast<Token>(std::ranges::max_element(logits) - logits.begin()); }

std::string refused(const std::string& model, const std::filesystem::path& heads, EngineOptions options = {}) {
  options.draft_heads = heads;
  const auto engine = Engine::load(golden_dir() / (model + ".gguf"), options);
  return engine ? "" : engine.error().text();
}

void copy_folder(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("tessera-heads-" + std::to_string(::getpid()) + "-" + name);
}

}  // namespace

TEST_CASE("draft heads guess what the published code does", "[heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine engine = load_heads(heads);
    const auto tokens = read_tokens(golden_dir() / "heads" / (heads.model + ".tokens.txt"));
    const auto expected = read_floats(heads.folder() / (heads.guesses + ".f32"));
    const std::size_t vocab = engine.spec().vocab_size, in_row = heads.is_medusa() ? engine.spec().draft_heads.most_guesses : 1;
    const auto row = [&](std::size_t i) { return std::span(expected).subspan(i * in_row * vocab, in_row * vocab); };
    REQUIRE(expected.size() == (tokens.size() - 1 + (heads.is_medusa() ? 0 : kChain)) * in_row * vocab);
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{5}, tokens.size()}) {  // of the prompt
      Session session = must(engine.session({.kv = {.dtype = DType::f32, .page_tokens = 16}}));
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (session.position() == i) must(session.append(std::span(tokens).subspan(i, std::min(chunk, tokens.size() - 1 - i))));
        if (session.position() != i + 1) continue;
        must(session.add_pending(tokens[i + 1]));
        // Medusa heads read no token; the chain of an EAGLE head is of the last row.
        std::vector<Token> further(heads.is_medusa() ? in_row - 1 : 0, 7);
        for (std::size_t at = tokens.size() - 2; !heads.is_medusa() && i + 2 == tokens.size() && further.size() < kChain; ++at) {
          further.push_back(likeliest_of(row(at)));
        }
        const std::size_t n = heads.is_medusa() ? in_row : 1 + further.size();
        INFO(heads.name() << ", behind " << i + 1 << " tokens, " << chunk << " at once");
        CHECK(difference(guesses_or_full(session, further).value(), std::span(expected).subspan(i * in_row * vocab, n * vocab)) <= kTolerance);
        must(session.truncate(i + 1));
      }
    }
  }
}

TEST_CASE("a model with draft heads of another file gives its own bits", "[heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine with = load_heads(heads), without = load_golden(heads.model);
    INFO(heads.name());
    CHECK(with.spec().n_layers() == without.spec().n_layers());
    const auto tokens = make_tokens(3, 50, with.spec().vocab_size);
    Session a = must(with.session()), b = must(without.session());
    CHECK(same_bits(all_logits(a, tokens, 7), all_logits(b, tokens, 50)));
    const auto wanted = [&](const Engine& engine) {  // rows that want different outputs, in one batch
      Session session = must(engine.session());
      Batch batch;
      constexpr Want kWants[] = {Want::nothing, Want::hidden, Want::embedding, Want::logits};
      for (std::size_t i = 0; i < 40; ++i) must(batch.add(session, {.token = tokens[i], .want = kWants[i * 7 % 4]}));
      const Outputs outputs = must(engine.forward(batch));
      std::vector<float> all;
      for (std::size_t i = 0; i < 40; ++i) all.insert(all.end(), outputs.row(i).begin(), outputs.row(i).end());
      return all;
    };
    CHECK(same_bits(wanted(with), wanted(without)));
  }
}

TEST_CASE("what draft heads keep is the same however their session came about", "[heads]") {
  for (const HeadCase& heads : head_cases()) {
    if (heads.kind == "eagle3.gguf") continue;  // computed as the folder's
    INFO(heads.name());
    SessionWalk walk(heads.model, {DType::f32}, 7, with_heads(heads));
    const auto text = make_tokens(5, 8, 24);
    std::size_t guessed = 0;
    walk.compare = [&](Session& session, Session& twin) {
      REQUIRE(checksums(session) == checksums(twin));
      if (session.tokens().size() > 40) return;
      const std::size_t n = session.tokens().size();
      must(session.add_pending(text[0]));
      must(twin.add_pending(text[0]));
      const auto further = std::span(text).first(most_guesses(session.engine(), text.size() + 1) - 1);
      if (const auto mine = guesses_or_full(session, further)) {
        CHECK(same_bits(*mine, guesses_or_full(twin, further).value()));
        ++guessed;
      }
      if (session.append({})) {
        must(twin.append({}));
        REQUIRE(checksums(session) == checksums(twin));
      }
      must(session.truncate(n));
    };
    walk.run(80);
    CHECK(guessed > 20);
    CHECK(walk.refused > 0);
  }
}

TEST_CASE("a session with draft heads goes back to any token, and its prefixes are shared", "[heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine engine = load_heads(heads);
    INFO(heads.name());
    const auto tokens = make_tokens(9, 60, engine.spec().vocab_size);
    const SessionOptions options{.kv = {.dtype = DType::f32, .page_tokens = 16}};
    Session first = must(engine.session(options)), second = must(engine.session(options));
    must(first.append(tokens));
    must(second.append(tokens));
    CHECK(second.reused() == 48);
    CHECK(checksums(first) == checksums(second));
    const auto further = std::span(tokens).first(most_guesses(engine, 3) - 1);
    for (const std::size_t n : {59u, 43u, 33u, 32u, 17u, 1u}) {
      must(second.truncate(n));
      Session fresh = must(engine.session({.kv = {.dtype = DType::f32, .page_tokens = 16, .prefix = PrefixReuse::off}}));
      must(fresh.append(std::span(tokens).first(n)));
      CHECK(checksums(fresh) == checksums(second));
      must(fresh.add_pending(5));
      must(second.add_pending(5));
      CHECK(same_bits(guesses_or_full(fresh, further).value(), guesses_or_full(second, further).value()));
      must(second.truncate(n));
    }
  }
}

TEST_CASE("a session with draft heads is saved and restored with what they keep", "[heads]") {
  for (const HeadCase& heads : head_cases()) {
    const Engine engine = load_heads(heads);
    INFO(heads.name());
    Session session = must(engine.session());
    must(session.append(make_tokens(1, 20, 100)));
    std::vector<std::byte> saved;
    must(session.save([&](std::span<const std::byte> bytes) {
      saved.insert(saved.end(), bytes.begin(), bytes.end());
      return Status();
    }));
    Session restored = must(engine.restore(saved));
    CHECK(checksums(session) == checksums(restored));
    must(session.add_pending(5));
    must(restored.add_pending(5));
    CHECK(same_bits(guesses_or_full(session, {}).value(), guesses_or_full(restored, {}).value()));
    CHECK(!load_golden(heads.model).restore(saved));  // sessions of the two kinds of engine are not each other's
    const auto stream = engine.session({.stream = {.sinks = 2, .window = 8}});
    REQUIRE(!stream);
    CHECK(stream.error().text().find(" head") != std::string::npos);
  }
}

TEST_CASE("the plan counts draft heads of another file", "[heads]") {
  for (const HeadCase& heads : head_cases()) {
    const ModelFile file = must(ModelFile::open(golden_dir() / (heads.model + ".gguf")));
    const Plan with = must(Engine::plan(file, with_heads(heads))), without = must(Engine::plan(file, {.threads = 2}));
    INFO(heads.name());
    CHECK(with.weights > without.weights);
    CHECK(with.weights_per_token == without.weights_per_token);
    CHECK(with.kv > without.kv);
    const ModelSpec spec = load_heads(heads).spec();
    const std::uint64_t head = heads.is_medusa() ? 0 : 2 * spec.draft_heads.layers.front().n_kv_heads * spec.draft_heads.layers.front().key_dim;
    CHECK(with.kv_per_token == without.kv_per_token + (head + spec.d_model) * sizeof(float));
    CHECK(load_heads(heads).plan().peak == with.peak);
    const auto small = Engine::load(file, with_heads(heads, {.memory_budget = with.peak - 1}));
    REQUIRE(!small);
    CHECK(small.error().code() == ErrorCode::over_budget);
  }
}

TEST_CASE("explain says which draft heads there are", "[heads]") {
  const auto line = [](const Engine& engine) {
    for (const KernelUse& use : must(engine.explain())) {
      if (use.kind == Operation::guess_tokens) return use.kernel;
    }
    return std::string();
  };
  CHECK(line(load_heads(head_cases()[0])) == "Medusa heads, 3 tokens");
  CHECK(line(load_heads(head_cases()[1])) == "EAGLE head, a layer");
  CHECK(line(load_heads(head_cases()[2])) == "EAGLE-3 head, a layer");
}

TEST_CASE("an engine's identity has its draft heads", "[heads]") {
  // The folder and the GGUF file hold the same weights in another order: prefixes of the one are not taken for the other's.
  std::vector<std::string> saved;
  for (const HeadCase& heads : head_cases()) {
    if (heads.model != "llama-gqa") continue;
    Session session = must(load_heads(heads).session());
    must(session.append(make_tokens(1, 20, 100)));
    std::string bytes;
    must(session.save([&](std::span<const std::byte> part) {
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
      return Status();
    }));
    saved.push_back(bytes);
  }
  for (std::size_t i = 0; i < saved.size(); ++i) {
    for (std::size_t j = 0; j < saved.size(); ++j) {
      CHECK(static_cast<bool>(load_heads(head_cases()[i]).restore(std::as_bytes(std::span(saved[j])))) == (i == j));
    }
  }
}

TEST_CASE("configurations of an EAGLE head in other words mean the same", "[heads]") {
  const HeadCase heads = head_cases()[2];
  const std::filesystem::path folder = scratch("words");
  const auto guess_of = [&](const std::filesystem::path& path) {
    Session session = must(must(Engine::load(golden_dir() / "llama-gqa.gguf", {.draft_heads = path, .threads = 2})).session());
    must(session.append(make_tokens(1, 20, 100)));
    must(session.add_pending(5));
    return guesses_or_full(session, std::vector<Token>{7, 3}).value();
  };
  const auto with = [&](const std::string& config) {
    copy_folder(heads.file(), folder);
    std::ofstream(folder / "config.json", std::ios::binary) << config;
    return guess_of(folder);
  };
  const std::string layer = R"("hidden_act": "silu", "hidden_size": 36, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 28,
    "num_hidden_layers": 1, "rms_norm_eps": 0.01, "max_position_embeddings": 64, "vocab_size": 104, "head_dim": 10)";
  const std::string features = R"("eagle_aux_hidden_state_layer_ids": [0, 1, 2])";
  const auto expected = guess_of(heads.file());
  // As vLLM's speculators write it; and a rope as transformers 5 writes it, whose scaling changes nothing.
  CHECK(same_bits(with("{\"transformer_layer_config\": {\"rope_theta\": 700.0, " + layer + "}, \"norm_before_residual\": false, " + features + "}"), expected));
  const auto scaled = [&](const char* factor) {
    return with("{" + layer + ", " + features + R"(, "rope_parameters": {"rope_type": "llama3", "rope_theta": 700.0, "factor": )" + factor +
                R"(, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}})");
  };
  CHECK(same_bits(scaled("1.0"), expected));
  CHECK(!same_bits(scaled("8.0"), expected));
  CHECK(!same_bits(with("{" + layer + ", \"rope_theta\": 700.0, \"norm_before_residual\": true, " + features + "}"), expected));
  std::filesystem::remove_all(folder);
}

TEST_CASE("heads of another model, or of no kind that is known, are refused by name", "[heads]") {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const auto& cases = head_cases();
  CHECK(has(refused("qwen3", cases[0].file()), "the draft heads are for a model of 36 numbers in a hidden state, and this model has 32"));
  CHECK(has(refused("qwen3", cases[2].file()), "36 numbers in a hidden state"));
  CHECK(has(refused("llama-mha", cases[4].file()), "the draft heads are for a model of 100 tokens, and this model has 96"));
  CHECK(has(refused("llama-gqa", golden_dir() / "no-such-folder"), "no-such-folder"));
  CHECK(has(refused("llama-gqa", golden_dir() / "llama-gqa.gguf"), "has no draft heads for another model"));
  CHECK(has(refused("llama-gqa", golden_dir() / "mtp" / "qwen35-folder"), "no draft heads that tessera knows"));
  EngineOptions both;
  both.mtp = MtpHeads::load;
  CHECK(has(refused("llama-gqa", cases[0].file(), both), "choose one of them"));
  // A folder's file names the folder.
  CHECK(refused("llama-gqa", cases[0].file() / "medusa_lm_head.safetensors").empty());
  CHECK(refused("llama-gqa", cases[1].file() / "config.json").empty());
}

TEST_CASE("heads whose configuration or tensors are not as they must be are refused by name", "[heads]") {
  const auto has = [](const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; };
  const std::filesystem::path folder = scratch("changed");
  const auto changed = [&](std::size_t kind, const char* file, const std::string& from, const std::string& to) {
    copy_folder(head_cases()[kind].file(), folder);
    std::ifstream in(folder / file, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    in.close();
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    std::ofstream(folder / file, std::ios::binary) << text;
    return refused("llama-gqa", folder);
  };
  CHECK(has(changed(0, "config.json", "\"medusa_num_heads\": 3", "\"medusa_num_heads\": 4"), "tensor 3.0.linear.weight is missing"));
  CHECK(has(changed(0, "medusa_lm_head.safetensors", "1.0.linear.weight", "1.0.linear.weighs"), "1.0.linear.weighs"));
  CHECK(has(changed(1, "model.safetensors", "layers.0.mlp.up_proj.weight", "layers.0.mlp.up_proj.weighs"), "layers.0.mlp.up_proj.weight is missing"));
  CHECK(has(changed(1, "config.json", "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2"), "2 layers in a draft head"));
  CHECK(has(changed(1, "config.json", "\"intermediate_size\": 28", "\"intermediate_size\": 27"), "mlp.gate_proj.weight in "));
  CHECK(has(changed(1, "config.json", "\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\""), "hidden_act"));
  CHECK(has(changed(1, "config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 0"), "expected 1 to"));
  CHECK(has(changed(1, "config.json", "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3"), "do not fit together"));
  CHECK(has(changed(1, "config.json", "\"rms_norm_eps\": 0.01", "\"rms_norm_eps\": 2.01"), "epsilon"));
  CHECK(has(changed(2, "config.json", "\"norm_before_residual\": false", "\"norm_before_fc\": true"), "norm_before_fc"));
  CHECK(has(changed(2, "config.json", "    2\n", "    9\n"), "this model has 2"));
  CHECK(has(changed(2, "config.json", "    1,\n", "    2,\n"), "three layers of the model, ascending"));
  // In eagle_config the numbers name the layers before: 2 is the input of layer 3, which a model of 2 layers does not have.
  CHECK(has(changed(2, "config.json", "\"eagle_aux_hidden_state_layer_ids\": [\n    0,\n    1,\n    2\n  ]", "\"eagle_config\": {\"eagle_aux_hidden_state_layer_ids\": [0, 1, 2]}"), "this model has 2"));
  CHECK(has(changed(2, "config.json", "eagle_aux_hidden_state_layer_ids", "eagle_aux_hidden_state_layer_idx"), "has no usual ones"));
  CHECK(has(changed(2, "model.safetensors", "midlayer.hidden_norm.weight", "midlayer.hidden_norn.weight"), "hidden_norn"));
  // The table of the tokens that the head guesses: one that stands for a token behind the vocabulary, and one that does not ascend.
  for (const auto& [value, part] : {std::pair{'\x7f', "must ascend"}, std::pair{'\xff', "must ascend"}}) {
    copy_folder(head_cases()[2].file(), folder);
    std::fstream file(folder / "model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::size_t header = 8 + static_cast<unsigned char>(text[0]) + 256u * static_cast<unsigned char>(text[1]);
    const std::size_t entry = text.find("\"d2t\"");
    const std::size_t begin = std::stoul(text.substr(text.find('[', text.find("data_offsets", entry)) + 1));
    file.clear();
    file.seekp(static_cast<std::streamoff>(header + begin + 8));
    file.put(value);
    file.close();
    CHECK(has(refused("llama-gqa", folder), part));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace test_draft_heads
