// What attention asks for ahead is what will be read: of this job further on, or the first keys of the next one. No
// result depends on it, so it is looked at here.
#define TESSERA_ISA ahead_test
#include "cpu/kernels/attention/operands.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "catch.hpp"

using namespace tessera;
using cpu::AttendJob;
using Halves = cpu::ahead_test::Operands<cpu::ahead_test::HeldHalves>;

namespace {

std::uint64_t first_seen(const AttendJob& job) {
  return job.window == 0 || job.position < job.window ? 0 : job.position + 1 - job.window;
}

// A job whose pages are there from its first visible key to its last, and nowhere else.
struct Sequence {
  explicit Sequence(std::mt19937& random) {
    job.page_tokens = std::size_t{16} << random() % 3;
    job.key_dim = job.value_dim = 64;
    job.query_group = 1 + random() % 4;
    job.rows = 1 + random() % 3;
    job.position = random() % (random() % 2 == 0 ? 100 : 1000);
    job.window = random() % 2 == 0 ? 0 : 1 + random() % 400;
    for (std::uint64_t page = 0; page <= job.position / job.page_tokens; ++page) {
      const bool seen = (page + 1) * job.page_tokens > first_seen(job);
      pages.push_back(seen ? memory.data() + page * kPage : nullptr);
    }
    job.pages = pages.data();
  }
  Sequence(const Sequence&) = delete;

  // Whether `at` is the place of a key that the job's first row sees.
  [[nodiscard]] bool has_key(const std::byte* at) const {
    for (std::uint64_t i = first_seen(job); i <= job.position; ++i) {
      if (Halves{job}.key(i) == at) return true;
    }
    return false;
  }

  static constexpr std::size_t kPage = 64 * 2 * 64 * 2;
  std::vector<std::byte> memory = std::vector<std::byte>(kPage * 64);
  std::vector<std::byte*> pages;
  AttendJob job;
};

}  // namespace

TEST_CASE("asked for ahead are keys that this job or the next one reads", "[cpu]") {
  std::mt19937 random(1);
  std::size_t of_next = 0, of_this = 0;
  for (int round = 0; round < 3000; ++round) {
    const Sequence one(random), two(random);
    AttendJob job = one.job;
    job.next = &two.job;
    const Halves operands{job};
    CAPTURE(job.page_tokens, job.position, job.window, two.job.page_tokens, two.job.position, two.job.window);
    for (std::uint64_t key = first_seen(job) / 16 * 16; key <= job.position; key += 16) {
      const auto [of, position] = operands.later(key, operands.keys_ahead);
      CHECK(position % 16 == 0);
      if (&of == &two.job) {
        REQUIRE(two.has_key(operands.later_key(key)));
        ++of_next;
      } else {
        REQUIRE(position <= job.position);
        REQUIRE((position == key || position == key + operands.keys_ahead));
        of_this += position != key ? 1 : 0;
      }
    }
    const bool few = job.rows * job.query_group <= 16;
    if (!few) REQUIRE(operands.later(job.position, operands.keys_ahead).position == job.position);
  }
  CHECK(of_next > 1000);
  CHECK(of_this > 1000);
}

TEST_CASE("attention asks as far ahead as fits, whole groups of keys", "[cpu]") {
  using namespace cpu::ahead_test;
  CHECK(Operands<HeldHalves>::ahead(64) == 128);
  CHECK(Operands<HeldF32>::ahead(64) == 64);
  CHECK(Operands<HeldBytes>::ahead(64) == 256);
  CHECK(Operands<HeldHalves>::ahead(256) == 32);
  CHECK(Operands<HeldF32>::ahead(4096) == 32);
}

TEST_CASE("a job as long as the next one asks for all the keys that nobody else asks for", "[cpu]") {
  std::mt19937 random(2);
  for (const std::uint64_t position : {0, 15, 16, 31, 70, 127, 128, 159, 160, 161, 300, 511}) {
    Sequence one(random), two(random);
    one.job.rows = one.job.query_group = 1;
    one.job.window = two.job.window = 0;
    one.job.position = two.job.position = position;
    one.job.next = &two.job;
    const Halves operands{one.job};
    std::set<std::uint64_t> asked;
    for (std::uint64_t key = 0; key <= position; key += 16) {
      const auto [of, at] = operands.later(key, operands.keys_ahead);
      if (&of == &two.job) asked.insert(at);
    }
    // What is behind these the next job asks for itself.
    CAPTURE(position);
    const std::uint64_t last = std::min<std::uint64_t>(position, operands.keys_ahead - 1);
    for (std::uint64_t key = 0; key <= last; key += 16) REQUIRE(asked.contains(key));
    CHECK(asked.size() <= (operands.keys_ahead + 2 * cpu::kKeyGroup) / 16);
  }
}
