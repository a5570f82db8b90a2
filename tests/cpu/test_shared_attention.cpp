// Keys that several sequences of a step have in common are read once for all of them, and no row's bits show it: random
// forests of forks equal each of their rows alone. What becomes a task is looked at by itself.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <random>

#include <tessera/extend/core/memory.hpp>
#include <tessera/extend/kv/records.hpp>

#include "catch.hpp"
#include "cpu/attention/attention_plan.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/instruction_sets.hpp"
#include "engine/models.hpp"
#include "kv/held_types.hpp"
#include "sanitized.hpp"

namespace test_shared_attention {

using namespace tessera;
using backend::Act;
using test::must;

namespace {

struct Shape {
  std::uint32_t kv_heads, group, key_dim, value_dim;
  std::uint64_t window;  // of layer 1; layer 0 has none
};

// Sequences that are forks of each other, of two layers in two groups.
class Forest {
 public:
  Forest(DType dtype, std::uint32_t page_tokens, const Shape& of, std::mt19937& source)
      : shape(of), random(source), layout(must(make_layout(dtype, page_tokens, of))) {}

  // A fork of `parent` (an index, or none) that has its first `shared` tokens, whole pages of them, and `length` in all.
  void add(std::size_t parent, std::uint64_t shared, std::uint64_t length) {
    Sequence& sequence = sequences.emplace_back();
    const std::size_t kept = parent < sequences.size() - 1 ? shared / layout.page_tokens : 0;
    for (std::size_t group = 0; group < 2; ++group) {
      for (std::size_t page = 0; page < layout.pages(length); ++page) {
        if (page < kept) sequence.pages[group].push_back(sequences[parent].pages[group][page]);
        else sequence.pages[group].push_back(pages.emplace_back(layout.groups[group].page_bytes, std::byte{0xff}).data());
      }
      sequence.tables[group] = sequence.pages[group].data();
    }
    sequence.length = length;
    const KvView view{&layout, sequence.tables};
    std::vector<float> values(std::max(shape.key_dim, shape.value_dim));
    std::normal_distribution<float> normal;
    for (std::size_t layer = 0; layer < 2; ++layer) {
      for (std::size_t head = 0; head < shape.kv_heads; ++head) {
        for (const kv::KeyOrValue part : {kv::KeyOrValue::key, kv::KeyOrValue::value}) {
          for (std::uint64_t i = kept * layout.page_tokens; i < length; ++i) {
            for (float& x : values) x = normal(random);
            kv::encode(view, {.layer = layer, .part = part, .head = head}, i, values.data());
          }
        }
      }
    }
  }

  // The last `rows` positions of a sequence.
  void step(std::size_t sequence, std::size_t n_rows) {
    const std::uint64_t end = sequences[sequence].length;
    for (std::uint64_t position = end - n_rows; position < end; ++position) {
      rows.push_back({.sequence = static_cast<std::uint32_t>(sequence), .position = position});
    }
    // What no row sees any more is given back.
    const std::uint64_t seen = end - n_rows + 1 > shape.window ? end - n_rows + 1 - shape.window : 0;
    std::fill_n(sequences[sequence].pages[1].begin(), seen / layout.page_tokens, nullptr);
  }

  [[nodiscard]] std::vector<KvView> views() const {
    std::vector<KvView> all;
    for (const Sequence& sequence : sequences) all.push_back({&layout, sequence.tables});
    return all;
  }

  Shape shape;
  std::mt19937& random;
  KvLayout layout;
  std::vector<backend::RowTable> rows;

 private:
  struct Sequence {
    std::vector<std::byte*> pages[2];
    std::byte* const* tables[2];
    std::uint64_t length;
  };
  static Result<KvLayout> make_layout(DType dtype, std::uint32_t page_tokens, const Shape& of) {
    const KvLayerShape layer{of.kv_heads, of.key_dim, of.value_dim};
    const KvLayerNeeds layers[] = {{.shape = layer}, {.shape = layer, .window = of.window}};
    return make_kv_layout(layers, dtype, page_tokens);
  }
  std::deque<Sequence> sequences;
  std::deque<std::vector<std::byte>> pages;
};

Forest random_forest(DType dtype, std::uint32_t page_tokens, const Shape& shape, std::mt19937& random) {
  Forest forest(dtype, page_tokens, shape, random);
  const std::size_t n = 2 + random() % 9;
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t parent = i == 0 || random() % 8 == 0 ? n : random() % i;
    const std::uint64_t shared = parent == n ? 0 : random() % 4 == 0 ? lengths[parent] : random() % (lengths[parent] + 1);
    lengths.push_back(std::max<std::uint64_t>(shared + random() % (random() % 2 == 0 ? 30 : 700), 60));
    forest.add(parent, shared, lengths.back());
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < n; ++i) order.push_back(i);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::size_t i : order) {
    if (random() % 8 != 0) forest.step(i, random() % 3 != 0 ? 1 : random() % 4 != 0 ? 1 + random() % 4 : 50);
  }
  if (forest.rows.empty()) forest.step(0, 1);
  return forest;
}

// Says that it has some threads, and has none.
struct Threads final : Executor {
  explicit Threads(std::size_t n) : threads(n) {}
  [[nodiscard]] std::size_t concurrency() const noexcept override { return threads; }
  void parallel_for(std::size_t n, void (*task)(void*, std::size_t), void* context) noexcept override {
    for (std::size_t i = n; i > 0; --i) task(context, i - 1);
  }
  std::size_t threads;
};

constexpr std::uint32_t kMostRows = 600;
constexpr std::uint64_t kMostKeys = 8192;

struct Rig {
  Rig(InstructionSet set, Numerics numerics, std::size_t n, const Shape& of, std::uint32_t voters = 0)
      : shape(of), threads(n), cpu(threads, system_memory(), set, numerics) {
    const std::uint64_t columns = std::uint64_t{of.kv_heads} * of.group * of.key_dim;
    const backend::MatrixShape matrix{DType::f32, 1, columns};
    must(cpu.reserve_weights(cpu.matrix_bytes(matrix) + cpu.vector_bytes(of.kv_heads * of.group), cpu.staging_bytes(matrix)));
    table = must(cpu.add_matrix(matrix, [](std::uint64_t, std::uint64_t, std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte{0});
      return Status();
    }));
    std::vector<float> logits(of.kv_heads * of.group);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 5) - 1.5f;
    sinks = must(cpu.add_vector(logits));
    backend::WorkspaceShape workspace{.rows = kMostRows, .output_rows = 1, .max_heads = of.kv_heads * of.group,
                                      .max_group = of.group, .max_key_dim = of.key_dim, .max_value_dim = of.value_dim,
                                      .voters = voters, .vote_keys = kMostKeys};
    for (const Act act : {Act::q, Act::attn}) {
      workspace.columns[static_cast<std::size_t>(act)] =
          std::uint64_t{of.kv_heads} * of.group * (act == Act::q ? of.key_dim : of.value_dim);
    }
    must(cpu.reserve_workspace(workspace));
  }

  std::vector<float> attend(std::uint32_t layer, std::span<const backend::RowTable> rows, std::span<const KvView> views,
                            std::span<const backend::RowVotes> votes = {}) {
    must(cpu.begin({.rows = rows, .sequences = views, .ropes = {}, .votes = votes}));
    must(cpu.embed(*table, 1.0f, Act::q));
    const auto window = static_cast<std::uint32_t>(layer == 0 ? 0 : shape.window);
    // Layer 1 has what some models have.
    must(cpu.attention({.layer = layer, .n_heads = shape.kv_heads * shape.group, .window = window, .scale = 0.2f,
                        .softcap = layer == 0 ? 0.0f : 2.5f, .sinks = layer == 0 ? nullptr : sinks, .counts_votes = true},
                       Act::q, Act::attn));
    const std::size_t columns = std::size_t{shape.kv_heads} * shape.group * shape.value_dim;
    std::vector<float> out(rows.size() * columns);
    for (std::uint32_t i = 0; i < rows.size(); ++i) must(cpu.read(Act::attn, i, std::span(out).subspan(i * columns, columns)));
    must(cpu.end());
    return out;
  }

  Shape shape;
  Threads threads;
  cpu::CpuBackend cpu;
  const backend::Matrix* table = nullptr;
  const backend::Vector* sinks = nullptr;  // [heads]
};

// What a row's heads give to each key of its sequence, in units, from definitions.
std::vector<double> votes_of(const Forest& forest, std::uint32_t layer, const backend::RowTable& row, const KvView& view) {
  const Shape& shape = forest.shape;
  const std::uint64_t end = row.position + 1, begin = layer != 0 && end > shape.window ? end - shape.window : 0;
  std::vector<double> votes(end);
  std::vector<float> key(shape.key_dim);
  for (std::uint32_t head = 0; head < shape.kv_heads * shape.group; ++head) {
    std::vector<double> scores(end);
    double top = -1e30, sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      kv::decode(view, {.layer = layer, .part = kv::KeyOrValue::key, .head = head / shape.group}, i, key.data());
      for (std::size_t d = 0; d < key.size(); ++d) scores[i] += 0.2 * double{row.embedding[head * key.size() + d]} * double{key[d]};
      if (layer != 0) scores[i] = 2.5 * std::tanh(scores[i] / 2.5);
      top = std::max(top, scores[i]);
    }
    for (std::uint64_t i = begin; i < end; ++i) sum += std::exp(scores[i] - top);
    if (layer != 0) sum += std::exp(static_cast<double>(head % 5) - 1.5 - top);
    for (std::uint64_t i = begin; i < end; ++i) votes[i] += std::pow(std::exp(scores[i] - top) / sum, 2) * backend::kVoteUnits;
  }
  return votes;
}

struct Votes {
  explicit Votes(std::span<const backend::RowTable> rows) {
    for (std::uint32_t i = 0; i < rows.size(); ++i) lists.emplace_back(rows[i].position + 1);
    for (std::uint32_t i = 0; i < rows.size(); ++i) of_rows.push_back({.row = i, .of_keys = lists[i]});
  }
  std::deque<std::vector<std::uint64_t>> lists;
  std::vector<backend::RowVotes> of_rows;
};

// Votes of every row: as defined, the same in any step, and seen in no output.
void check_votes(Forest& forest, InstructionSet set, Numerics numerics, std::size_t threads) {
  Rig rig(set, numerics, threads, forest.shape, static_cast<std::uint32_t>(forest.rows.size()));
  const std::vector<KvView> views = forest.views();
  const std::size_t columns = std::size_t{forest.shape.kv_heads} * forest.shape.group;
  std::vector<float> queries(forest.rows.size() * columns * forest.shape.key_dim);
  std::normal_distribution<float> normal;
  for (float& x : queries) x = normal(forest.random);
  std::vector<backend::RowTable> rows = forest.rows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].embedding = queries.data() + i * columns * forest.shape.key_dim;
  for (const std::uint32_t layer : {0u, 1u}) {
    CAPTURE(to_string(set), to_string(forest.layout.dtype), to_string(numerics), threads, layer, rows.size());
    Votes votes(rows);
    const std::vector<float> with = rig.attend(layer, rows, views, votes.of_rows), without = rig.attend(layer, rows, views);
    REQUIRE(with.size() == without.size());
    REQUIRE(std::memcmp(with.data(), without.data(), with.size() * sizeof(float)) == 0);
    double most = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Votes alone(std::span(&rows[i], 1));
      rig.attend(layer, {&rows[i], 1}, views, alone.of_rows);
      REQUIRE(alone.lists[0] == votes.lists[i]);
      const std::vector<double> expected = votes_of(forest, layer, rows[i], views[rows[i].sequence]);
      for (std::size_t key = 0; key < expected.size(); ++key) {
        most = std::max(most, std::abs(expected[key] - static_cast<double>(votes.lists[i][key])) / (0.04 * expected[key] + static_cast<double>(columns)));
      }
    }
    CHECK(most < 1.0);  // queries and keys are rounded to bf16, weights to units
    // Rows may vote for one list.
    std::vector<std::uint64_t> together(kMostKeys), sum(kMostKeys);
    std::vector<backend::RowVotes> one_list;
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      one_list.push_back({.row = i, .of_keys = together});
      for (std::size_t key = 0; key < votes.lists[i].size(); ++key) sum[key] += votes.lists[i][key];
    }
    rig.attend(layer, rows, views, one_list);
    REQUIRE(together == sum);
  }
}

void check(Forest& forest, InstructionSet set, Numerics numerics, std::size_t threads) {
  Rig rig(set, numerics, threads, forest.shape);
  const std::vector<KvView> views = forest.views();
  const std::size_t columns = std::size_t{forest.shape.kv_heads} * forest.shape.group;
  std::vector<float> queries(forest.rows.size() * columns * forest.shape.key_dim);
  std::normal_distribution<float> normal;
  for (float& x : queries) x = normal(forest.random);
  std::vector<backend::RowTable> rows = forest.rows;
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].embedding = queries.data() + i * columns * forest.shape.key_dim;
  for (const std::uint32_t layer : {0u, 1u}) {
    const std::vector<float> together = rig.attend(layer, rows, views);
    std::vector<float> apart;
    for (const backend::RowTable& row : rows) {
      const std::vector<float> one = rig.attend(layer, {&row, 1}, views);
      apart.insert(apart.end(), one.begin(), one.end());
    }
    CAPTURE(to_string(set), to_string(forest.layout.dtype), forest.layout.page_tokens, threads, layer, rows.size(),
            forest.shape.group, forest.shape.window);
    REQUIRE(together.size() == apart.size());
    REQUIRE(std::memcmp(together.data(), apart.data(), apart.size() * sizeof(float)) == 0);
  }
}

cpu::AttentionPlan::Call plan_step(const Forest& forest, std::span<const KvView> views, std::uint32_t layer,
                                   std::size_t slots) {
  const auto window = static_cast<std::uint32_t>(layer == 0 ? 0 : forest.shape.window);
  return {.rows = forest.rows,
          .sequences = views,
          .shape = {.layer = layer, .n_heads = forest.shape.kv_heads * forest.shape.group, .window = window},
          .queries = 128,
          .kv_heads = forest.shape.kv_heads,
          .query_group = forest.shape.group,
          .slots = slots};
}

}  // namespace

TEST_CASE("four numbers in, four out: two forks attend to the page that they share", "[cpu]") {
  const Shape shape{.kv_heads = 1, .group = 1, .key_dim = 4, .value_dim = 4, .window = 100};
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    INFO(to_string(support.set));
    std::mt19937 random(1);
    Forest forest(DType::f32, 16, shape, random);
    forest.add(~std::size_t{0}, 0, 17);  // a page of 16 tokens, and a token
    forest.add(0, 16, 17);               // a fork: the same page, and a token of its own
    const std::vector<KvView> views = forest.views();
    // All keys are zeros, so a row takes the mean of the 17 values that it sees.
    const float key[] = {0, 0, 0, 0}, shared[] = {1, 2, 3, 4}, first[] = {18, 19, 20, 21}, second[] = {-16, -15, -14, -13};
    for (std::size_t sequence = 0; sequence < 2; ++sequence) {
      for (std::uint64_t i = 0; i < 17; ++i) {
        const float* value = i < 16 ? shared : sequence == 0 ? first : second;
        kv::encode(views[sequence], {.layer = 0, .part = kv::KeyOrValue::key, .head = 0}, i, key);
        kv::encode(views[sequence], {.layer = 0, .part = kv::KeyOrValue::value, .head = 0}, i, value);
      }
    }
    forest.step(0, 1);
    forest.step(1, 1);
    Rig rig(support.set, Numerics::automatic, 2, shape);
    CHECK(rig.attend(0, forest.rows, views) == std::vector<float>{2, 3, 4, 5, 0, 1, 2, 3});
  }
}

TEST_CASE("rows over shared pages equal each row alone", "[cpu]") {
  const Shape shapes[] = {{2, 1, 32, 32, 300}, {1, 4, 64, 64, 512}, {2, 7, 24, 40, 257}, {1, 20, 33, 17, 1000}, {3, 2, 16, 8, 40}};
  std::vector<InstructionSet> sets;
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (cpu::claim_set(support.set)) sets.push_back(support.set);
  }
  REQUIRE(!sets.empty());
  std::mt19937 random(11);
  for (int round = 0; round < (tests::kSanitized ? 8 : 40); ++round) {
    const Shape& shape = shapes[round % 5];
    Forest forest = random_forest(test::kKvTypes[round / 2 % std::size(test::kKvTypes)], 16u << random() % 3, shape, random);
    const std::size_t threads[] = {1, 2, 7, 64};
    for (const InstructionSet set : sets) {
      check(forest, set, round % 3 == 0 ? Numerics::invariant : Numerics::automatic, threads[random() % 4]);
    }
  }
}

TEST_CASE("rows that vote say what they attend to, and compute what they would without", "[cpu]") {
  const Shape shapes[] = {{2, 1, 32, 32, 300}, {1, 4, 64, 64, 512}, {2, 7, 24, 40, 257}};
  const DType types[] = {DType::f32, DType::f16, DType::bf16, DType::int8};
  std::mt19937 random(15);
  for (const cpu::Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    for (int round = 0; round < (tests::kSanitized ? 2 : 4); ++round) {
      Forest forest = random_forest(types[round % 4], 16u << random() % 3, shapes[round % 3], random);
      if (forest.rows.size() > 40) forest.rows.resize(40);
      for (const std::size_t threads : {1u, 7u}) check_votes(forest, support.set, Numerics::automatic, threads);
      if (round == 0) check_votes(forest, support.set, Numerics::reference, 2);
    }
  }
}

TEST_CASE("a step of a prompt and 32 samples of another one equals its rows alone", "[cpu]") {
  std::mt19937 random(12);
  Forest forest(DType::f16, 32, {1, 8, 16, 16, 600}, random);
  forest.add(100, 0, 1100);
  for (std::size_t i = 1; i <= 32; ++i) forest.add(0, 1100, 1101 + random() % 400);
  forest.add(100, 0, 300);
  for (std::size_t i = 1; i <= 16; ++i) forest.step(i, 1);
  forest.step(33, 300);
  for (std::size_t i = 17; i <= 32; ++i) forest.step(i, 1);
  for (const std::size_t threads : {1u, 2u, 16u}) check(forest, must(cpu::choose_set(InstructionSet::automatic)), Numerics::automatic, threads);
}

TEST_CASE("a plan takes each chunk that a row sees once, from left to right", "[cpu]") {
  std::mt19937 random(13);
  std::size_t shared = 0, levels = 0, before = 0;
  for (int round = 0; round < 200; ++round) {
    const Forest forest = random_forest(DType::int8, 16u << random() % 3, {1, 1 + static_cast<std::uint32_t>(random() % 9), 2, 2, 200 + random() % 600}, random);
    const std::vector<KvView> views = forest.views();
    for (const std::uint32_t layer : {0u, 1u}) {
      cpu::AttentionPlan plan;
      plan.reserve(forest.rows.size());
      const auto step = plan_step(forest, views, layer, std::size_t{1} << random() % 7);
      plan.start(step);
      std::map<std::size_t, cpu::Chunks> seen;  // of a row
      std::size_t phases = 0;
      bool ended = false;
      for (cpu::AttentionPhase phase; plan.next(phase); ++phases) {
        REQUIRE(!ended);
        ended = phase.is_last;
        if (!phase.is_last && phase.row_numbers == nullptr) ++before;
        for (const cpu::RowBlock& block : phase.blocks) {
          REQUIRE(block.rows <= phase.block_rows);
          REQUIRE(block.chunks.last - block.chunks.first <= phase.most_chunks);
          std::byte* const* first_pages = nullptr;
          for (std::size_t i = block.row; i < block.row + block.rows; ++i) {
            const std::size_t row = phase.row_numbers != nullptr ? phase.row_numbers[i] : i;
            const auto [at, is_new] = seen.try_emplace(row, block.chunks);
            if (!is_new) REQUIRE(std::exchange(at->second.last, block.chunks.last) == block.chunks.first);
            if (phase.row_numbers == nullptr) continue;
            // Whole chunks of what every row sees, in the same pages.
            const std::uint64_t end = forest.rows[row].position + 1, window = step.shape.window;
            REQUIRE(block.chunks.last * 256 < end);
            REQUIRE((window == 0 || block.chunks.first * 256 + window >= end));
            const KvLayerView kv = views[forest.rows[row].sequence].layer(layer);
            if (first_pages == nullptr) first_pages = kv.pages;
            for (std::uint64_t page = block.chunks.first * 256 / kv.page_tokens; page < block.chunks.last * 256 / kv.page_tokens; ++page) {
              REQUIRE(kv.pages[page] == first_pages[page]);
              REQUIRE(kv.pages[page] != nullptr);
            }
          }
        }
      }
      REQUIRE(ended);
      REQUIRE(plan.shares() == (phases > 1));
      shared += plan.shares() ? 1 : 0;
      levels = std::max(levels, phases);
      for (std::size_t row = 0; row < forest.rows.size(); ++row) {
        const std::uint64_t position = forest.rows[row].position;
        const cpu::Chunks all = cpu::chunks_of(position, position + 1, step.shape.window);
        REQUIRE(seen.at(row).first <= all.first);
        REQUIRE(seen.at(row).last >= all.last);
      }
    }
  }
  CHECK(shared > 100);
  CHECK(levels > 3);  // two of the tree, with what comes before and after
  CHECK(before > 10);
}

TEST_CASE("samples of one prompt read its chunks once, and branches theirs", "[cpu]") {
  std::mt19937 random(14);
  Forest forest(DType::int8, 32, {2, 4, 2, 2, 4096}, random);
  forest.add(100, 0, 1024);
  forest.add(0, 1024, 1024 + 600);                                          // 1
  for (std::size_t i = 2; i < 34; ++i) forest.add(i % 4 == 0 ? 1 : 0, i % 4 == 0 ? 1600 : 1024, 1700);
  for (std::size_t i = 2; i < 34; ++i) forest.step(i, 1);
  const std::vector<KvView> views = forest.views();
  cpu::AttentionPlan plan;
  plan.reserve(forest.rows.size());
  plan.start(plan_step(forest, views, 0, 1));
  REQUIRE(plan.shares());
  cpu::AttentionPhase phase;
  REQUIRE(plan.next(phase));
  REQUIRE(phase.blocks.size() == 1);
  CHECK(phase.blocks[0].rows == 32);
  CHECK((phase.blocks[0].chunks.first == 0 && phase.blocks[0].chunks.last == 4));
  REQUIRE(plan.next(phase));
  REQUIRE(phase.blocks.size() == 1);
  CHECK(phase.blocks[0].rows == 8);
  CHECK((phase.blocks[0].chunks.first == 4 && phase.blocks[0].chunks.last == 6));  // of 1600 tokens
  REQUIRE(plan.next(phase));
  REQUIRE(phase.blocks.size() == 32);
  for (std::size_t i = 0; i < 32; ++i) {
    CHECK(phase.blocks[i].row == i);
    CHECK(phase.blocks[i].chunks.first == ((i + 2) % 4 == 0 ? 6 : 4));
    CHECK(phase.blocks[i].chunks.last == 7);
  }
  CHECK(!plan.next(phase));
}

}  // namespace test_shared_attention
