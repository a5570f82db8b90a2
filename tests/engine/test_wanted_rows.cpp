// The last layer is computed for the rows of which something is wanted. Which others there are changes no bit: not of an
// output, not of the cache.
#include <array>
#include <cmath>
#include <random>

#include "engine/models.hpp"

namespace test_wanted_rows {

using namespace tessera;
using namespace tessera::test;

namespace {

struct Computed {
  std::vector<std::vector<float>> rows;  // empty: nothing was wanted
  std::vector<std::uint64_t> checksums;
};

template <class WantOf>
Computed compute(const Engine& engine, std::span<const Token> tokens, const ForwardOptions& options, WantOf want_of) {
  Session session = must(engine.session());
  Batch batch;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    must(batch.add(session, {.token = tokens[i], .embedding = {}, .want = want_of(i)}));
  }
  const Outputs outputs = must(engine.forward(batch, options));
  Computed computed;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    computed.rows.emplace_back(outputs.row(i).begin(), outputs.row(i).end());
  }
  computed.checksums = checksums(session);
  return computed;
}

}  // namespace

TEST_CASE("a row's output does not depend on what is wanted of others", "[bits]") {
  for (const std::string& model : representative_models()) {
    for (const std::uint32_t step_rows : {7u, 128u}) {
      DYNAMIC_SECTION(model << ", steps of " << step_rows) {
        const Engine engine = load_golden(model, {.step_rows = step_rows});
        auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
        tokens.resize(std::min<std::size_t>(tokens.size(), 40));
        for (const std::uint32_t last_layer : {1u, engine.spec().n_layers()}) {
          const ForwardOptions options{.last_layer = last_layer};
          const bool whole = last_layer == engine.spec().n_layers();
          const Computed hidden = compute(engine, tokens, options, [](std::size_t) { return Want::hidden; });
          const Computed logits = compute(engine, tokens, options, [&](std::size_t) { return whole ? Want::logits : Want::hidden; });
          const Computed embeddings = compute(engine, tokens, options, [&](std::size_t) { return whole ? Want::embedding : Want::hidden; });
          REQUIRE(hidden.checksums == logits.checksums);
          REQUIRE(hidden.checksums == embeddings.checksums);
          std::mt19937 random(3);
          for (int round = 0; round < 8; ++round) {
            std::vector<Want> wants(tokens.size(), Want::nothing);
            if (round == 1) wants.back() = Want::hidden;
            if (round == 2) wants.front() = whole ? Want::logits : Want::hidden;
            for (Want& want : wants) {
              if (round <= 2 || random() % 4 != 0) continue;
              want = !whole ? Want::hidden : std::array{Want::logits, Want::hidden, Want::embedding}[random() % 3];
            }
            const Computed some = compute(engine, tokens, options, [&](std::size_t i) { return wants[i]; });
            INFO("layers up to " << last_layer << ", round " << round);
            CHECK(some.checksums == hidden.checksums);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
              const std::vector<float> none;
              const std::vector<float>& expected =
                  wants[i] == Want::nothing ? none : wants[i] == Want::hidden ? hidden.rows[i] : wants[i] == Want::logits ? logits.rows[i] : embeddings.rows[i];
              CHECK(same_bits(some.rows[i], expected));
            }
          }
        }
      }
    }
  }
}

// RMS norm: embedding = hidden / rms(hidden) * weight, so that what is left of the hidden state is the same weight in every row.
TEST_CASE("an embedding is the hidden state behind the final norm", "[bits]") {
  const Engine engine = load_golden("llama-gqa");
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  const Computed hidden = compute(engine, tokens, {}, [](std::size_t) { return Want::hidden; });
  const Computed embeddings = compute(engine, tokens, {}, [](std::size_t) { return Want::embedding; });
  std::vector<double> weights;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    double squares = 0.0;
    for (const float value : hidden.rows[row]) squares += static_cast<double>(value) * value;
    const double rms = std::sqrt(squares / static_cast<double>(hidden.rows[row].size()) + static_cast<double>(engine.spec().norm_eps));
    for (std::size_t i = 0; i < hidden.rows[row].size(); ++i) {
      if (std::fabs(hidden.rows[row][i]) < 1e-2) continue;
      const double weight = embeddings.rows[row][i] * rms / hidden.rows[row][i];
      weights.resize(hidden.rows[row].size(), NAN);
      if (std::isnan(weights[i])) weights[i] = weight;
      CHECK(std::fabs(weight - weights[i]) < 1e-3);
    }
  }
  CHECK(std::ranges::any_of(weights, [](double weight) { return std::fabs(weight - 1.0) > 1e-2; }));
  Session session = must(engine.session());
  Batch batch;
  must(batch.add(session, {.token = 1, .embedding = {}, .want = Want::embedding}));
  const auto part = engine.forward(batch, {.last_layer = 1});
  REQUIRE_FALSE(part.has_value());
  CHECK(part.error().code() == ErrorCode::invalid_argument);
}
}  // namespace test_wanted_rows
