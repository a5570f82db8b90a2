// The last layer is computed for the rows of which something is wanted. Which others there are changes no bit: not of an
// output, not of the cache.
#include <random>

#include "engine/models.hpp"

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
          REQUIRE(hidden.checksums == logits.checksums);
          std::mt19937 random(3);
          for (int round = 0; round < 8; ++round) {
            std::vector<Want> wants(tokens.size(), Want::nothing);
            if (round == 1) wants.back() = Want::hidden;
            if (round == 2) wants.front() = whole ? Want::logits : Want::hidden;
            for (Want& want : wants) {
              if (round > 2 && random() % 4 == 0) want = whole && random() % 2 == 0 ? Want::logits : Want::hidden;
            }
            const Computed some = compute(engine, tokens, options, [&](std::size_t i) { return wants[i]; });
            INFO("layers up to " << last_layer << ", round " << round);
            CHECK(some.checksums == hidden.checksums);
            for (std::size_t i = 0; i < tokens.size(); ++i) {
              const std::vector<float> none;
              const std::vector<float>& expected =
                  wants[i] == Want::nothing ? none : wants[i] == Want::hidden ? hidden.rows[i] : logits.rows[i];
              CHECK(same_bits(some.rows[i], expected));
            }
          }
        }
      }
    }
  }
}
