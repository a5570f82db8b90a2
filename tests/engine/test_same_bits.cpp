// Contract 2: a row's logits depend on its own sequence's tokens alone. Every comparison here is of bits.
#include <cstring>
#include <random>

#include "engine/models.hpp"
#include "sanitized.hpp"

namespace test_same_bits {

using namespace tessera;
using namespace tessera::test;

namespace {

std::vector<Token> random_tokens(std::size_t n, std::uint32_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Token> tokens(n);
  for (Token& token : tokens) token = static_cast<Token>(random() % vocab);
  return tokens;
}

// What the sequence gives by itself: a fresh session, one append, one thread.
std::vector<float> reference_logits(const std::string& model, std::span<const Token> tokens, DType kv) {
  const Engine engine = load_golden(model, {.threads = 1, .step_rows = 1024});
  Session session = must(engine.session({.kv = {.dtype = kv}}));
  return all_logits(session, tokens, tokens.size());
}

}  // namespace

TEST_CASE("the same bits for every prompt chunking, number of threads and step size", "[bits]") {
  for (const std::string& model : representative_models()) {
    for (const DType kv : {DType::f32, DType::f16}) {
      DYNAMIC_SECTION(model << " with a KV cache of " << to_string(kv)) {
        const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
        const auto expected = reference_logits(model, tokens, kv);
        for (const std::uint32_t threads : {1u, 2u, 3u, 4u}) {
          if (tests::kSanitized && threads % 3 == 1) continue;  // 2 and 3: an even and an uneven division
          for (const std::uint32_t step_rows : {1u, 5u, 128u}) {
            const Engine engine = load_golden(model, {.threads = threads, .step_rows = step_rows});
            for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, tokens.size()}) {
              Session session = must(engine.session({.kv = {.dtype = kv}}));
              INFO(threads << " threads, steps of " << step_rows << ", chunks of " << chunk);
              CHECK(same_bits(all_logits(session, tokens, chunk), expected));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the same bits across the borders of key chunks and pages", "[bits]") {
  for (const std::string model : {"llama-long", "mistral-long"}) {
    for (const DType kv : {DType::f32, DType::f16}) {
      DYNAMIC_SECTION(model << " with a KV cache of " << to_string(kv)) {
        const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
        REQUIRE(tokens.size() > 512);
        const auto expected = reference_logits(model, tokens, kv);
        const Engine engine = load_golden(model, {.threads = 3, .step_rows = 50});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{33}, std::size_t{256}}) {
          Session session = must(engine.session({.kv = {.dtype = kv}}));
          INFO("chunks of " << chunk);
          CHECK(same_bits(all_logits(session, tokens, chunk), expected));
        }
      }
    }
  }
}

TEST_CASE("the same bits in a batch with other sequences", "[bits]") {
  for (const std::string& model : representative_models()) {
    for (const DType kv : {DType::f32, DType::f16}) {
      DYNAMIC_SECTION(model << " with a KV cache of " << to_string(kv)) {
        const Engine engine = load_golden(model, {.threads = 2, .step_rows = 16});
        const std::uint32_t vocab = engine.spec().vocab_size;
        // Sequences of different lengths advance together, a random number of rows each, in interleaved order.
        std::vector<std::vector<Token>> sequences;
        std::vector<Session> sessions;
        std::vector<std::vector<float>> got;
        for (std::uint32_t i = 0; i < 4; ++i) {
          sequences.push_back(random_tokens(9 + 5 * i, vocab, i));
          sessions.push_back(must(engine.session({.kv = {.dtype = i % 2 == 0 ? kv : DType::f32}})));
        }
        got.resize(sequences.size());
        std::vector<std::size_t> done(sequences.size(), 0);
        std::mt19937 random(7);
        for (bool left = true; left;) {
          left = false;
          Batch batch;
          std::vector<std::size_t> owner;
          for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < sequences.size(); ++i) {
              if (done[i] == sequences[i].size() || random() % 3 == 0) continue;
              must(batch.add(sessions[i], {.token = sequences[i][done[i]++], .embedding = {}, .want = Want::logits}));
              owner.push_back(i);
            }
          }
          for (std::size_t i = 0; i < sequences.size(); ++i) left = left || done[i] < sequences[i].size();
          const Outputs outputs = must(engine.forward(batch));
          for (std::size_t row = 0; row < owner.size(); ++row) {
            const auto logits = outputs.row(row);
            got[owner[row]].insert(got[owner[row]].end(), logits.begin(), logits.end());
          }
        }
        for (std::size_t i = 0; i < sequences.size(); ++i) {
          CHECK(same_bits(got[i], reference_logits(model, sequences[i], i % 2 == 0 ? kv : DType::f32)));
        }
      }
    }
  }
}

TEST_CASE("the same bits after truncating and writing again", "[bits]") {
  for (const std::string& model : representative_models()) {
    DYNAMIC_SECTION(model) {
      const Engine engine = load_golden(model);
      const auto tokens = read_tokens(golden_dir() / (model + ".tokens.txt"));
      const auto other = random_tokens(tokens.size(), engine.spec().vocab_size, 3);
      const auto expected = reference_logits(model, tokens, DType::f32);
      const std::size_t vocab = engine.spec().vocab_size;
      Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
      for (const std::size_t keep : {std::size_t{0}, std::size_t{1}, tokens.size() / 2}) {
        must(session.clear());
        if (keep > 0) must(session.append(std::span(tokens).first(keep)));
        must(session.append(std::span(other).first(tokens.size() - keep)));  // something else in the slots
        must(session.truncate(keep));
        const auto rest = all_logits(session, std::span(tokens).subspan(keep), 5);
        CHECK(same_bits(rest, std::span(expected).subspan(keep * vocab)));
      }
      Session copy = must(session.clone());
      const Token next[] = {tokens[0], tokens[1]};
      const Logits a = must(session.append(next));
      const Logits b = must(copy.append(next));
      CHECK(same_bits(a.values, b.values));
    }
  }
}

TEST_CASE("the host's floating-point state changes no bit and comes back", "[bits]") {
#if defined(__x86_64__)
  const auto tokens = read_tokens(golden_dir() / "llama-gqa.tokens.txt");
  const auto expected = reference_logits("llama-gqa", tokens, DType::f32);
  const Engine engine = load_golden("llama-gqa");
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  const unsigned before = __builtin_ia32_stmxcsr();
  const unsigned odd = before | 0x8040u | 0x6000u;  // flush to zero, denormals are zero, round towards zero
  __builtin_ia32_ldmxcsr(odd);
  const auto logits = session.append(tokens, {.logits = LogitsOf::all});
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  REQUIRE(logits);
  CHECK((after & 0xffc0u) == (odd & 0xffc0u));
  CHECK(same_bits(logits->values, expected));
#endif
}

}  // namespace test_same_bits
