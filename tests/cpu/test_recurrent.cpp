// Recurrent layers of the CPU backend: however rows are dealt to steps, a row has the bits of the scalar reference, which
// goes through its sequence row by row; and the states that are kept are those behind their rows.
#include <array>
#include <cstring>
#include <map>
#include <random>

#include "backend/recurrent_state.hpp"
#include "catch.hpp"
#include "cpu/instruction_sets.hpp"
#include "cpu/reference_recurrent.hpp"
#include "engine/load/make_backend.hpp"
#include "engine/load/plan.hpp"
#include "engine/models.hpp"

namespace test_recurrent {

using namespace tessera;
using namespace tessera::test;
using backend::Act;

namespace {

constexpr std::uint32_t kHeads = 6, kGroups = 2, kKeys = 20, kValues = 24, kWidth = 4;
constexpr std::uint32_t kMixed = kHeads * kValues + 2 * kGroups * kKeys, kOut = kHeads * kValues;
constexpr std::size_t kTokens = 75, kPageTokens = 16;
constexpr std::uint64_t kOffset = backend::convolution_floats(kWidth, kMixed);
constexpr std::uint64_t kStateFloats = kOffset + kHeads * backend::head_state_floats(kKeys, kValues);

std::vector<float> values(std::size_t n, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.1f, 1.0f);
  std::vector<float> x(n);
  for (float& value : x) value = normal(random);
  return x;
}

// What a sequence's rows bring.
struct Sequence {
  explicit Sequence(std::uint32_t seed)
      : mixed(values(kTokens * kMixed, seed)), steps(values(kTokens * kHeads, seed + 1)), betas(values(kTokens * kHeads, seed + 2)) {}
  std::vector<float> mixed, steps, betas;
};

struct LayerWeights {
  std::vector<float> conv = values(kWidth * kMixed, 100), bias = values(kMixed, 101), step_bias = values(kHeads, 103),
                     skip = values(kHeads, 104), rate = values(kHeads, 102);
  LayerWeights() {
    for (float& x : rate) x = -std::fabs(x);
  }
};

enum class Kind { delta_blocks, delta_cyclic, scan };
std::size_t group_of(Kind kind, std::size_t head) { return kind == Kind::delta_cyclic ? head % kGroups : head / (kHeads / kGroups); }

// Outputs of all rows, and the state behind each, as the reference has them.
struct Expected {
  std::vector<float> out;
  std::vector<std::vector<float>> states;
};

Expected expected_of(Kind kind, const LayerWeights& w, const Sequence& s) {
  reference::Convolved conv{kWidth, kMixed, w.conv, w.bias, true};
  std::vector<reference::Head> heads(kHeads, reference::Head{kKeys, kValues});
  Expected all{std::vector<float>(kTokens * kOut), {}};
  const float scale = static_cast<float>(1 / std::sqrt(static_cast<double>(kKeys)));
  for (std::size_t t = 0; t < kTokens; ++t) {
    std::vector<float> row(s.mixed.begin() + static_cast<long>(t * kMixed), s.mixed.begin() + static_cast<long>((t + 1) * kMixed));
    conv.row(row.data());
    for (std::size_t h = 0; h < kHeads; ++h) {
      float* out = all.out.data() + t * kOut + h * kValues;
      const std::size_t group = group_of(kind, h) * kKeys;
      const float plus = reference::softplus(s.steps[t * kHeads + h] + w.step_bias[h]);
      const float decay = math::exp(w.rate[h] * plus);
      if (kind == Kind::scan) {
        const float *b = row.data() + kOut + group, *c = b + kGroups * kKeys;
        heads[h].scan(c, b, row.data() + h * kValues, decay, plus, w.skip[h], out);
        continue;
      }
      std::vector<float> q(kKeys), k(kKeys);
      reference::l2_norm(row.data() + group, scale, kKeys, q.data());
      reference::l2_norm(row.data() + kGroups * kKeys + group, 1.0f, kKeys, k.data());
      heads[h].delta_rule(q.data(), k.data(), row.data() + 2 * kGroups * kKeys + h * kValues, decay,
                          reference::sigmoid(s.betas[t * kHeads + h]), out);
    }
    std::vector<float> state(kStateFloats);
    std::copy(conv.seen.begin(), conv.seen.end(), state.begin());
    for (std::size_t h = 0; h < kHeads; ++h) {
      for (std::size_t i = 0; i < kKeys; ++i) {
        for (std::size_t j = 0; j < kValues; ++j) {
          const std::size_t at = h * backend::head_state_floats(kKeys, kValues) + j / 16 * kKeys * 16 + i * 16 + j % 16;
          state[kOffset + at] = heads[h].state[i * kValues + j];
        }
      }
    }
    all.states.push_back(std::move(state));
  }
  return all;
}

// One sequence's states, as a cache would keep them: the pages that are there, and those that a step fills.
struct States {
  std::map<std::size_t, std::vector<float>> pages;  // committed, by index
  std::uint64_t length = 0;

  KvStateTargets targets;
  std::map<std::size_t, std::vector<float>> filled;
  std::vector<std::vector<float>> drafts;
  std::vector<std::byte*> table;
  std::byte* const* group = nullptr;

  // A step of so many rows. With `keeps` every page's end is kept, else the last state alone; the last `n_drafts` rows one by one.
  KvView begin(const KvLayout& layout, std::uint64_t rows, bool keeps, std::uint64_t n_drafts) {
    filled.clear();
    drafts.assign(n_drafts, std::vector<float>(kStateFloats, NAN));
    const std::uint64_t end = length + rows - n_drafts;
    targets = {.length = length, .first_page = length / kPageTokens, .exact_from = n_drafts == 0 ? ~std::uint64_t{0} : end, .pages = {}, .drafts = {}};
    for (std::size_t page = targets.first_page; page <= (std::max<std::uint64_t>(end, 1) - 1) / kPageTokens; ++page) {
      const bool last = page == (std::max<std::uint64_t>(end, 1) - 1) / kPageTokens;
      if (keeps || last) filled[page].assign(kStateFloats, NAN);
      targets.pages.push_back(keeps || last ? reinterpret_cast<std::byte*>(filled[page].data()) : nullptr);
    }
    for (auto& draft : drafts) targets.drafts.push_back(reinterpret_cast<std::byte*>(draft.data()));
    table.assign(kTokens / kPageTokens + 2, nullptr);
    for (auto& [page, state] : pages) table[page] = reinterpret_cast<std::byte*>(state.data());
    group = table.data();
    return {.layout = &layout, .pages = &group, .targets = &targets};
  }

  // Each state that was kept is the one behind its row.
  void commit(std::uint64_t rows, const Expected& expected) {
    const std::uint64_t end = length + rows - drafts.size();
    for (auto& [page, state] : filled) {
      const std::uint64_t behind = std::min<std::uint64_t>((page + 1) * kPageTokens, end);
      if (behind > length) REQUIRE(std::memcmp(state.data(), expected.states[behind - 1].data(), kStateFloats * sizeof(float)) == 0);
      if (behind > length) pages[page] = std::move(state);
    }
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      REQUIRE(std::memcmp(drafts[i].data(), expected.states[end + i].data(), kStateFloats * sizeof(float)) == 0);
      pages[(end + i) / kPageTokens] = drafts[i];
    }
    length += rows;
  }
};

struct Rig {
  explicit Rig(InstructionSet set, std::uint32_t threads)
      : machine(must(tessera::detail::make_backend(must(tessera::detail::resolve_options({.instruction_set = set, .threads = threads}))))), cpu(*machine.backend) {
    const LayerWeights w;
    std::uint64_t bytes = 0, staging = 0;
    for (const std::uint64_t n : {std::uint64_t{kMixed}, std::uint64_t{kHeads}}) {
      bytes += cpu.matrix_bytes({DType::f32, 1, n});
      staging = std::max(staging, cpu.staging_bytes({DType::f32, 1, n}));
    }
    bytes += cpu.vector_bytes(kWidth * kMixed) + cpu.vector_bytes(kMixed) + 3 * cpu.vector_bytes(kHeads);
    must(cpu.reserve_weights(bytes, staging));
    const auto zeros = [](std::uint64_t, std::uint64_t, std::span<std::byte> out) {
      std::memset(out.data(), 0, out.size());
      return Status();
    };
    mixed = must(cpu.add_matrix({DType::f32, 1, kMixed}, zeros));
    heads = must(cpu.add_matrix({DType::f32, 1, kHeads}, zeros));
    conv = must(cpu.add_vector(w.conv)), bias = must(cpu.add_vector(w.bias));
    rate = must(cpu.add_vector(w.rate)), step_bias = must(cpu.add_vector(w.step_bias)), skip = must(cpu.add_vector(w.skip));
    cpu.finish_loading();
    backend::WorkspaceShape shape{.rows = 2 * kTokens, .output_rows = 1, .max_group = 1, .max_key_dim = 1, .max_value_dim = 1};
    for (std::uint64_t& columns : shape.columns) columns = kMixed;
    must(cpu.reserve_workspace(shape));
  }

  struct Piece {
    const Sequence* sequence;
    States* states;
    std::uint64_t rows;
  };
  // One step of these; the outputs of its rows.
  std::vector<float> step(Kind kind, std::span<const Piece> pieces, std::span<const KvView> views) {
    const auto fill = [&](const backend::Matrix& table, std::size_t columns, const std::vector<float> Sequence::*from, Act act) {
      std::vector<backend::RowTable> rows;
      for (const Piece& piece : pieces) {
        for (std::uint64_t i = 0; i < piece.rows; ++i) {
          rows.push_back({.embedding = (piece.sequence->*from).data() + (piece.states->length + i) * columns});
        }
      }
      must(cpu.begin({.rows = rows, .sequences = {}, .ropes = {}}));
      must(cpu.embed(table, 1.0f, act));
      must(cpu.end());
    };
    fill(*mixed, kMixed, &Sequence::mixed, Act::q);
    fill(*heads, kHeads, &Sequence::steps, Act::gate);
    fill(*heads, kHeads, &Sequence::betas, Act::k);
    std::vector<backend::RowTable> rows;
    for (std::uint32_t s = 0; s < pieces.size(); ++s) {
      for (std::uint64_t i = 0; i < pieces[s].rows; ++i) rows.push_back({.sequence = s, .position = pieces[s].states->length + i});
    }
    must(cpu.begin({.rows = rows, .sequences = views, .ropes = {}}));
    must(cpu.convolve({.weight = conv, .bias = bias, .silu = true}, Act::q));
    const backend::Recurrence how{.heads = kHeads, .groups = kGroups, .keys = kKeys, .values = kValues,
                                  .group_order = kind == Kind::delta_cyclic ? StateGroups::cyclic : StateGroups::blocks,
                                  .state_offset = kOffset, .rate = rate, .step_bias = step_bias, .skip = skip};
    must(kind == Kind::scan ? cpu.scan(how, Act::q, Act::gate, Act::k, Act::attn) : cpu.delta_rule(how, Act::q, Act::gate, Act::k, Act::attn));
    std::vector<float> out(rows.size() * kOut);
    for (std::uint32_t i = 0; i < rows.size(); ++i) must(cpu.read(Act::attn, i, std::span(out).subspan(i * kOut, kOut)));
    must(cpu.end());
    return out;
  }

  tessera::detail::Machine machine;
  backend::Backend& cpu;
  const backend::Matrix *mixed = nullptr, *heads = nullptr;
  const backend::Vector *conv = nullptr, *bias = nullptr, *rate = nullptr, *step_bias = nullptr, *skip = nullptr;
};

}  // namespace

TEST_CASE("recurrent rows have the reference's bits, however they are dealt to steps and batches", "[cpu]") {
  const std::array<KvLayerNeeds, 1> needs{{{.shape = {.state_bytes = kStateFloats * sizeof(float)}}}};
  const KvLayout layout = must(make_kv_layout(needs, DType::f32, kPageTokens));
  const LayerWeights weights;
  const Sequence first(1), second(50);
  for (const InstructionSet set : {InstructionSet::automatic, InstructionSet::baseline}) {
    if (set == InstructionSet::baseline && !cpu::has_kernels(set)) continue;  // a build for this machine alone
    for (const std::uint32_t threads : {1u, 3u}) {
      Rig rig(set, threads);
      for (const Kind kind : {Kind::delta_blocks, Kind::delta_cyclic, Kind::scan}) {
        const Expected of_first = expected_of(kind, weights, first), of_second = expected_of(kind, weights, second);
        std::mt19937 random(7);
        for (const std::uint64_t most : {std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{40}, std::uint64_t{kTokens}}) {
          States a, b;
          while (a.length < kTokens) {
            const std::uint64_t rows = most == 1 ? 1 : std::min<std::uint64_t>(1 + random() % most, kTokens - a.length);
            const std::uint64_t others = std::min<std::uint64_t>(random() % (most + 1), kTokens - b.length);
            const std::uint64_t n_drafts = random() % 3 == 0 ? random() % rows : 0;
            const Rig::Piece pieces[] = {{&first, &a, rows}, {&second, &b, others}};
            const KvView views[] = {a.begin(layout, rows, random() % 2 == 0, n_drafts),
                                    others != 0 ? b.begin(layout, others, random() % 2 == 0, 0) : KvView()};
            const auto out = rig.step(kind, std::span(pieces).first(others != 0 ? 2 : 1), views);
            CAPTURE(static_cast<int>(set), threads, static_cast<int>(kind), most, a.length, rows, others);
            REQUIRE(std::memcmp(out.data(), of_first.out.data() + a.length * kOut, rows * kOut * sizeof(float)) == 0);
            REQUIRE(std::memcmp(out.data() + rows * kOut, of_second.out.data() + b.length * kOut, others * kOut * sizeof(float)) == 0);
            a.commit(rows, of_first);
            if (others != 0) b.commit(others, of_second);
          }
        }
      }
    }
  }
}

}  // namespace test_recurrent
