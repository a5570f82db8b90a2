// Vocabularies that do not fit their model, that do not say what they need, and loading that is stopped at them.
#include <functional>
#include <stop_token>

#include <tessera/extend/files/gguf_writer.hpp>

#include "counted_new.hpp"
#include "engine/models.hpp"

namespace test_hostile_vocabulary {

using namespace tessera;
using namespace tessera::test;

namespace {

// The tiny gpt2 model, with the tokenizer that `edit` writes.
std::vector<std::byte> with_tokenizer(const std::function<void(GgufWriter&)>& edit) {
  const auto file = ModelFile::open(golden_dir() / "gpt2.gguf");
  REQUIRE(file);
  GgufWriter writer;
  for (const GgufEntry& entry : file->metadata().entries()) {
    if (!entry.key.starts_with("tokenizer.")) REQUIRE(writer.copy(entry));
  }
  edit(writer);
  for (const GgufTensor& tensor : file->tensors()) {
    REQUIRE(writer.add_tensor(tensor.name, tensor.dtype, {tensor.dims.data(), tensor.n_dims}));
  }
  std::vector<std::byte> bytes;
  REQUIRE(writer.write(
      [&](std::span<const std::byte> part) { return bytes.insert(bytes.end(), part.begin(), part.end()), Status(); },
      [&](std::string_view name, const ByteSink& write) -> Status {
        const GgufTensor* tensor = file->find_tensor(name);
        std::vector<std::byte> data(tensor->bytes);
        if (auto read = file->read(*tensor, 0, data); !read) return read;
        return write(data);
      }));
  return bytes;
}

void set_tokenizer(GgufWriter& writer, std::vector<std::string> tokens, std::vector<std::string> merges = {}) {
  REQUIRE(writer.set_string("tokenizer.ggml.model", "gpt2"));
  REQUIRE(writer.set_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens)));
  REQUIRE(writer.set_array("tokenizer.ggml.merges", std::span<const std::string>(merges)));
}

}  // namespace

TEST_CASE("more tokens than the embedding has rows: plan and load say so before anything is built") {
  const auto bytes = with_tokenizer([](GgufWriter& w) {
    set_tokenizer(w, std::vector<std::string>(2'000'000));
    REQUIRE(w.set_string("tokenizer.ggml.pre", "gpt-2"));
  });
  const auto file = ModelFile::from_memory(bytes);
  REQUIRE(file);
  const EngineOptions options{.threads = 1};
  counted::Scope scope;
  const auto plan = Engine::plan(*file, options);
  const auto engine = Engine::load(*file, options);
  scope.stop();
  REQUIRE_FALSE(plan);
  REQUIRE_FALSE(engine);
  CHECK(plan.error().code() == ErrorCode::corrupt_file);
  CHECK(plan.error().message().find("2000000 tokens") != std::string::npos);
  CHECK(engine.error().text() == plan.error().text());
  CHECK(counted::peak < 1 << 20);
}

TEST_CASE("plan refuses what load refuses of a tokenizer") {
  for (const auto& edit : std::vector<std::function<void(GgufWriter&)>>{
           [](GgufWriter& w) { REQUIRE(w.set_string("tokenizer.ggml.model", "\xFFother")); },
           [](GgufWriter& w) { REQUIRE(w.set("tokenizer.ggml.model", 5u)); },
           [](GgufWriter& w) { set_tokenizer(w, {"a"}, {"nospace"}); },
           [](GgufWriter& w) { set_tokenizer(w, {}); },
           [](GgufWriter& w) { set_tokenizer(w, {"a"}); REQUIRE(w.set("tokenizer.ggml.bos_token_id", 1u)); },
           [](GgufWriter& w) { set_tokenizer(w, {"a"}); REQUIRE(w.set_string("tokenizer.ggml.pre", "?")); }}) {
    const auto bytes = with_tokenizer(edit);
    const auto file = ModelFile::from_memory(bytes);
    REQUIRE(file);
    const auto plan = Engine::plan(*file, {.threads = 1});
    const auto engine = Engine::load(*file, {.threads = 1});
    REQUIRE_FALSE(plan);
    REQUIRE_FALSE(engine);
    CHECK(engine.error().text() == plan.error().text());
    CHECK(Engine::load(*file, {.tokenizer = TokenizerUse::none, .threads = 1}));
    CHECK(Engine::plan(*file, {.tokenizer = TokenizerUse::none, .threads = 1}));
  }
}

TEST_CASE("a pre-tokenizer that the file does not name is warned of, listed, and refused by strict") {
  for (const bool named : {true, false}) {
    const auto bytes = with_tokenizer([&](GgufWriter& w) {
      set_tokenizer(w, {"a", "b"});
      if (named) REQUIRE(w.set_string("tokenizer.ggml.pre", "default"));
    });
    const auto file = ModelFile::from_memory(bytes);
    REQUIRE(file);
    std::string warnings;
    const auto log = [&](LogLevel level, std::string_view text) {
      if (level == LogLevel::warning) warnings += text;
    };
    const auto engine = Engine::load(*file, {.threads = 1, .log = log});
    REQUIRE(engine);
    CHECK((warnings.find("tokenizer.ggml.pre") != std::string::npos) == !named);
    bool listed = false;
    const auto uses = engine->explain();
    REQUIRE(uses);
    for (const KernelUse& use : *uses) {
      listed = listed || (use.kind == Operation::pre_tokenize && use.fallback.find("does not name") != std::string::npos);
    }
    CHECK(listed == !named);
    const auto strict = Engine::load(*file, {.threads = 1, .fallback = Fallback::refuse});
    if (!named) {
      REQUIRE_FALSE(strict);
      CHECK(strict.error().place() == "tokenizer.ggml.pre");
    }
  }
}

TEST_CASE("a stop that came before is seen before the tokenizer and the weights are read") {
  std::stop_source stop;
  stop.request_stop();
  const auto path = golden_dir() / "gpt2.gguf";
  const EngineOptions options{.threads = 1, .stop = stop.get_token()};
  CHECK(Engine::load(path, options).error().code() == ErrorCode::cancelled);
  CHECK(ModelFile::open(path, stop.get_token()).error().code() == ErrorCode::cancelled);
  const auto bytes = with_tokenizer([](GgufWriter& w) { set_tokenizer(w, {"a"}); });
  const auto file = ModelFile::from_memory(bytes);
  REQUIRE(file);
  const auto engine = Engine::load(*file, options);
  REQUIRE_FALSE(engine);
  CHECK(engine.error().message().find("tokenizer") != std::string::npos);
}

}  // namespace test_hostile_vocabulary
