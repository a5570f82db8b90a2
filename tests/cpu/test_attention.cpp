// Attention kernels of every instruction set that this machine runs equal the scalar reference of their family bit for
// bit: whatever the page size, the window, the rows of a task, the chunks that it takes, and what unwritten slots hold.
#include <cstring>
#include <random>
#include <span>

#include <tessera/extend/kv/records.hpp>
#include <tessera/kv/kv_cache.hpp>

#include "catch.hpp"
#include "cpu/attention/attention_plan.hpp"
#include "cpu/attention_families.hpp"
#include "cpu/instruction_sets.hpp"
#include "cpu/tile_emulator.hpp"
#include "kv/codecs.hpp"
#include "kv/rotation.hpp"
#include "sanitized.hpp"

namespace test_attention {

using namespace tessera;
using namespace tessera::test;

namespace {

// With sanitizers the reference takes ten times as long as the kernels. So only single rows are compared with the reference then, and more
// rows with the first set's. There are fewer types, one page size a shape, and few rows.
std::span<const DType> compared_types() {
  if (tests::kSanitized) return kFewKvTypes;
  return kKvTypes;
}

bool is_left_out(std::uint32_t page_tokens, std::uint64_t key_dim) { return tests::kSanitized && page_tokens != (key_dim % 2 == 0 ? 16u : 64u); }

std::vector<float> random_values(std::size_t n, std::uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

struct Shape {
  std::size_t key_dim, value_dim, group;
  kv::Values values = kv::Values::beside_keys;
};

HeldRow held(const KvView& kv, const kv::HeadPart& of, std::uint64_t position) {
  const DType type = held_as(kv.layout->dtype, of.part);
  if (has_scale(type)) {
    std::vector<std::byte> record(kv::record_bytes(*kv.layout, of));
    kv::read_records(kv, of, position, position + 1, record.data());
    return held_row(type, record, kv::dim_of(*kv.layout, of));
  }
  HeldRow row;
  row.values.resize(kv::dim_of(*kv.layout, of));
  kv::decode(kv, of, position, row.values.data());
  return row;
}

// A cache of one layer and two heads, the second of which is attended to. What no token wrote is all ones: NaN; of INT4 the largest
// multipliers, whose products are not exact.
struct Rig {
  Rig(DType dtype, std::uint32_t page_tokens, Shape of, std::uint64_t tokens, const std::vector<float>& k, const std::vector<float>& v)
      : shape(of) {
    const KvLayerShape shapes[] = {{.kv_heads = 2,
                                    .key_dim = static_cast<std::uint32_t>(of.key_dim),
                                    .value_dim = static_cast<std::uint32_t>(of.value_dim),
                                    .values = of.values}};
    auto made = KvCache::contiguous(*make_kv_layout(shapes, dtype, page_tokens), {.capacity = 4096}, system_memory());
    REQUIRE(made);
    cache.emplace(*std::move(made));
    REQUIRE(cache->reserve(tokens));
    const KvView view = cache->view();
    for (std::size_t page = 0; page * page_tokens < tokens; ++page) {
      const int unwritten = held_as(dtype, kv::KeyOrValue::value) == DType::int4 ? 0x7f : 0xff;
      std::memset(view.pages[0][page], unwritten, cache->layout().page_bytes());
    }
    for (std::uint64_t i = 0; i < tokens; ++i) {
      kv::encode(view, {0, kv::KeyOrValue::key, 1}, i, k.data() + i * of.key_dim);
      keys.push_back(held(view, {0, kv::KeyOrValue::key, 1}, i));
      if (of.values == kv::Values::in_keys) {
        values.push_back({.values = {keys.back().values.end() - static_cast<std::ptrdiff_t>(of.value_dim), keys.back().values.end()}});
        continue;
      }
      kv::encode(view, {0, kv::KeyOrValue::value, 1}, i, v.data() + i * of.value_dim);
      values.push_back(held(view, {0, kv::KeyOrValue::value, 1}, i));
    }
  }

  Shape shape;
  std::optional<KvCache> cache;
  std::vector<HeldRow> keys, values;
};

struct Rows {
  std::uint64_t position;
  std::size_t rows;
  std::uint64_t window;
  float scale = 0.3f;
  float softcap = 0.0f;
  std::vector<float> sinks = {};  // of the group's heads
  std::uint64_t globals = 0;
};

// [rows][group][value_dim]
std::vector<float> expected(const Rig& rig, const Rows& at, const std::vector<float>& q, Family family) {
  AttentionReference reference{family, rig.cache->layout().dtype, rig.shape.key_dim, rig.shape.value_dim, at.scale,
                               at.window, at.softcap, {}, at.globals};
  std::vector<float> out;
  for (std::size_t i = 0; i < at.rows * rig.shape.group; ++i) {
    if (!at.sinks.empty()) reference.sink = at.sinks[i % rig.shape.group];
    const auto row = reference(q.data() + i * rig.shape.key_dim, at.position + i / rig.shape.group, rig.keys, rig.values);
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

// The reference's results, computed with the first page size. The checks with other page sizes come in the same order, and get the same
// results. With sanitizers a result is empty until a kernel has filled it.
class Wanted {
 public:
  void next_page_size() { at_ = 0; }
  std::vector<float>& next(const Rig& rig, const Rows& at, const std::vector<float>& q, Family family) {
    if (at_ == results_.size()) results_.push_back(tests::kSanitized && at.rows > 1 ? std::vector<float>() : expected(rig, at, q, family));
    return results_[at_++];
  }

 private:
  std::vector<std::vector<float>> results_;
  std::size_t at_ = 0;
};

// Pages of which no row sees a key are not there.
cpu::AttendJob job_of(const Rig& rig, const Rows& at, const std::vector<float>& q, std::vector<float>& out, std::vector<float>& scratch,
                      std::vector<std::byte*>& pages) {
  const cpu::AttendScratch sizes = cpu::attend_scratch(at.rows * rig.shape.group, rig.shape.key_dim, rig.shape.value_dim);
  scratch.assign(sizes.bytes / 4 + 16, std::numeric_limits<float>::quiet_NaN());
  out.assign(at.rows * rig.shape.group * rig.shape.value_dim, -1.0f);
  const auto window = static_cast<std::uint32_t>(at.window);
  cpu::AttendJob job = cpu::attend_job(rig.cache->view(), {.layer = 0, .n_heads = 2, .window = window, .scale = at.scale, .softcap = at.softcap}, 1);
  if (!at.sinks.empty()) job.sinks = at.sinks.data();
  job.query_group = rig.shape.group;
  job.rows = at.rows;
  job.position = at.position;
  job.q = q.data();
  job.q_stride = rig.shape.group * rig.shape.key_dim;
  job.out = out.data();
  job.out_stride = rig.shape.group * rig.shape.value_dim;
  job.scratch = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  const std::uint64_t first = at.window == 0 || at.position < at.window ? 0 : at.position + 1 - at.window;
  pages.assign((at.position + at.rows - 1) / job.page_tokens + 1, nullptr);
  for (std::size_t page = first / job.page_tokens; page < pages.size(); ++page) pages[page] = job.pages[page];
  job.pages = pages.data();
  const auto chunks = cpu::chunks_of(at.position, at.position + at.rows, at.window);
  job.first_chunk = chunks.first;
  job.last_chunk = chunks.last;
  return job;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) ? !std::isnan(b[i]) : std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
  }
  return true;
}

struct Set {
  InstructionSet set;
  cpu::Kernels kernels;
};

std::vector<Set> sets() {
  std::vector<Set> all;
  for (const cpu::Support& support : cpu::supported_sets()) {
    const bool runs = cpu::claim_set(support.set) || emulated(support.set);
    if (runs) all.push_back({support.set, cpu::kernels_of(support.set)});
    else WARN("not tested here: " << to_string(support.set) << ", " << support.why_not);
  }
  return all;
}

// A job of the keys in front of the rows' windows, whole and in partial results, and one of the windows. Pages that no row sees are
// not there.
void check_globals(const Rig& rig, const Rows& at, const cpu::AttendJob& own, const cpu::Attend& kernel, std::vector<float>& out,
                   std::vector<float>& want, std::vector<std::byte*>& pages) {
  const std::size_t group = rig.shape.group, dim = rig.shape.value_dim;
  cpu::AttendJob globals = own, window = own;
  globals.globals = at.globals;
  const auto chunks = cpu::global_chunks_of(at.position + at.rows, at.window, at.globals);
  globals.first_chunk = chunks.first;
  globals.last_chunk = chunks.last;
  globals.is_last = false;
  const std::uint64_t before = at.position + at.rows > at.window ? at.position + at.rows - at.window : 0;
  for (std::size_t page = 0; page * own.page_tokens < std::min(before, at.globals); ++page) {
    pages[page] = rig.cache->view().pages[0][page];
  }
  std::vector<float> states(2 * at.rows * group, 0.0f);
  globals.states = window.states = states.data();
  globals.state_stride = window.state_stride = 2 * group;
  std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
  if (chunks.last != 0) kernel.run(globals);
  kernel.run(window);
  if (want.empty()) want = out;
  INFO(at.globals << " global keys, " << at.rows << " rows from " << at.position << ", window " << at.window << ", pages of "
                  << own.page_tokens << ", " << to_string(rig.cache->layout().dtype));
  REQUIRE(same(out, want));
  if (chunks.last == 0) return;
  const std::size_t row = group * cpu::partial_floats(dim), stride = at.rows * row;
  std::vector<float> partials(chunks.last * stride, -1.0f);
  globals.partials = partials.data();
  globals.partial_stride = stride;
  kernel.run(globals);
  std::fill(states.begin(), states.end(), 0.0f);
  for (std::size_t i = 0; i < at.rows; ++i) {
    cpu::merge_partials(partials.data() + i * row, stride, chunks.last, group, dim, states.data() + i * group * 2, out.data() + i * group * dim);
  }
  kernel.run(window);
  REQUIRE(same(out, want));
}

void check_family(const Rig& rig, const Rows& at, const std::vector<float>& q, Family family, std::vector<float>& want) {
  tile_unit();  // again in each test case, at whose start Catch2 takes SIGILL
  static const std::vector<Set> all = sets();
  std::vector<float> out, scratch;
  std::vector<std::byte*> pages;
  for (const Set& set : all) {
    const cpu::Attend& kernel = set.kernels.attend(family, cpu::kv_type_of(rig.cache->layout().dtype));
    // Sets with an instruction for it alone have pairs, and F16 rounded to bf16.
    const bool has_pairs = set.kernels.product(Family::bf16_pairs, cpu::PackedForm::bf16).few.run != nullptr;
    const bool rounds = family == Family::bf16 && rig.cache->layout().dtype == DType::f16;
    REQUIRE((kernel.run != nullptr) == (family == Family::bf16_pairs ? has_pairs : !rounds || set.kernels.has_tiles));
    if (kernel.run == nullptr) continue;
    cpu::AttendJob job = job_of(rig, at, q, out, scratch, pages);
    if (at.globals != 0) {
      check_globals(rig, at, job, kernel, out, want, pages);
      continue;
    }
    cpu::AttendJob next = job;  // what is asked for ahead changes nothing
    next.position = job.position / 2;
    if (job.position % 2 != 0 && job.window == 0) job.next = &next;
    kernel.run(job);
    INFO(to_string(set.set) << ", " << to_string(rig.cache->layout().dtype) << ", pages of "
                            << rig.cache->layout().page_tokens << ", dims " << rig.shape.key_dim << " and "
                            << rig.shape.value_dim << ", group " << rig.shape.group << ", " << at.rows << " rows from "
                            << at.position << ", window " << at.window);
    if (want.empty()) want = out;
    REQUIRE(same(out, want));
    std::vector<float> states(2 * at.rows * rig.shape.group);
    if (job.last_chunk - job.first_chunk > 1) {  // by two jobs, one after the other
      cpu::AttendJob earlier = job, later = job;
      earlier.states = later.states = states.data();
      earlier.state_stride = later.state_stride = 2 * rig.shape.group;
      earlier.last_chunk = later.first_chunk = job.first_chunk + 1;
      earlier.is_last = false;
      std::fill(out.begin(), out.end(), std::numeric_limits<float>::quiet_NaN());
      kernel.run(earlier);
      kernel.run(later);
      REQUIRE(same(out, want));
    }
    // Chunk by chunk, merged afterwards in two rounds.
    const std::size_t group = rig.shape.group, dim = rig.shape.value_dim, row = group * cpu::partial_floats(dim);
    const std::size_t stride = at.rows * row, chunks = job.last_chunk - job.first_chunk, half = (chunks + 1) / 2;
    std::vector<float> partials(chunks * stride, -1.0f), merged(out.size(), -1.0f);
    states.assign(2 * at.rows * group, 0.0f);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      cpu::AttendJob piece = job;
      piece.first_chunk = job.first_chunk + chunk;
      piece.last_chunk = piece.first_chunk + 1;
      piece.partials = partials.data() + chunk * stride;
      piece.partial_stride = stride;
      kernel.run(piece);
    }
    for (std::size_t i = 0; i < at.rows; ++i) {
      float* to = merged.data() + i * group * dim;
      float* state = states.data() + i * group * 2;
      cpu::merge_partials(partials.data() + i * row, stride, half, group, dim, state, to);
      cpu::merge_partials(partials.data() + half * stride + i * row, stride, chunks - half, group, dim, state, to);
      cpu::finish_partials(group, dim, job.sinks, state, to);
      for (std::size_t head = 0; kv::rotates(rig.cache->layout().dtype, kv::KeyOrValue::value) && head < group; ++head) {
        kv::rotate(to + head * dim, dim, kv::Turn::out);
      }
    }
    REQUIRE(same(merged, want));
  }
}

std::vector<Family> families_of(DType dtype) {
  if (dtype == DType::f16) return {Family::f32, Family::bf16x3, Family::bf16, Family::bf16_pairs};
  if (dtype == DType::f32) return {Family::f32};
  return {Family::bf16, Family::bf16_pairs};
}

void check(const Rig& rig, const Rows& at, const std::vector<float>& q, Wanted& wanted) {
  for (const Family family : families_of(rig.cache->layout().dtype)) check_family(rig, at, q, family, wanted.next(rig, at, q, family));
}
void check(const Rig& rig, const Rows& at, const std::vector<float>& q) {
  Wanted wanted;
  check(rig, at, q, wanted);
}

}  // namespace

TEST_CASE("four numbers in, four out: attention over two keys", "[cpu]") {
  // The row at position 1 sees both keys. Its query fits key 0 by 1 and key 1 by 0, so with a scale of ln 3 it takes three
  // quarters of value 0 and one quarter of value 1.
  const Rig rig(DType::f32, 16, Shape{4, 4, 1}, 2, {1, 0, 0, 0, 0, 1, 0, 0}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Rows at{.position = 1, .rows = 1, .window = 0, .scale = 1.0986123f};
  std::vector<float> out, scratch;
  std::vector<std::byte*> pages;
  for (const Set& set : sets()) {
    if (!cpu::claim_set(set.set)) continue;
    INFO(to_string(set.set));
    const std::vector<float> query = {1, 0, 0, 0};
    set.kernels.attend(Family::f32, cpu::kv_type_of(DType::f32)).run(job_of(rig, at, query, out, scratch, pages));
    for (std::size_t i = 0; i < 4; ++i) CHECK(out[i] == Approx(2.0 + static_cast<double>(i)).epsilon(1e-5));
  }
}

TEST_CASE("attention over global keys and a window equals its family's reference", "[cpu]") {
  std::uint32_t seed = 700;
  for (const DType dtype : compared_types()) {
    for (const Shape& shape : {Shape{64, 64, 4}, Shape{33, 70, 1}}) {
      const std::uint64_t tokens = 620;
      const auto k = random_values(tokens * shape.key_dim, seed + 1), v = random_values(tokens * shape.value_dim, seed + 2);
      const auto q = random_values(20 * shape.group * shape.key_dim, seed += 3);
      Wanted wanted;
      for (const std::uint32_t page_tokens : {16u, 64u}) {
        if (is_left_out(page_tokens, shape.key_dim)) continue;
        const Rig rig(dtype, page_tokens, shape, tokens, k, v);
        wanted.next_page_size();
        // In one chunk and in two, windows that see a part of the global keys, or of some rows all.
        for (const auto& [position, rows, window, globals] :
             {std::array<std::uint64_t, 4>{619, 1, 7, 1}, {600, 12, 40, 5}, {600, 9, 40, 300}, {590, 20, 300, 256}, {30, 12, 32, 3},
              {60, 12, 40, 25}, {500, 1, 300, 230}, {20, 5, 40, 8}}) {
          if (tests::kSanitized && rows > 12) continue;
          Rows at{position, static_cast<std::size_t>(rows), window};
          at.globals = globals;
          check(rig, at, q, wanted);
          if (globals == 5) {
            at.softcap = 3.0f;
            at.sinks = std::vector<float>(shape.group, 0.7f);
            check(rig, at, q, wanted);
          }
        }
      }
    }
  }
}

TEST_CASE("attention of every instruction set equals its family's reference", "[cpu]") {
  std::uint32_t seed = 1;
  for (const DType dtype : compared_types()) {
    for (const Shape& shape : {Shape{64, 64, 4}, Shape{64, 96, 1}, Shape{20, 12, 3}, Shape{33, 70, 1}, Shape{5, 3, 18}}) {
      const std::uint64_t tokens = 530;
      const auto k = random_values(tokens * shape.key_dim, seed + 1), v = random_values(tokens * shape.value_dim, seed + 2);
      const auto q = random_values(40 * shape.group * shape.key_dim, seed += 3);
      Wanted wanted;
      for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
        if (is_left_out(page_tokens, shape.key_dim)) continue;
        const Rig rig(dtype, page_tokens, shape, tokens, k, v);
        wanted.next_page_size();
        for (const Rows& at : {Rows{0, 1, 0}, Rows{0, 5, 0}, Rows{31, 2, 0}, Rows{250, 11, 0}, Rows{529, 1, 0}, Rows{500, 30, 0},
                               Rows{529, 1, 1}, Rows{529, 1, 273}, Rows{280, 17, 40}, Rows{500, 9, 256}}) {
          if (tests::kSanitized && at.rows > 12) continue;
          check(rig, at, q, wanted);
        }
      }
    }
  }
}

TEST_CASE("attention over extreme keys, values and queries equals its family's reference", "[cpu]") {
  const Shape shape{40, 24, 2};
  const std::uint64_t tokens = 300;
  const float extremes[] = {0.0f, -0.0f, 1e-40f, -1e-42f, 1e-38f, -3e-38f, 1e30f, -1e30f, 1e-20f, 6e4f, 1e-7f, -6e-8f};
  std::mt19937 random(7);
  for (const DType dtype : compared_types()) {
    auto k = random_values(tokens * shape.key_dim, 1), v = random_values(tokens * shape.value_dim, 2);
    auto q = random_values(8 * shape.group * shape.key_dim, 3);
    for (auto* values : {&k, &v, &q}) {
      for (float& x : *values) {
        if (random() % 4 == 0) x = extremes[random() % 12];
        if (dtype == DType::f16 && std::fabs(x) > 65504) x = 65504;
      }
    }
    const Rig rig(dtype, 32, shape, tokens, k, v);
    for (const float scale : {1.0f, 1e-30f, 1e-3f}) {
      check(rig, {0, 8, 0, scale}, q);
      check(rig, {255, 8, 0, scale}, q);
      check(rig, {299, 1, 70, scale}, q);
    }
    // Values that nearly vanish: signs of zeros, sums of denormals.
    for (float& x : v) x *= 1e-38f;
    const Rig small(dtype, 16, shape, tokens, k, v);
    check(small, {250, 8, 0, 1e-3f}, q);
    check(small, {290, 8, 60, 1.0f}, q);
  }
}

TEST_CASE("attention with a softcap and with sinks equals its family's reference", "[cpu]") {
  std::uint32_t seed = 100;
  for (const DType dtype : compared_types()) {
    for (const Shape& shape : {Shape{64, 64, 4}, Shape{20, 12, 3}, Shape{5, 70, 18}}) {
      const std::uint64_t tokens = 530;
      const auto k = random_values(tokens * shape.key_dim, seed + 1), v = random_values(tokens * shape.value_dim, seed + 2);
      const Rig rig(dtype, 16, shape, tokens, k, v);
      const auto q = random_values(17 * shape.group * shape.key_dim, seed += 3);
      std::vector<float> sinks = random_values(shape.group, seed);
      sinks[0] = 40.0f;   // outweighs all keys
      sinks[1] = -90.0f;  // weighs nothing
      for (const float softcap : {0.0f, 0.7f, 50.0f}) {
        if (tests::kSanitized && (softcap > 1.0f || shape.group == 3)) continue;
        for (Rows at : {Rows{0, 1, 0}, Rows{31, 2, 0}, Rows{250, 11, 0}, Rows{529, 1, 0}, Rows{529, 1, 273}, Rows{280, 17, 40}}) {
          if (tests::kSanitized && at.rows > 12) continue;
          at.softcap = softcap;
          const auto first = families_of(dtype).front();
          const auto bare = tests::kSanitized ? std::vector<float>() : expected(rig, at, q, first);
          if (softcap != 0.0f) check(rig, at, q);
          at.sinks = sinks;
          check(rig, at, q);
          if (!tests::kSanitized) CHECK(!same(bare, expected(rig, at, q, first)));
        }
      }
    }
  }
}

TEST_CASE("a value that is not finite reaches the rows that see it, and no others", "[cpu]") {
  const Shape shape{32, 16, 4};
  const std::uint64_t tokens = 300;
  for (const DType dtype : compared_types()) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      if (tests::kSanitized && std::isnan(bad)) continue;
      for (const std::uint64_t odd : {265, 267}) {  // of a pair the other one, at both ends of windows
        auto values = random_values(tokens * shape.value_dim, 4);
        values[odd * shape.value_dim + 5] = bad;
        const Rig rig(dtype, 32, shape, tokens, random_values(tokens * shape.key_dim, 1), values);
        const auto q = random_values(16 * shape.group * shape.key_dim, 3);
        check(rig, {260, 16, 0}, q);
        check(rig, {262, 16, 4}, q);
        check(rig, {264, 2, 0}, q);  // few queries
        check(rig, {267, 2, 2}, q);
      }
      const auto k = random_values(tokens * shape.key_dim, 1);
      auto v = random_values(tokens * shape.value_dim, 2);
      v[266 * shape.value_dim + 3] = bad;
      const Rig rig(dtype, 32, shape, tokens, k, v);
      const auto q = random_values(16 * shape.group * shape.key_dim, 3);
      check(rig, {260, 16, 0}, q);   // 260..275
      check(rig, {264, 16, 5}, q);   // 271 does not see it any more
      check(rig, {275, 16, 0}, q);
      const auto out = expected(rig, {260, 16, 0}, q, families_of(dtype).back());
      CHECK(std::isfinite(out[5 * shape.group * shape.value_dim + 3]));
      CHECK(!std::isfinite(out[6 * shape.group * shape.value_dim + 3]));
      auto bad_k = k;
      bad_k[266 * shape.key_dim + 3] = bad;
      const Rig other(dtype, 32, shape, tokens, bad_k, random_values(tokens * shape.value_dim, 2));
      check(other, {260, 16, 0}, q);
      check(other, {268, 1, 0}, q);
    }
  }
}

TEST_CASE("attention to values in keys equals its family's reference", "[cpu]") {
  std::uint32_t seed = 200;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const Shape& shape : {Shape{80, 64, 4, kv::Values::in_keys}, Shape{20, 12, 3, kv::Values::in_keys},
                               Shape{33, 27, 18, kv::Values::in_keys}, Shape{576, 512, 17, kv::Values::in_keys}}) {
      const std::uint64_t tokens = 530;
      const auto k = random_values(tokens * shape.key_dim, seed + 1);
      const auto q = random_values(30 * shape.group * shape.key_dim, seed += 3);
      Wanted wanted;
      for (const std::uint32_t page_tokens : {16u, 32u, 64u}) {
        if ((tests::kSanitized || shape.key_dim > 500) && page_tokens != 32) continue;
        const Rig rig(dtype, page_tokens, shape, tokens, k, {});
        wanted.next_page_size();
        for (const Rows& at : {Rows{0, 1, 0}, Rows{0, 5, 0}, Rows{31, 2, 0}, Rows{250, 11, 0}, Rows{529, 1, 0}, Rows{500, 30, 0},
                               Rows{529, 1, 1}, Rows{529, 1, 273}, Rows{280, 17, 40}}) {
          if ((tests::kSanitized || shape.key_dim > 500) && at.rows > 12) continue;
          if (tests::kSanitized && shape.key_dim > 500 && at.rows > 2) continue;
          check(rig, at, q, wanted);
        }
      }
    }
    const Shape shape{36, 16, 4, kv::Values::in_keys};
    for (const std::uint64_t odd : {265, 266, 267}) {
      auto k = random_values(300 * shape.key_dim, 1);
      k[odd * shape.key_dim + 25] = std::numeric_limits<float>::infinity();
      const Rig rig(dtype, 32, shape, 300, k, {});
      const auto q = random_values(16 * shape.group * shape.key_dim, 3);
      check(rig, {260, 16, 0}, q);
      check(rig, {262, 16, 4}, q);
      check(rig, {264, 2, 0}, q);
    }
  }
}

}  // namespace test_attention
