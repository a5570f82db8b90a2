// The CPU backend's fused operations equal the plain ones they stand for, bit for bit: the same backend computes both.
#include <cstring>
#include <random>

#include <tessera/extend/core/memory.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "catch.hpp"
#include "cpu/instruction_sets.hpp"
#include "engine/kept_rows.hpp"
#include "engine/load/make_backend.hpp"
#include "engine/load/plan.hpp"
#include "formats/formats.hpp"
#include "formats/kept_blocks.hpp"

namespace test_fused {

using namespace tessera;
using backend::Act;
using test::must;

namespace {

constexpr std::uint32_t kModel = 256, kHeads = 6, kKvHeads = 2, kKeyDim = 16, kValueDim = 24, kRopeDim = 8, kFfn = 512,
                        kRows = 70;  // some: more than tasks add residuals of

std::vector<float> random_values(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

detail::Machine cpu_of(InstructionSet set, Numerics numerics = Numerics::automatic) {
  return must(detail::make_backend(must(detail::resolve_options({.numerics = numerics, .instruction_set = set, .threads = 3}))));
}

// A backend with weights for q, k and v and a feed-forward network, and a step of `rows` rows of two sequences.
struct Rig {
  explicit Rig(InstructionSet set, DType qk, DType v)
      : machine(cpu_of(set)), cpu(*machine.backend) {
    const backend::MatrixShape shapes[] = {
        {qk, kHeads * kKeyDim, kModel}, {qk, kKvHeads * kKeyDim, kModel}, {v, kKvHeads * kValueDim, kModel},
        {qk, kFfn, kModel}, {qk, kFfn, kModel}, {v, kModel, kFfn}};
    std::uint64_t bytes = 8 * cpu.vector_bytes(kFfn), staging = 0;
    for (const auto& shape : shapes) {
      bytes += cpu.matrix_bytes(shape);
      staging = std::max(staging, cpu.staging_bytes(shape));
    }
    must(cpu.reserve_weights(bytes, staging));
    std::uint32_t seed = 1;
    for (const auto& shape : shapes) weights.push_back(add(shape, seed++));
    bias = must(cpu.add_vector(random_values(kKvHeads * kValueDim, 7)));
    q_norm = must(cpu.add_vector(random_values(kKeyDim, 8)));
    k_norm = must(cpu.add_vector(random_values(kKeyDim, 9)));
    norm_weight = must(cpu.add_vector(random_values(kModel, 12)));
    norm_bias = must(cpu.add_vector(random_values(kModel, 13)));
    up_bias = must(cpu.add_vector(random_values(kFfn, 14)));
    down_bias = must(cpu.add_vector(random_values(kModel, 15)));
    cpu.finish_loading();
    backend::WorkspaceShape shape{.rows = kRows, .output_rows = 1, .ropes = 1, .rope_dims = kRopeDim, .max_heads = kHeads,
                                  .max_group = kHeads / kKvHeads, .max_key_dim = kKeyDim, .max_value_dim = kValueDim};
    for (std::uint64_t& columns : shape.columns) columns = kFfn;
    must(cpu.reserve_workspace(shape));
  }

  const backend::Matrix* add(const backend::MatrixShape& shape, std::uint32_t seed) {
    const auto values = random_values(shape.outputs * shape.inputs, seed);
    std::vector<std::byte> file;
    formats::visit(shape.dtype, [&]<class F>(std::type_identity<F>) {
      file.resize(values.size() / F::block_values * F::block_bytes);
      for (std::size_t i = 0; i < values.size() / F::block_values; ++i) {
        test::encode_or_make_up<F>(values.data() + i * F::block_values, file.data() + i * F::block_bytes, static_cast<std::uint32_t>(i));
      }
    });
    const std::size_t row = file.size() / shape.outputs;
    return must(cpu.add_matrix(shape, [&](std::uint64_t first, std::uint64_t count, std::span<std::byte> out) {
      std::memcpy(out.data(), file.data() + first * row, count * row);
      return Status();
    }));
  }

  // q, k and v of a new step whose rows are `inputs`.
  void begin(std::size_t rows, std::span<const KvCache> caches, std::span<const double> frequencies,
             std::span<const std::uint32_t> wanted = {}) {
    inputs = random_values(rows * kModel, 11);
    std::vector<backend::RowTable> tables;
    std::uint64_t next[2] = {0, 5};
    for (std::size_t i = 0; i < rows; ++i) {
      const auto sequence = static_cast<std::uint32_t>(i % 3 == 1);
      tables.push_back({.embedding = inputs.data() + i * kModel, .sequence = sequence, .position = next[sequence]++});
    }
    const KvView views[] = {caches[0].view(), caches[1].view()};
    const backend::RopeTable rope{.frequencies = frequencies};
    must(cpu.begin({.rows = tables, .sequences = views, .ropes = {&rope, 1}, .wanted = wanted}));
    must(cpu.embed(*weights[0], 1.0f, Act::x));
  }

  std::vector<float> read(Act act, std::size_t rows, std::size_t columns) {
    std::vector<float> values(rows * columns);
    for (std::uint32_t i = 0; i < rows; ++i) must(cpu.read(act, i, std::span(values).subspan(i * columns, columns)));
    return values;
  }

  detail::Machine machine;
  backend::Backend& cpu;
  std::vector<const backend::Matrix*> weights;
  const backend::Vector *bias = nullptr, *q_norm = nullptr, *k_norm = nullptr;
  const backend::Vector *norm_weight = nullptr, *norm_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;
  std::vector<float> inputs;
};

std::vector<KvCache> make_caches() {
  const KvLayerShape shape{.kv_heads = kKvHeads, .key_dim = kKeyDim, .value_dim = kValueDim};
  std::vector<KvCache> caches;
  for (int i = 0; i < 2; ++i) {
    caches.push_back(must(KvCache::contiguous(must(make_kv_layout({&shape, 1}, DType::f16)), {.capacity = 128}, system_memory())));
    must(caches.back().reserve(kRows + 5));
    caches.back().commit(kRows + 5);
  }
  return caches;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Everything that a step's projections leave behind.
struct Left {
  std::vector<float> q, k, v;
  std::uint64_t checksums[2];
  bool operator==(const Left& other) const {
    return same(q, other.q) && same(k, other.k) && same(v, other.v) && checksums[0] == other.checksums[0] &&
           checksums[1] == other.checksums[1];
  }
};

enum class Way { plain, fused };

enum class Norms { none, before_rope, behind_rope };

Left project(Rig& rig, Way way, std::size_t rows, Norms norms, std::span<const double> frequencies) {
  const std::vector<KvCache> caches = make_caches();
  rig.begin(rows, caches, frequencies);
  const backend::LinearPart parts[] = {
      {rig.weights[0], nullptr, Act::q}, {rig.weights[1], nullptr, Act::k}, {rig.weights[2], rig.bias, Act::v}};
  const backend::HeadShape shape{.layer = 0, .n_heads = kHeads, .n_kv_heads = kKvHeads, .q_norm = norms != Norms::none ? rig.q_norm : nullptr,
                                 .k_norm = norms != Norms::none ? rig.k_norm : nullptr,
                                 .norms_behind_rope = norms == Norms::behind_rope, .eps = 1e-5f, .rope = frequencies.empty() ? kNoRope : 0};
  if (way == Way::fused) {
    must(rig.cpu.linear_group(parts, Act::x));
    must(rig.cpu.rope_append(shape, Act::q, Act::k, Act::v));
  } else {
    for (const auto& part : parts) {
      must(rig.cpu.linear(*part.weight, Act::x, part.out));
      if (part.bias != nullptr) must(rig.cpu.add_bias(*part.bias, part.out));
    }
    must(rig.cpu.Backend::rope_append(shape, Act::q, Act::k, Act::v));
  }
  must(rig.cpu.end());
  return {rig.read(Act::q, rows, kHeads * kKeyDim), rig.read(Act::k, rows, kKvHeads * kKeyDim),
          rig.read(Act::v, rows, kKvHeads * kValueDim), {caches[0].checksum(0), caches[1].checksum(0)}};
}

struct Network {
  NormKind norm;
  ActivationKind activation;
  bool gated, biases;
};

// What a feed-forward network leaves behind: of its first products, and in x.
std::vector<std::vector<float>> feed_forward(Rig& rig, Way way, std::size_t rows, const Network& net) {
  const std::vector<KvCache> caches = make_caches();
  rig.begin(rows, caches, {});
  backend::Backend& b = rig.cpu;
  const auto given = [&](const backend::Vector* vector) { return net.biases ? vector : nullptr; };
  const auto refill = [&] {  // what the products use up
    must(b.linear_bias(*rig.weights[3], nullptr, Act::x, Act::up));
    must(b.linear_bias(*rig.weights[4], nullptr, Act::x, Act::gate));
  };
  const backend::Norm norm{net.norm, rig.norm_weight, given(rig.norm_bias), 1e-5f};
  const backend::LinearPart parts[] = {{rig.weights[3], given(rig.up_bias), Act::up},
                                       {rig.weights[2], nullptr, Act::v},  // of another format, so its input is too
                                       {rig.weights[4], nullptr, Act::gate}};
  const auto used = std::span(parts).first(net.gated ? 3 : 2);
  const backend::Activated activated{net.activation, net.gated ? Act::gate : Act::count, Act::up};
  std::vector<std::vector<float>> left;
  if (way == Way::fused) {
    must(b.norm_linear_group(norm, Act::x, Act::h, used));
  } else {
    must(b.norm(norm, Act::x, Act::h));
    for (const auto& part : used) {
      must(b.linear(*part.weight, Act::h, part.out));
      if (part.bias != nullptr) must(b.add_bias(*part.bias, part.out));
    }
  }
  for (const auto& part : used) left.push_back(rig.read(part.out, rows, part.out == Act::v ? kKvHeads * kValueDim : kFfn));
  if (way == Way::fused) {
    must(b.activated_linear_residual(activated, *rig.weights[5], given(rig.down_bias), Act::linear, Act::x));
  } else {
    must(net.gated ? b.activate_gated(net.activation, Act::gate, Act::up) : b.activate(net.activation, Act::up));
    must(b.linear(*rig.weights[5], Act::up, Act::linear));
    if (net.biases) must(b.add_bias(*rig.down_bias, Act::linear));
    must(b.add(Act::linear, Act::x));
  }
  left.push_back(rig.read(Act::x, rows, kModel));
  refill();
  if (way == Way::fused) {
    must(b.activated_linear(activated, *rig.weights[5], given(rig.down_bias), Act::h2));
  } else {
    must(b.Backend::activated_linear(activated, *rig.weights[5], given(rig.down_bias), Act::h2));
  }
  left.push_back(rig.read(Act::h2, rows, kModel));
  must(b.end());
  return left;
}

}  // namespace

TEST_CASE("four numbers in, four out: a norm with its product, an activation with its product and the residual", "[bits]") {
  const backend::MatrixShape shape{DType::f32, 4, 4};
  const float matrix[] = {1, 0, 0, 0,    // x0
                          0, 1, 0, 0,    // x1
                          1, 1, 1, 1,    // the sum
                          0, 2, 0, -1};  // 2 x1 - x3
  const std::vector<float> ones(4, 1.0f), x = {2, -2, 2, -2};
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    INFO(to_string(support.set));
    const detail::Machine machine = cpu_of(support.set);
    backend::Backend& b = *machine.backend;
    must(b.reserve_weights(b.matrix_bytes(shape) + b.vector_bytes(4), b.staging_bytes(shape)));
    const backend::Matrix* weights = must(b.add_matrix(shape, [&](std::uint64_t first, std::uint64_t, std::span<std::byte> out) {
      std::memcpy(out.data(), matrix + 4 * first, out.size());
      return Status();
    }));
    const backend::Vector* norm_weight = must(b.add_vector(ones));
    b.finish_loading();
    backend::WorkspaceShape workspace{.rows = 1, .output_rows = 1, .max_heads = 1, .max_group = 1, .max_key_dim = 4, .max_value_dim = 4};
    for (std::uint64_t& columns : workspace.columns) columns = 4;
    must(b.reserve_workspace(workspace));

    const auto caches = make_caches();
    const KvView view = caches[0].view();
    const backend::RowTable row{.embedding = x.data()};
    must(b.begin({.rows = {&row, 1}, .sequences = {&view, 1}, .ropes = {}}));
    must(b.embed(*weights, 1.0f, Act::x));
    std::vector<float> up(4), out(4);
    const backend::LinearPart part{weights, nullptr, Act::up};
    must(b.norm_linear_group({NormKind::rms, norm_weight, nullptr, 0.0f}, Act::x, Act::h, {&part, 1}));  // of {1, -1, 1, -1}
    must(b.read(Act::up, 0, up));
    CHECK(up == std::vector<float>{1, -1, 0, -1});
    const backend::Activated squared{ActivationKind::squared_relu, Act::count, Act::up};  // {1, 0, 0, 0}, whose product is {1, 0, 1, 0}
    must(b.activated_linear_residual(squared, *weights, nullptr, Act::linear, Act::x));
    must(b.read(Act::x, 0, out));
    CHECK(out == std::vector<float>{3, -2, 3, -2});
    must(b.end());
  }
}

TEST_CASE("fused feed-forward networks equal plain ones", "[bits]") {
  const Network networks[] = {{NormKind::rms, ActivationKind::silu, true, false},
                              {NormKind::rms, ActivationKind::gelu_tanh, true, true},
                              {NormKind::layer, ActivationKind::gelu_erf, false, true},
                              {NormKind::rms, ActivationKind::clamped_swiglu, true, true}};
  for (const auto& [up, down] : {std::pair(DType::f32, DType::q8_0), std::pair(DType::q4_0, DType::f32),
                                 std::pair(DType::q4_k, DType::q6_k), std::pair(DType::bf16, DType::f16)}) {
    for (const cpu::Support& support : cpu::supported_sets()) {
      if (!cpu::claim_set(support.set)) continue;
      Rig rig(support.set, up, down);
      for (const std::size_t rows : {1u, 2u, 9u, kRows}) {
        for (const Network& net : networks) {
          INFO(to_string(support.set) << ", " << to_string(up) << ", " << to_string(down) << ", " << rows << " rows, gated "
                                      << net.gated << ", biases " << net.biases);
          const auto fused = feed_forward(rig, Way::fused, rows, net), plain = feed_forward(rig, Way::plain, rows, net);
          for (std::size_t i = 0; i < plain.size(); ++i) CHECK(same(fused[i], plain[i]));
        }
      }
    }
  }
}

TEST_CASE("what is prepared for products is what an activation holds now", "[bits]") {
  const DType down = GENERATE(DType::q8_0, DType::f32);  // f32 is read as it is: nothing else is prepared meanwhile
  Rig rig(must(cpu::choose_set(InstructionSet::automatic)), DType::q8_0, down);
  const std::vector<KvCache> caches = make_caches();
  const backend::Norm norm{NormKind::rms, rig.norm_weight, nullptr, 1e-5f};
  const backend::LinearPart up{rig.weights[3], nullptr, Act::up}, q{rig.weights[0], nullptr, Act::q};
  for (const std::size_t rows : {1u, 9u, kRows}) {
    const auto q_of_x = [&] {
      must(rig.cpu.linear(*q.weight, Act::x, q.out));
      return rig.read(q.out, rows, kHeads * kKeyDim);
    };
    rig.begin(rows, caches, {});
    must(rig.cpu.linear(*up.weight, Act::x, up.out));
    const auto before = q_of_x();
    must(rig.cpu.norm_linear_group(norm, Act::x, Act::h2, {&up, 1}));  // prepares something else
    CHECK(same(q_of_x(), before));
    must(rig.cpu.linear_residual(*rig.weights[5], nullptr, Act::up, Act::linear, Act::x));  // x is another now
    const auto x = rig.read(Act::x, rows, kModel), after = q_of_x();
    CHECK(!same(after, before));
    rig.inputs = x;
    std::vector<backend::RowTable> tables;
    for (std::size_t i = 0; i < rows; ++i) tables.push_back({.embedding = x.data() + i * kModel, .sequence = 0, .position = i});
    const KvView views[] = {caches[0].view()};
    must(rig.cpu.begin({.rows = tables, .sequences = views, .ropes = {}}));
    must(rig.cpu.embed(*rig.weights[0], 1.0f, Act::x));
    CHECK(same(q_of_x(), after));
  }
}

TEST_CASE("a step of no rows does nothing", "[cpu]") {
  Rig rig(must(cpu::choose_set(InstructionSet::automatic)), DType::q8_0, DType::q8_0);
  const backend::Norm norm{NormKind::rms, rig.norm_weight, nullptr, 1e-5f};
  const backend::LinearPart up{rig.weights[3], rig.up_bias, Act::up};
  must(rig.cpu.begin({}));
  must(rig.cpu.norm_linear_group(norm, Act::x, Act::h, {&up, 1}));
  must(rig.cpu.activated_linear_residual({}, *rig.weights[5], rig.down_bias, Act::linear, Act::x));
  must(rig.cpu.linear_residual(*rig.weights[5], rig.down_bias, Act::up, Act::linear, Act::x));
  must(rig.cpu.rope_append({.layer = 0, .n_heads = kHeads, .n_kv_heads = kKvHeads}, Act::q, Act::k, Act::v));
  must(rig.cpu.end());
}

TEST_CASE("fused projections equal plain ones", "[bits]") {
  const std::vector<double> frequencies = {1.0, 0.1, 0.01, 0.001};
  for (const auto& [qk, v] : {std::pair(DType::f32, DType::f32), std::pair(DType::q4_0, DType::q4_0),
                              std::pair(DType::q4_k, DType::q6_k), std::pair(DType::q8_0, DType::f16)}) {
    for (const cpu::Support& support : cpu::supported_sets()) {
      if (!cpu::claim_set(support.set)) continue;
      Rig rig(support.set, qk, v);
      for (const std::size_t rows : {1u, 2u, 9u, kRows}) {
        for (const Norms norms : {Norms::none, Norms::before_rope, Norms::behind_rope}) {
          for (const bool rope : {false, true}) {
            const auto turned = rope ? std::span<const double>(frequencies) : std::span<const double>();
            INFO(to_string(support.set) << ", " << to_string(qk) << ", " << to_string(v) << ", " << rows << " rows, norms " << static_cast<int>(norms) << ", rope " << rope);
            const Left fused = project(rig, Way::fused, rows, norms, turned);
            CHECK(fused == project(rig, Way::plain, rows, norms, turned));
            if (norms == Norms::behind_rope && rows > 1) {  // position 0 does not turn
              CHECK((fused == project(rig, Way::fused, rows, Norms::before_rope, turned)) == !rope);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("rows that are kept go on as they would in a step of their own", "[bits]") {
  const std::vector<double> frequencies = {1.0, 0.1, 0.01, 0.001};
  Rig rig(must(cpu::choose_set(InstructionSet::automatic)), DType::q8_0, DType::q8_0);
  const std::vector<KvCache> caches = make_caches();
  const backend::AttentionShape shape{.layer = 0, .n_heads = kHeads, .scale = 0.25f};
  const auto attend = [&](std::span<const std::uint32_t> keep) {
    rig.begin(kRows, caches, frequencies, keep);
    const backend::LinearPart parts[] = {
        {rig.weights[0], nullptr, Act::q}, {rig.weights[1], nullptr, Act::k}, {rig.weights[2], rig.bias, Act::v}};
    must(rig.cpu.linear_group(parts, Act::x));
    must(rig.cpu.rope_append({.layer = 0, .n_heads = kHeads, .n_kv_heads = kKvHeads, .rope = 0}, Act::q, Act::k, Act::v));
    if (!keep.empty()) must(rig.cpu.keep_rows(std::array{Act::x, Act::q}));
    must(rig.cpu.attention(shape, Act::q, Act::attn));
    must(rig.cpu.linear(*rig.weights[2], Act::x, Act::up));
  };
  attend({});
  const std::size_t columns = kHeads * kValueDim, ups = kKvHeads * kValueDim;
  const auto all = rig.read(Act::attn, kRows, columns), all_up = rig.read(Act::up, kRows, ups);
  const std::vector<std::uint32_t> keep = {0, 4, 7, 8, 28, kRows - 1};
  attend(keep);
  const auto kept = rig.read(Act::attn, keep.size(), columns), kept_up = rig.read(Act::up, keep.size(), ups);
  for (std::size_t i = 0; i < keep.size(); ++i) {
    CHECK(std::memcmp(kept.data() + i * columns, all.data() + keep[i] * columns, columns * sizeof(float)) == 0);
    CHECK(std::memcmp(kept_up.data() + i * ups, all_up.data() + keep[i] * ups, ups * sizeof(float)) == 0);
  }
}

TEST_CASE("rows that are kept take all that follows rows with them", "[bits]") {
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    for (const Numerics numerics : {Numerics::automatic, Numerics::bf16, Numerics::reference}) {
      INFO(to_string(support.set) << ", " << to_string(numerics));
      const detail::Machine machine = cpu_of(support.set, numerics);
      test::check_kept_rows(*machine.backend);
    }
  }
}

}  // namespace test_fused
