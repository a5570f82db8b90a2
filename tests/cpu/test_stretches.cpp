// Every item of dealt work is taken once, whoever takes it and however many do at once.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "cpu/attention/stretches.hpp"

namespace test_stretches {

using tessera::cpu::Stretches;

namespace {

// Slots take in turns that chance decides: who took an item.
std::vector<int> taken_by(Stretches& stretches, std::size_t n, std::size_t slots, std::size_t grain, std::mt19937& random) {
  stretches.deal(n, slots);
  std::vector<int> by(n, -1);
  for (std::size_t ended = 0; ended < slots;) {
    const std::size_t slot = random() % slots;
    const auto items = stretches.take(slot, grain);
    REQUIRE(items.count <= grain);
    for (std::size_t i = items.first; i < items.first + items.count; ++i) {
      REQUIRE(by.at(i) == -1);
      by[i] = static_cast<int>(slot);
    }
    ended += items.count == 0 ? 1 : 0;  // then there is nothing left for anybody
    if (items.count == 0) REQUIRE(stretches.take((slot + 1) % slots, grain).count == 0);
  }
  return by;
}

}  // namespace

TEST_CASE("each item is given out once", "[stretches]") {
  std::mt19937 random(1);
  Stretches stretches(9);
  for (int round = 0; round < 3000; ++round) {
    const std::size_t n = random() % 200, slots = 1 + random() % 9, grain = 1 + random() % 10;
    CAPTURE(n, slots, grain);
    for (const int by : taken_by(stretches, n, slots, grain, random)) REQUIRE(by >= 0);
  }
}

TEST_CASE("a slot takes its own stretch in order, then the ends of the longest others", "[stretches]") {
  Stretches stretches(3);
  stretches.deal(12, 3);  // 0-3, 4-7, 8-11
  CHECK(stretches.take(1, 3).first == 4);
  const auto rest = stretches.take(1, 3);
  CHECK(rest.first == 7);
  CHECK(rest.count == 1);
  CHECK(stretches.take(0, 1).first == 0);
  const auto stolen = stretches.take(1, 3);  // of 1-3 and 8-11
  CHECK(stolen.first == 9);
  CHECK(stolen.count == 3);
  CHECK(stretches.take(2, 1).first == 8);
  CHECK(stretches.take(2, 2).first == 2);
  CHECK(stretches.take(0, 2).first == 1);
  for (const std::size_t slot : {0u, 1u, 2u}) CHECK(stretches.take(slot, 1).count == 0);
}

TEST_CASE("a slot that has no more makes the second half of the longest stretch its own", "[stretches]") {
  Stretches stretches(2);
  stretches.deal(40, 2);
  for (int i = 0; i < 20; ++i) REQUIRE(stretches.take(0, 1).first == static_cast<std::size_t>(i));
  for (int i = 20; i < 25; ++i) REQUIRE(stretches.take(1, 1).first == static_cast<std::size_t>(i));
  // 25-39: of 15 the last 8, in order, while slot 1 goes on with its 7.
  for (std::size_t i = 0; i < 7; ++i) {
    CHECK(stretches.take(0, 1).first == 32 + i);
    CHECK(stretches.take(1, 1).first == 25 + i);
  }
  CHECK(stretches.take(1, 1).first == 39);
  CHECK(stretches.take(0, 1).count == 0);
  CHECK(stretches.take(1, 1).count == 0);
}

TEST_CASE("each item is given out once to threads that race", "[stretches]") {
  constexpr std::size_t kSlots = 4, kItems = 501;
  Stretches stretches(kSlots);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::atomic<int>> taken(kItems);
    stretches.deal(kItems, kSlots);
    std::vector<std::thread> threads;
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      threads.emplace_back([&, slot] {
        for (auto items = stretches.take(slot, 1 + slot); items.count != 0; items = stretches.take(slot, 1 + slot)) {
          for (std::size_t i = 0; i < items.count; ++i) taken[items.first + i].fetch_add(1, std::memory_order_relaxed);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& count : taken) REQUIRE(count.load() == 1);
  }
}

}  // namespace test_stretches
