// Adapters: what they add to each product, in every kind of model; rows of different adapters in one step; and what follows a session:
// forks, files, prefixes, changes of its adapters.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "engine/made_adapter.hpp"
#include "engine/snapshot_bytes.hpp"

#include "catch.hpp"

namespace test_adapters {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<Token> tokens_for(const Engine& engine, std::size_t n, Token first = 1) {
  std::vector<Token> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = static_cast<Token>((static_cast<std::size_t>(first) + 7 * i) % engine.spec().vocab_size);
  return tokens;
}

std::vector<float> all_logits(Session& session, std::span<const Token> tokens) {
  const Logits logits = must(session.append(tokens, {.logits = LogitsOf::all}));
  return {logits.values.begin(), logits.values.end()};
}

std::vector<float> all_logits(const Engine& engine, std::span<const Token> tokens, std::vector<AdapterUse> adapters = {}) {
  Session session = must(engine.session({.adapters = std::move(adapters)}));
  return all_logits(session, tokens);
}

double greatest_difference(std::span<const float> a, std::span<const float> b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

bool in_layers(std::string_view name) { return name.starts_with("blk."); }

EngineOptions with_reference() { return {.kv = {.dtype = DType::f32}, .threads = 2}; }

}  // namespace

TEST_CASE("An adapter is added to the products of every kind of layer", "[adapters]") {
  const AdapterFolder folder;
  for (const std::string& name : representative_models()) {
    INFO(name);
    const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
    if (std::ranges::any_of(file.tensors(), [](const TensorInfo& tensor) { return can_be_adapted(tensor) && tensor.dtype != DType::f32; })) continue;
    const Engine engine = must(Engine::load(file, with_reference()));
    // Layers that read another layer's keys have matrices for keys and values in the file, and do not use them.
    const auto is_used = [&](std::string_view tensor) {
      if (!in_layers(tensor)) return false;
      const auto layer = static_cast<std::size_t>(std::atoi(tensor.data() + 4));
      const bool is_of_keys = tensor.find("attn_k.") != tensor.npos || tensor.find("attn_v.") != tensor.npos;
      return !is_of_keys || engine.spec().layers[layer].keys_of == kOwnKeys;
    };
    const MadeAdapter how{.rank = 3, .alpha = 6.0f, .seed = 5, .size = 0.1f, .takes = is_used};
    const Adapter adapter = must(engine.adapter(folder.write(name, file, how)));
    CHECK(adapter.rank() == 3);
    CHECK(adapter.matrices() > 0);
    const std::vector<Token> tokens = tokens_for(engine, std::min<std::size_t>(12, engine.plan().context));
    const auto without = all_logits(engine, tokens), with = all_logits(engine, tokens, {{.adapter = adapter, .scale = 0.7f}});
    const auto expected = all_logits(must(Engine::load(merged(file, how, 0.7f).file(), with_reference())), tokens);
    const double changes = greatest_difference(without, expected);
    CHECK(changes > 1e-3);
    CHECK(greatest_difference(with, expected) < 1e-4 + 1e-3 * changes);
  }
}

namespace {

// An engine with some adapters of different ranks and types.
struct Rig {
  explicit Rig(const std::string& name = "llama-gqa", EngineOptions options = {.threads = 2}, std::size_t n = 5)
      : file(must(ModelFile::open(golden_dir() / (name + ".gguf")))), engine(must(Engine::load(file, options))) {
    static constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
    static constexpr std::uint32_t kRanks[] = {1, 4, 7, 16, 65};
    for (std::size_t i = 0; i < n; ++i) {
      const MadeAdapter how{.rank = kRanks[i % 5], .dtype = kTypes[i % 3], .alpha = 4.0f, .seed = static_cast<std::uint32_t>(i + 1), .size = 0.2f,
                            .takes = [i](std::string_view tensor) { return i % 2 == 0 || tensor.find("attn") != tensor.npos; }};
      adapters.push_back(must(engine.adapter(folder.write("adapter" + std::to_string(i), file, how))));
    }
  }

  AdapterFolder folder;
  ModelFile file;
  Engine engine;
  std::vector<Adapter> adapters;
};

}  // namespace

TEST_CASE("A row's bits depend on its own adapters alone", "[adapters]") {
  for (const std::string name : {"llama-gqa", "qwen2moe", "qwen35", "deepseek-v2-lite"}) {
    INFO(name);
    const Rig rig(name);
    const Engine plain = must(Engine::load(rig.file, {.threads = 1}));
    // Sequences with no adapter, one, two, the same one with another scale, in chunks that fill steps differently.
    const std::vector<std::vector<AdapterUse>> sets = {
        {}, {{rig.adapters[0]}}, {{rig.adapters[1], -0.5f}}, {{rig.adapters[1], 2.0f}}, {{rig.adapters[2]}, {rig.adapters[3], 0.25f}},
        {{rig.adapters[3], 0.25f}, {rig.adapters[2]}}, {{rig.adapters[4]}}, {{rig.adapters[0], 0.0f}}, {{rig.adapters[1], 1.0f, 5}}};
    std::vector<Session> together;
    Batch batch;
    std::vector<std::vector<float>> alone;
    std::vector<std::vector<Token>> texts;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      texts.push_back(tokens_for(rig.engine, 9 + i % 3, static_cast<Token>(i % 2)));
      alone.push_back(all_logits(rig.engine, texts[i], sets[i]));
      together.push_back(must(rig.engine.session({.kv = {.prefix = PrefixReuse::off}, .adapters = sets[i]})));
    }
    CHECK(same_bits(alone[0], all_logits(plain, texts[0])));
    CHECK(same_bits(alone[7], all_logits(plain, texts[7])));
    std::vector<std::vector<float>> found(sets.size());
    for (std::size_t at = 0; at < 11; ++at) {  // one token of each sequence a step
      Batch step;
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < sets.size(); ++i) {
        if (at >= texts[i].size()) continue;
        must(step.add(together[i], std::span(texts[i]).subspan(at, 1)));
        members.push_back(i);
      }
      const Outputs outputs = must(rig.engine.forward(step));
      for (std::size_t k = 0; k < members.size(); ++k) {
        const auto row = outputs.row(k);
        found[members[k]].insert(found[members[k]].end(), row.begin(), row.end());
      }
    }
    for (std::size_t i = 0; i < sets.size(); ++i) {
      INFO(i);
      CHECK(same_bits(alone[i], found[i]));
      Session session = must(rig.engine.session({.kv = {.prefix = PrefixReuse::off}, .adapters = sets[i]}));
      CHECK(same_bits(alone[i], test::all_logits(session, texts[i], 4)));
    }
    CHECK(!same_bits(alone[1], all_logits(plain, texts[1])));
    CHECK(!same_bits(alone[2], all_logits(rig.engine, texts[2], sets[3])));
  }
}

TEST_CASE("Copies, files and computing again keep a sequence's adapters", "[adapters]") {
  for (const std::string name : {"llama-gqa", "qwen35"}) {
    INFO(name);
    const Rig rig(name);
    const std::vector<AdapterUse> uses = {{rig.adapters[0], 0.5f}, {rig.adapters[3], 1.0f, 20}};
    const std::vector<Token> text = tokens_for(rig.engine, 40), more = tokens_for(rig.engine, 5, 3);
    Session session = must(rig.engine.session({.adapters = uses}));
    must(session.append(text));
    Session fork = must(session.fork());
    CHECK(must(fork.adapters()).size() == 2);
    CHECK(must(session.verify()).verdict == Verdict::same);
    std::vector<std::byte> bytes;
    must(session.save([&](std::span<const std::byte> piece) -> Status {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    }));
    Session restored = must(rig.engine.restore(bytes));
    const auto expected = all_logits(session, more);
    CHECK(same_bits(expected, all_logits(fork, more)));
    CHECK(same_bits(expected, all_logits(restored, more)));
    const auto kept = must(restored.adapters());
    REQUIRE(kept.size() == 2);
    CHECK(kept[1].from == 20);
    CHECK(kept[0].scale == 0.5f);
    // The pages are found again by the same adapters alone.
    Session again = must(rig.engine.session({.adapters = uses}));
    must(again.append(text));
    if (name == "llama-gqa") CHECK(again.reused() == 32);  // recurrent layers share checkpoints only
    Session other = must(rig.engine.session({.adapters = {{rig.adapters[0], 0.25f}, {rig.adapters[3], 1.0f, 20}}}));
    must(other.append(text));
    CHECK(other.reused() == 0);
    Session none = must(rig.engine.session());
    must(none.append(text));
    CHECK(none.reused() == 0);
  }
}

TEST_CASE("An engine without a session's adapter says which one is missing", "[adapters]") {
  std::vector<std::byte> bytes;
  {
    const Rig rig;
    Session session = must(rig.engine.session({.adapters = {{rig.adapters[2]}}}));
    must(session.append(tokens_for(rig.engine, 10)));
    must(session.save([&](std::span<const std::byte> piece) -> Status {
      bytes.insert(bytes.end(), piece.begin(), piece.end());
      return {};
    }));
  }
  const Rig other("llama-gqa", {.threads = 1}, 2);
  const auto restored = other.engine.restore(bytes);
  REQUIRE(!restored);
  CHECK(restored.error().code() == ErrorCode::not_found);
  CHECK(restored.error().message().find("adapter2") != std::string::npos);
  // An adapter with the same numbers under another name will do.
  const Rig same("llama-gqa", {.threads = 1}, 3);
  CHECK(same.engine.restore(bytes));
}

TEST_CASE("Adapters of a saved session that make no sense are damage, under checksums that are right", "[adapters]") {
  const Rig rig("llama-gqa", {.threads = 1}, 2);
  Session session = must(rig.engine.session({.adapters = {{rig.adapters[0], 0.5f}, {rig.adapters[1], 1.0f, 3}}}));
  must(session.append(tokens_for(rig.engine, 6)));
  const Bytes bytes = saved(session);
  const SectionAt at = section(bytes, "ADPT");
  REQUIRE(at.length == 80 + std::string_view("adapter0adapter1").size());
  const auto code_of = [&](const Bytes& changed) {
    const auto restored = rig.engine.restore(changed);
    return restored ? std::optional<ErrorCode>() : restored.error().code();
  };
  const auto with = [&](std::size_t offset, auto value) {
    Bytes changed = bytes;
    put_number(changed, at.payload + offset, value);
    reseal(changed);
    return code_of(changed);
  };
  CHECK(!code_of(bytes));
  CHECK(with(0, std::uint64_t{1}) == ErrorCode::not_found);  // another adapter
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{9}, std::uint64_t{50}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    CHECK(with(32, length) == ErrorCode::corrupt_file);
    CHECK(with(72, length) == ErrorCode::corrupt_file);
  }
  for (const std::uint32_t scale : {0u, 0x7f800000u, 0x7fc00000u}) CHECK(with(24, scale) == ErrorCode::corrupt_file);
  CHECK(with(28, 2u) == ErrorCode::corrupt_file);
  for (const std::size_t length : {std::size_t{0}, std::size_t{39}, std::size_t{41}, at.length - 1}) {
    CHECK(code_of(with_payload(bytes, at, std::span(bytes).subspan(at.payload, length))) == ErrorCode::corrupt_file);
  }
}

TEST_CASE("Pages before an adapter's first position are shared with sequences without it", "[adapters]") {
  const Rig rig("llama-gqa", {.kv = {.page_tokens = 16}, .threads = 2});
  const std::vector<Token> text = tokens_for(rig.engine, 60);
  Session base = must(rig.engine.session());
  must(base.append(text));
  Session late = must(rig.engine.session({.adapters = {{rig.adapters[1], 1.0f, 34}}}));
  must(late.append(text));
  CHECK(late.reused() == 32);
  Session alone = must(rig.engine.session({.kv = {.prefix = PrefixReuse::off}, .adapters = {{rig.adapters[1], 1.0f, 34}}}));
  must(alone.append(text));
  CHECK(same_bits(late.logits(), alone.logits()));
  CHECK(!same_bits(late.logits(), base.logits()));
  // And with sequences in which it begins elsewhere.
  Session later = must(rig.engine.session({.adapters = {{rig.adapters[1], 1.0f, 50}}}));
  must(later.append(text));
  CHECK(later.reused() == 48);
  Session twin = must(rig.engine.session({.adapters = {{rig.adapters[1], 1.0f, 34}}}));
  must(twin.append(text));
  CHECK(twin.reused() == 48);
  CHECK(same_bits(twin.logits(), late.logits()));
}

TEST_CASE("A session changes its adapters, and computes again only what they change", "[adapters]") {
  const Rig rig;
  const std::vector<Token> text = tokens_for(rig.engine, 60), more = tokens_for(rig.engine, 3, 9);
  const SessionOptions no_reuse{.kv = {.prefix = PrefixReuse::off}};
  const auto expected_with = [&](const std::vector<AdapterUse>& uses) {
    SessionOptions options = no_reuse;
    options.adapters = uses;
    Session session = must(rig.engine.session(options));
    must(session.append(text));
    return all_logits(session, more);
  };
  Session session = must(rig.engine.session(no_reuse));
  must(session.append(text));
  const std::vector<AdapterUse> late = {{rig.adapters[1], 1.0f, 50}}, whole = {{rig.adapters[0]}};
  must(session.use_adapters(late));
  CHECK(session.position() == 50);
  CHECK(session.tokens().size() == 60);
  CHECK(same_bits(all_logits(session, more), expected_with(late)));
  must(session.truncate(60));
  must(session.use_adapters(whole));
  CHECK(session.position() == 0);
  CHECK(same_bits(all_logits(session, more), expected_with(whole)));
  must(session.truncate(60));
  must(session.use_adapters(whole));  // nothing changes
  CHECK(session.position() == 60);
  must(session.use_adapters({}));
  CHECK(same_bits(all_logits(session, more), expected_with({})));
}

TEST_CASE("Wrong uses of adapters are errors that say what to do", "[adapters]") {
  const Rig rig, other;
  const auto code_of = [&](std::vector<AdapterUse> uses) {
    const auto session = rig.engine.session({.adapters = std::move(uses)});
    return session ? std::optional<ErrorCode>() : session.error().code();
  };
  CHECK(code_of({{Adapter()}}) == ErrorCode::invalid_argument);
  CHECK(code_of({{other.adapters[0]}}) == ErrorCode::invalid_argument);
  CHECK(code_of({{rig.adapters[0], std::nanf("")}}) == ErrorCode::invalid_argument);
  CHECK(code_of({{rig.adapters[0], INFINITY}}) == ErrorCode::invalid_argument);
  CHECK(!code_of({{rig.adapters[0]}, {rig.adapters[0]}}));
  CHECK(Adapter().bytes() == 0);
  CHECK(Adapter().name().empty());
  CHECK(!Engine().adapter("x.gguf"));
  Session session = must(rig.engine.session());
  must(session.append(tokens_for(rig.engine, 30)));
  must(session.remove(5, 10));
  const std::vector<AdapterUse> uses = {{rig.adapters[0]}};
  const Status refused = session.use_adapters(uses);
  REQUIRE(!refused);
  CHECK(refused.error().code() == ErrorCode::invalid_state);
  CHECK(must(session.adapters()).empty());
}

TEST_CASE("Adapters are counted, shared by content, and freed with their last user", "[adapters]") {
  const AdapterFolder folder;
  const ModelFile file = must(ModelFile::open(golden_dir() / "llama-gqa.gguf"));
  const MadeAdapter how{.rank = 8, .seed = 3};
  std::uint64_t bytes = 0;
  {
    const Engine engine = must(Engine::load(file, {.threads = 1}));
    bytes = must(engine.adapter(folder.write("one", file, how))).bytes();
  }
  const Engine engine = must(Engine::load(file, {.threads = 1, .adapter_budget = 2 * bytes}));
  CHECK(engine.plan().adapters == 2 * bytes);
  CHECK(engine.plan().peak >= 2 * bytes);
  const std::filesystem::path one = folder.write("one", file, how), two = folder.write("two", file, {.rank = 8, .seed = 4}),
                              three = folder.write("three", file, {.rank = 8, .seed = 5});
  Adapter first = must(engine.adapter(one));
  CHECK(must(engine.adapter(one)).state() == first.state());
  std::optional<Session> user = must(engine.session({.adapters = {{must(engine.adapter(two))}}}));
  const auto third = engine.adapter(three);
  REQUIRE(!third);
  CHECK(third.error().code() == ErrorCode::over_budget);
  first = {};
  CHECK(engine.adapter(three));  // and it is freed at once
  const Adapter held = must(engine.adapter(three));
  CHECK(!engine.adapter(one));
  user.reset();
  CHECK(engine.adapter(one));
}

TEST_CASE("The table and the output matrix have adapters of their own, also where they are one matrix", "[adapters]") {
  const AdapterFolder folder;
  for (const std::string name : {"llama-gqa", "gemma3"}) {
    INFO(name);
    const ModelFile file = must(ModelFile::open(golden_dir() / (name + ".gguf")));
    const bool is_tied = file.find_tensor("output.weight") == nullptr;
    const MadeAdapter how{.rank = 5, .seed = 8, .size = 0.2f, .takes = [](std::string_view tensor) { return tensor == "token_embd.weight"; }};
    const Engine engine = must(Engine::load(file, with_reference()));
    const Adapter adapter = must(engine.adapter(folder.write(name, file, how)));
    const std::vector<Token> tokens = tokens_for(engine, 10);
    const auto with = all_logits(engine, tokens, {{adapter}}), without = all_logits(engine, tokens);
    CHECK(!same_bits(with, without));
    if (is_tied) continue;  // adding it to the weights would change the output matrix too
    CHECK(greatest_difference(with, all_logits(must(Engine::load(merged(file, how, 1.0f).file(), with_reference())), tokens)) < 1e-4);
  }
}

}  // namespace test_adapters
