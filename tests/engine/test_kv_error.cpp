// What a KV type costs: stories that the default model tells with an F32 cache, read again with each type. The bounds are
// a few times what was measured (bench/results/numerics.md); TESSERA_TEST_FIGURES=1 prints the figures.
#include <cmath>
#include <cstdlib>

#include "engine/models.hpp"

namespace test_kv_error {

using namespace tessera;
using namespace tessera::test;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStories = 1, kTokens = 60;  // ten times as slow
#else
constexpr std::size_t kStories = 12, kTokens = 240;
#endif

// Natural logarithms of the probabilities of one row.
std::vector<double> log_probabilities(std::span<const float> logits) {
  const double maximum = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - maximum);
  std::vector<double> values;
  for (const float x : logits) values.push_back(static_cast<double>(x) - maximum - std::log(sum));
  return values;
}

struct KvError {
  double perplexity = 0.0;
  double kl = 0.0;         // mean of KL(F32 || type), nats a token
  double agreement = 0.0;  // share of tokens with the same first choice as F32
};

}  // namespace

TEST_CASE("each KV type's error on the default model is within its bound", "[kv-error]") {
  const auto path = std::filesystem::path(TESSERA_SOURCE_DIR) / "models/tessera-stories.gguf";
  const Engine engine = must(Engine::load(path, {.numerics = Numerics::reference}));
  const std::size_t vocab = engine.spec().vocab_size;
  const Token bos = must(engine.tokenizer().encode("")).at(0);
  const struct {
    DType dtype;
    double perplexity_ratio, kl, agreement;
  } bounds[] = {{DType::f16, 1.0002, 5e-8, 0.9985}, {DType::bf16, 1.0002, 5e-6, 0.9985}, {DType::int8, 1.0005, 5e-5, 0.995},
                {DType::fp8, 1.0005, 5e-4, 0.99}, {DType::int4, 1.005, 5e-3, 0.975}, {DType::k8v4, 1.005, 1.2e-3, 0.99}};

  std::vector<std::vector<Token>> stories;
  for (std::size_t i = 0; i < kStories; ++i) {
    Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
    must(session.append(std::array{bos}));
    Sampler sampler = sampling::chain().seed(100 + i).build();  // a fair draw from the model's own distribution
    must(session.generate(sampler, {.max_tokens = kTokens}, {}));
    stories.emplace_back(session.tokens().begin(), session.tokens().end());
  }
  const auto read = [&](const std::vector<Token>& story, DType dtype) {
    Session session = must(engine.session({.kv = {.dtype = dtype}}));
    return all_logits(session, story, story.size());
  };
  constexpr std::size_t kErrors = 1 + std::size(bounds);
  KvError errors[kErrors];  // F32 first
  std::size_t rows = 0;
  for (const auto& story : stories) {
    const std::vector<float> exact = read(story, DType::f32);
    for (std::size_t t = 0; t < kErrors; ++t) {
      const std::vector<float> logits = t == 0 ? exact : read(story, bounds[t - 1].dtype);
      for (std::size_t row = 0; row + 1 < story.size(); ++row) {
        const auto a = std::span(exact).subspan(row * vocab, vocab), b = std::span(logits).subspan(row * vocab, vocab);
        const std::vector<double> p = log_probabilities(a), q = log_probabilities(b);
        errors[t].perplexity -= q[static_cast<std::size_t>(story[row + 1])];
        for (std::size_t i = 0; i < vocab; ++i) errors[t].kl += std::exp(p[i]) * (p[i] - q[i]);
        errors[t].agreement += std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin() ? 1.0 : 0.0;
      }
    }
    rows += story.size() - 1;
  }
  for (KvError& error : errors) {
    error.perplexity = std::exp(error.perplexity / static_cast<double>(rows));
    error.kl /= static_cast<double>(rows);
    error.agreement /= static_cast<double>(rows);
  }
  for (std::size_t t = 0; t < kErrors; ++t) {
    const DType dtype = t == 0 ? DType::f32 : bounds[t - 1].dtype;
    INFO(to_string(dtype) << ": perplexity " << errors[t].perplexity << ", mean KL " << errors[t].kl << ", agreement "
                          << errors[t].agreement << " over " << rows << " tokens");
    if (std::getenv("TESSERA_TEST_FIGURES") != nullptr) {
      WARN(to_string(dtype) << ": perplexity " << errors[t].perplexity << ", mean KL " << errors[t].kl << ", agreement "
                            << errors[t].agreement << " over " << rows << " tokens");
    }
    if (t == 0) continue;
    CHECK(errors[t].perplexity <= errors[0].perplexity * bounds[t - 1].perplexity_ratio);
    CHECK(errors[t].kl <= bounds[t - 1].kl);
    CHECK(errors[t].agreement >= bounds[t - 1].agreement);
  }
}

}  // namespace test_kv_error
