// Mixtures of experts: who goes where, and that a row gets the bits that its experts give it alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "catch.hpp"
#include "core/math_inline.hpp"
#include "cpu/experts/routing.hpp"
#include "cpu/instruction_sets.hpp"
#include "engine/load/make_backend.hpp"
#include "engine/load/plan.hpp"
#include "engine/models.hpp"
#include "formats/formats.hpp"
#include "formats/kept_blocks.hpp"
#include "sanitized.hpp"

namespace test_experts {

using namespace tessera;
using backend::Act;
using test::must;

namespace {

constexpr std::uint32_t kModel = 256, kDim = 256, kExperts = 5, kUsed = 2, kRows = 19;

std::vector<float> random_values(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct Chosen {
  std::vector<std::uint32_t> experts;
  std::vector<float> weights;
};

// As backend::Routing says it, by sorting.
Chosen chosen_by(const backend::Routing& how, std::vector<float> scores, const std::vector<float>& bias) {
  const auto softmax = [](std::vector<float>& x) {
    const float top = *std::max_element(x.begin(), x.end());
    float sum = 0;
    for (float& value : x) sum += value = math::inlined::exp(value - top);
    for (float& value : x) value /= sum;
  };
  if (how.kind == RoutingKind::softmax) softmax(scores);
  if (how.kind == RoutingKind::sigmoid) {
    for (float& score : scores) score = 1.0f / (1.0f + math::inlined::exp(-score));
  }
  std::vector<float> judged = scores;
  for (std::size_t i = 0; i < bias.size(); ++i) judged[i] += bias[i];
  const std::size_t size = scores.size() / how.n_groups;
  std::vector<std::pair<float, std::size_t>> groups;  // minus the sum of the two highest, or the highest
  for (std::size_t group = 0; group < how.n_groups; ++group) {
    std::vector<float> own(judged.begin() + static_cast<long>(group * size), judged.begin() + static_cast<long>((group + 1) * size));
    std::sort(own.rbegin(), own.rend());
    groups.emplace_back(how.group_score == GroupScore::best ? -own[0] : -(own[0] + own[1]), group);
  }
  std::stable_sort(groups.begin(), groups.end());
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < scores.size(); ++i) {
    for (std::size_t group = 0; group < how.n_used_groups; ++group) {
      if (groups[group].second == i / size) order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return judged[a] > judged[b]; });
  order.resize(how.n_used);
  std::sort(order.begin(), order.end());
  Chosen chosen{order, {}};
  for (const std::uint32_t expert : order) chosen.weights.push_back(scores[expert]);
  if (how.kind == RoutingKind::chosen_softmax) softmax(chosen.weights);
  if (how.renormalises) {
    const float sum = std::accumulate(chosen.weights.begin(), chosen.weights.end(), 0.0f);
    for (float& weight : chosen.weights) weight /= sum;
  }
  for (float& weight : chosen.weights) weight *= how.scale;
  return chosen;
}

// A backend with experts as a layer has them, and each of them by itself.
struct Rig {
  Rig(InstructionSet set, Numerics numerics, DType up_type, DType down_type)
      : machine(must(detail::make_backend(must(detail::resolve_options({.numerics = numerics, .instruction_set = set, .threads = 3}))))),
        cpu(*machine.backend) {
    const backend::MatrixShape router_shape{DType::f32, kExperts, kModel};
    const std::array all{backend::MatrixShape{up_type, kDim, kModel, kExperts}, backend::MatrixShape{up_type, kDim, kModel, kExperts},
                         backend::MatrixShape{down_type, kModel, kDim, kExperts}};
    std::uint64_t bytes = cpu.matrix_bytes(router_shape), staging = cpu.staging_bytes(router_shape);
    for (backend::MatrixShape shape : all) {
      bytes += cpu.matrix_bytes(shape);
      staging = std::max(staging, cpu.staging_bytes(shape));
      shape.count = 1;
      bytes += kExperts * cpu.matrix_bytes(shape);
    }
    bytes += 3 * (cpu.vector_bytes(kExperts * kDim) + kExperts * cpu.vector_bytes(kDim));
    must(cpu.reserve_weights(bytes, staging));
    router = add(router_shape, 1, 0);
    for (std::size_t i = 0; i < 3; ++i) {
      together[i] = add(all[i], static_cast<std::uint32_t>(i + 2), 0);
      const auto values = random_values(kExperts * kDim, static_cast<std::uint32_t>(i + 20));
      biases[i] = must(cpu.add_vector(values));
      for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
        alone[i].push_back(add({all[i].dtype, all[i].outputs, all[i].inputs}, static_cast<std::uint32_t>(i + 2), expert));
        alone_biases[i].push_back(must(cpu.add_vector(std::span(values).subspan(expert * kDim, kDim))));
      }
    }
    cpu.finish_loading();
    backend::WorkspaceShape shape{.rows = kRows, .output_rows = 1, .max_group = 1, .max_key_dim = 1, .max_value_dim = 1,
                                  .n_experts = kExperts, .used_experts = kUsed, .expert_inputs = kModel, .expert_dim = kDim};
    for (std::uint64_t& columns : shape.columns) columns = kDim;
    must(cpu.reserve_workspace(shape));
  }

  // Of a layer's experts, that which begins with expert `first`.
  const backend::Matrix* add(const backend::MatrixShape& shape, std::uint32_t seed, std::uint64_t first) {
    const auto values = random_values(kExperts * shape.outputs * shape.inputs, seed);
    std::vector<std::byte> file;
    formats::visit(shape.dtype, [&]<class F>(std::type_identity<F>) {
      file.resize(values.size() / F::block_values * F::block_bytes);
      for (std::size_t i = 0; i < values.size() / F::block_values; ++i) {
        test::encode_or_make_up<F>(values.data() + i * F::block_values, file.data() + i * F::block_bytes, static_cast<std::uint32_t>(i));
      }
    });
    const std::size_t row = file.size() / (kExperts * shape.outputs);
    return must(cpu.add_matrix(shape, [&](std::uint64_t at, std::uint64_t count, std::span<std::byte> out) {
      std::memcpy(out.data(), file.data() + (first * shape.outputs + at) * row, count * row);
      return Status();
    }));
  }

  void begin(std::span<const float> rows) {
    std::vector<backend::RowTable> tables;
    for (std::size_t i = 0; i < rows.size() / kModel; ++i) tables.push_back({.embedding = rows.data() + i * kModel});
    must(cpu.begin({.rows = tables, .sequences = {}, .ropes = {}}));
    must(cpu.embed(*router, 1.0f, Act::h));
    must(cpu.linear(*router, Act::h, Act::router));
  }
  std::vector<float> read(Act act, std::size_t columns, std::uint32_t row) {
    std::vector<float> values(columns);
    must(cpu.read(act, row, values));
    return values;
  }

  detail::Machine machine;
  backend::Backend& cpu;
  const backend::Matrix* router = nullptr;
  std::array<const backend::Matrix*, 3> together{};          // gate, up, down
  std::array<std::vector<const backend::Matrix*>, 3> alone;  // [expert]
  std::array<const backend::Vector*, 3> biases{};
  std::array<std::vector<const backend::Vector*>, 3> alone_biases;
};

}  // namespace

TEST_CASE("four scores in, two experts out", "[cpu]") {
  std::vector<std::uint32_t> experts(2);
  std::vector<float> weights(2);
  const auto check = [&](RoutingKind kind, float first, float second) {
    std::vector<float> logits = {1, 3, 2, 0};
    cpu::route({.kind = kind, .n_used = 2}, {}, {}, logits, experts, weights);
    CHECK(experts == std::vector<std::uint32_t>{1, 2});
    CHECK(weights[0] == Approx(first).epsilon(1e-5));
    CHECK(weights[1] == Approx(second).epsilon(1e-5));
  };
  check(RoutingKind::chosen_softmax, 0.7310586f, 0.2689414f);  // over the two alone
  check(RoutingKind::softmax, 0.6439143f, 0.2368828f);         // over all four
  check(RoutingKind::sigmoid, 0.9525741f, 0.8807971f);
}

TEST_CASE("a row takes the experts with the highest scores, with the weights that its routing says", "[cpu]") {
  std::uint32_t seed = 1;
  for (const RoutingKind kind : {RoutingKind::softmax, RoutingKind::chosen_softmax, RoutingKind::sigmoid}) {
    for (const std::uint32_t n_experts : {4u, 12u, 64u}) {
      for (const std::uint32_t n_used : {1u, 2u, 4u}) {
        for (const std::uint32_t n_groups : {1u, 2u}) {
          for (const bool has_bias : {false, true}) {
            for (const bool renormalises : {false, true}) {
              const backend::Routing how{.kind = kind, .n_used = std::min(n_used, n_experts / n_groups), .n_groups = n_groups,
                                         .n_used_groups = 1, .group_score = seed % 2 == 0 ? GroupScore::best : GroupScore::two_best,
                                         .renormalises = renormalises, .scale = renormalises ? 2.5f : 1.0f};
              auto logits = random_values(n_experts, ++seed);
              if (seed % 3 == 0) logits[n_experts - 1] = logits[0];  // the first of equals
              const auto bias = has_bias ? random_values(n_experts, ++seed) : std::vector<float>();
              const Chosen want = chosen_by(how, logits, bias);
              std::vector<std::uint32_t> experts(how.n_used);
              std::vector<float> weights(how.n_used);
              cpu::route(how, bias, {}, logits, experts, weights);
              REQUIRE(experts == want.experts);
              REQUIRE(std::memcmp(weights.data(), want.weights.data(), weights.size() * sizeof(float)) == 0);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("logits that are no numbers still give as many experts as a row takes, each once", "[cpu]") {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const RoutingKind kind : {RoutingKind::softmax, RoutingKind::chosen_softmax, RoutingKind::sigmoid}) {
      for (const std::size_t n_bad : {1u, 5u, 6u}) {
        std::vector<float> logits = random_values(6, 3);
        std::fill_n(logits.begin(), n_bad, bad);
        std::vector<std::uint32_t> experts(4);
        std::vector<float> weights(4);
        cpu::route({.kind = kind, .n_used = 4, .n_groups = 2, .n_used_groups = 2}, {}, {}, logits, experts, weights);
        CHECK(std::adjacent_find(experts.begin(), experts.end(), std::greater_equal<>()) == experts.end());
        CHECK(experts.back() < 6);
        logits[2] = -INFINITY;
        experts.resize(2);
        cpu::route({.kind = kind, .n_used = 2, .n_groups = 3, .n_used_groups = 1}, {}, {}, logits, experts, std::span(weights).first(2));
        CHECK(experts[0] + 1 == experts[1]);  // a group
        CHECK(experts[1] < 6);
      }
    }
  }
}

TEST_CASE("a row gets from its experts what they give it alone, whoever shares them", "[cpu]") {
  const backend::Routing how{.n_used = kUsed, .renormalises = true};
  const auto inputs = random_values(kRows * kModel, 5);
  for (const auto& [up_type, down_type] : {std::pair{DType::f32, DType::f32}, {DType::q8_0, DType::q4_0}, {DType::q4_k, DType::bf16},
                                             {DType::mxfp4, DType::iq4_nl}, {DType::q2_k, DType::iq2_xs}}) {
    for (const cpu::Support& support : cpu::supported_sets()) {
      if (!cpu::claim_set(support.set)) continue;
      for (const Numerics numerics : {Numerics::automatic, Numerics::reference}) {
        if (numerics == Numerics::reference && support.set != cpu::supported_sets().front().set) continue;  // the same on all
        if (tests::kSanitized && numerics == Numerics::reference && up_type != DType::q4_k) continue;
        INFO(to_string(support.set) << ", " << to_string(up_type) << " and " << to_string(down_type));
        Rig rig(support.set, numerics, up_type, down_type);
        const bool biased = numerics == Numerics::reference || up_type != DType::f32;
        for (const bool gated : {true, false}) {
          INFO((gated ? "gated" : "plain"));
          const ActivationKind activation = !gated ? ActivationKind::squared_relu
                                            : biased ? ActivationKind::clamped_swiglu : ActivationKind::silu;
          backend::Experts experts{.gate = gated ? rig.together[0] : nullptr, .up = rig.together[1], .down = rig.together[2],
                                   .activation = activation, .routing = how};
          if (biased) experts.gate_bias = rig.biases[0], experts.up_bias = rig.biases[1], experts.down_bias = rig.biases[2];
          const auto product = [&](std::size_t i, std::uint32_t expert, Act in, Act out) {
            must(rig.cpu.linear_bias(*rig.alone[i][expert], biased ? rig.alone_biases[i][expert] : nullptr, in, out));
          };
          std::vector<std::vector<float>> want;
          for (std::uint32_t row = 0; row < kRows; ++row) {
            rig.begin(std::span(inputs).subspan(row * kModel, kModel));
            const Chosen chosen = chosen_by(how, rig.read(Act::router, kExperts, 0), {});
            std::vector<float> sum(kModel, 0.0f);
            for (std::size_t i = 0; i < kUsed; ++i) {
              const std::uint32_t expert = chosen.experts[i];
              product(1, expert, Act::h, Act::up);
              if (gated) product(0, expert, Act::h, Act::gate);
              must(gated ? rig.cpu.activate_gated(activation, Act::gate, Act::up) : rig.cpu.activate(activation, Act::up));
              product(2, expert, Act::up, Act::linear);
              const auto given = rig.read(Act::linear, kModel, 0);
              for (std::size_t k = 0; k < kModel; ++k) sum[k] += chosen.weights[i] * given[k];
            }
            want.push_back(sum);
          }
          for (const std::uint32_t rows : {1u, 2u, kRows}) {
            rig.begin(std::span(inputs).first(rows * kModel));
            must(rig.cpu.experts(experts, Act::h, Act::router, Act::linear));
            for (std::uint32_t row = 0; row < rows; ++row) {
              const auto got = rig.read(Act::linear, kModel, row);
              REQUIRE(std::memcmp(got.data(), want[row].data(), kModel * sizeof(float)) == 0);
            }
          }
        }
      }
    }
  }
}

}  // namespace test_experts
