// Views of logits, hidden states, keys and values as Eigen expressions: the library's numbers, at the library's addresses.
#include <tessera/eigen.hpp>

#include <limits>

#include <tessera/extend/kv/records.hpp>

#include "catch.hpp"
#include "engine/models.hpp"

namespace test_eigen {

using namespace tessera;
using test::must;

namespace {

const std::vector<Token> kPrompt{1, 5, 9, 2, 7, 3, 8, 4, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

Engine load() { return must(Engine::load(test::golden_dir() / "llama-gqa.gguf")); }

// Compares each key and value of a session with what kv::decode() says of it.
template <class Scalar>
void check_cache(const Session& session) {
  constexpr auto kGroup = static_cast<std::size_t>(eigen::KvScalar<Scalar>::group);
  const KvView view = session.kv().view();
  const auto& shape = view.layout->layer(1).shape;
  const KvLayerView layer = view.layer(1);
  for (std::size_t head = 0; head < shape.kv_heads; ++head) {
    for (std::uint64_t position = 0; position < kPrompt.size(); ++position) {
      const auto slot = layer.slot_of(position);
      std::vector<float> key(shape.key_dim), value(shape.value_dim);
      kv::decode(view, {1, kv::KeyOrValue::key, head}, position, key.data());
      kv::decode(view, {1, kv::KeyOrValue::value, head}, position, value.data());
      for (std::size_t d = 0; d < key.size(); ++d) {
        const auto keys = eigen::keys<Scalar>(layer, head, layer.page_of(position), d % kGroup);
        REQUIRE(static_cast<float>(keys(slot, static_cast<Eigen::Index>(d / kGroup))) == key[d]);
      }
      const auto values = eigen::values<Scalar>(layer, head, layer.page_of(position), slot % kGroup);
      for (std::size_t d = 0; d < value.size(); ++d) {
        REQUIRE(static_cast<float>(values(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(slot / kGroup))) == value[d]);
      }
    }
  }
  CHECK(eigen::keys<Scalar>(layer, 0, 0, kGroup).size() == 0);
}

}  // namespace

TEST_CASE("four numbers in, four out: logits and vectors as Eigen sees them") {
  const float numbers[] = {1, 2, 3, 4};
  CHECK(eigen::vector(numbers).sum() == 10.0f);
  const eigen::Matrix rows = eigen::matrix(Logits{numbers, 2});
  CHECK(rows(1, 0) == 3.0f);
  CHECK(rows.data() == numbers);  // not a copy
  CHECK(eigen::matrix(numbers, 2).row(0) == rows.row(0));
}

TEST_CASE("a session's logits and hidden states") {
  const Engine engine = load();
  Session session = must(engine.session());
  const Logits logits = must(session.append(kPrompt, {.logits = LogitsOf::all}));
  const eigen::Matrix all = eigen::matrix(logits);
  REQUIRE(all.rows() == static_cast<Eigen::Index>(kPrompt.size()));
  CHECK(all.row(all.rows() - 1).transpose() == eigen::vector(session.logits()));

  Session other = must(engine.session());
  Batch batch;
  REQUIRE(batch.add(other, kPrompt, Want::hidden));
  const Outputs outputs = must(engine.forward(batch));
  const eigen::Vector hidden = eigen::vector(outputs.row(batch.size() - 1));
  CHECK(hidden.size() == static_cast<Eigen::Index>(engine.spec().d_model));
  CHECK(hidden.squaredNorm() > 0.0f);
}

TEST_CASE("keys and values of F32, F16 and BF16 caches, paged and contiguous") {
  const Engine engine = load();
  for (const KvKind kind : {KvKind::paged, KvKind::contiguous}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::int8}) {
      CAPTURE(to_string(dtype));
      Session session = must(engine.session({.kv = {.dtype = dtype, .kind = kind}}));
      must(session.append(kPrompt));
      if (dtype == DType::f32) check_cache<float>(session);
      if (dtype == DType::f16) check_cache<Eigen::half>(session);
      if (dtype == DType::bf16) check_cache<Eigen::bfloat16>(session);
      // Another type than the layer's is no view, not a wrong one.
      if (dtype == DType::int8) CHECK(eigen::keys<float>(session.kv().view().layer(1), 0, 0).size() == 0);
    }
  }
}

TEST_CASE("a stage over an Eigen array changes what is drawn") {
  const std::vector<float> logits{1, 4, 3, 2};
  auto no_second = eigen::stage([](eigen::Array all) { all[1] = -std::numeric_limits<float>::infinity(); });
  auto sampler = sampling::chain().stage(no_second).greedy().build();
  CHECK(*sampler.sample(logits, {}, 0) == 2);
  auto only_last = eigen::stage([](eigen::Array all, std::span<const Token> tokens, const sampling::Context& context) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] != context.history.back()) all[static_cast<Eigen::Index>(i)] -= 100.0f;
    }
  });
  auto follows = sampling::chain().stage(only_last).greedy().build();
  CHECK(*follows.sample(logits, std::vector<Token>{0, 3}, 2) == 3);
  auto throws = sampling::chain().stage(eigen::stage([](eigen::Array) { throw 1; })).build();
  CHECK(throws.sample(logits, {}, 0).error().code() == ErrorCode::callback_failed);
}

}  // namespace test_eigen
