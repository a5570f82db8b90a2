// What sessions of one engine do in many threads, and how it went.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include "engine/models.hpp"

namespace tessera::test {

// Catch's assertions are for one thread: others say here that something went wrong, and how often there was no room.
struct Outcome {
  std::atomic<int> wrong{0}, full{0};
  void expect(bool condition) {
    if (!condition) ++wrong;
  }
};

template <class Fn>
void in_threads(std::size_t n, Fn fn) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < n; ++i) threads.emplace_back([&fn, i] { fn(i); });
  for (std::thread& thread : threads) thread.join();
}

// The logits that a life's sessions gave, one append after another, until there was no room for one.
struct Gathered {
  Outcome& outcome;
  std::vector<float> logits{};
  bool full = false;

  void append(Session& to, std::span<const Token> part) {
    // A session that was truncated may have computed fewer tokens than it holds.
    const std::size_t tokens = to.tokens().size(), computed = to.position();
    const auto got = to.append(part);
    if (got) {
      logits.insert(logits.end(), got->values.begin(), got->values.end());
      return;
    }
    full = true;
    outcome.expect(got.error().code() == ErrorCode::cache_full);
    outcome.expect(to.tokens().size() == tokens && to.position() == computed);
  }
};

}  // namespace tessera::test
