// Between begin() and end() the backend copies nothing to the device: a CUDA graph of a step could be captured.
#include "core/error.hpp"
#include "cuda/backend/rig.hpp"
#include "engine/forwarding_backend.hpp"
#include "engine/made_model.hpp"
#include "engine/wrapped_backend.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

// Counts the copies to the device that are asked for between begin() and end().
class UploadsCounted final : public ForwardingBackend {
 public:
  explicit UploadsCounted(std::unique_ptr<Backend> cuda) : ForwardingBackend(std::move(cuda)) {}

  std::uint64_t steps = 0, in_begin = 0, between = 0;

  [[nodiscard]] std::string_view name() const noexcept override { return "counted"; }
  Status begin(const backend::StepTables& tables) override {
    const std::uint64_t before = tessera_emulator_uploads();
    TESSERA_TRY_STATUS(inner().begin(tables));
    begun_ = tessera_emulator_uploads();
    in_begin += begun_ - before;
    return {};
  }
  Status end() override {
    between += tessera_emulator_uploads() - begun_;
    ++steps;
    return inner().end();
  }

 private:
  std::uint64_t begun_ = 0;
};

}  // namespace

TEST_CASE("a step uploads nothing behind begin()", "[cuda][uploads]") {
  if (on_real_device()) return;  // only the emulated device counts
  for (const char* name : {"llama-gqa", "gemma3"}) {  // gemma3 has layers of two windows
    const Engine engine = load_golden(name, on_cuda());
    auto& counted = wrap_backend<UploadsCounted>(engine);
    const auto tokens = made_tokens(70, engine.spec().vocab_size, 1);
    // Sequences of two KV types in a batch: a prompt whose last row alone is wanted, a row with an embedding of its own, and single rows.
    Session wide = must(engine.session({.kv = {.dtype = DType::f16}})), narrow = must(engine.session({.kv = {.dtype = DType::int8}}));
    must(wide.append(std::span<const Token>(tokens).first(40)));
    const std::vector<float> embedding(engine.spec().d_model, 0.25f);
    Batch batch;
    must(batch.add(wide, {.embedding = embedding, .want = Want::logits}));
    for (const Token token : std::span<const Token>(tokens).first(30)) must(batch.add(narrow, {.token = token}));
    must(batch.add(narrow, {.token = tokens[31], .want = Want::logits}));
    must(engine.forward(batch));
    Sampler sampler = sampling::chain().temperature(0.8f).seed(3).build();
    must(narrow.generate(sampler, {.max_tokens = 5, .end_of_generation = EndOfGeneration::ignore}, {}));
    CHECK(counted.steps >= 6);
    CHECK(counted.in_begin >= counted.steps);
    CHECK(counted.between == 0);
  }
}

