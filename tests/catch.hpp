// Catch2 for our tests: version 2 (Debian 12) and 3 (Ubuntu 24.04) under the same names.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {
using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::StartsWith;
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }
}  // namespace Catch
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& text) { return Contains(text); }
}  // namespace Catch::Matchers
#endif

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace tessera::tests {

// Ends the program if the caller is not the thread that runs the test cases: Catch2 keeps assertions and messages without a lock, and two
// threads with one each crash now and then. Other threads collect their results, and the test checks them after join().
inline void needs_test_thread(const char* file, int line) {
  static const std::thread::id test_thread = std::this_thread::get_id();
  if (std::this_thread::get_id() == test_thread) return;
  std::fprintf(stderr, "%s:%d: this assertion runs in a thread that the test started. Keep the result, and check it after join().\n", file, line);
  std::abort();
}
inline const bool kKnowsTestThread = (needs_test_thread(__FILE__, __LINE__), true);  // before any other thread starts

// Call and return from the test case when something that users may lack is absent. The reason reaches the summary of
// scripts/test; an executable in which nothing but skips happened counts as skipped.
void skip(const std::string& reason);

}  // namespace tessera::tests

#undef CHECK
#define CHECK(...)                                             \
  do {                                                      \
    ::tessera::tests::needs_test_thread(__FILE__, __LINE__); \
    INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__); \
  } while (false)
#undef CHECK_FALSE
#define CHECK_FALSE(...)                                             \
  do {                                                      \
    ::tessera::tests::needs_test_thread(__FILE__, __LINE__); \
    INTERNAL_CATCH_TEST("CHECK_FALSE", Catch::ResultDisposition::ContinueOnFailure | Catch::ResultDisposition::FalseTest, __VA_ARGS__); \
  } while (false)
#undef REQUIRE
#define REQUIRE(...)                                             \
  do {                                                      \
    ::tessera::tests::needs_test_thread(__FILE__, __LINE__); \
    INTERNAL_CATCH_TEST("REQUIRE", Catch::ResultDisposition::Normal, __VA_ARGS__); \
  } while (false)
#undef REQUIRE_FALSE
#define REQUIRE_FALSE(...)                                             \
  do {                                                      \
    ::tessera::tests::needs_test_thread(__FILE__, __LINE__); \
    INTERNAL_CATCH_TEST("REQUIRE_FALSE", Catch::ResultDisposition::Normal | Catch::ResultDisposition::FalseTest, __VA_ARGS__); \
  } while (false)
#undef INFO
#define INFO(message)                                      \
  ::tessera::tests::needs_test_thread(__FILE__, __LINE__); \
  INTERNAL_CATCH_INFO("INFO", message)
#undef CAPTURE
#define CAPTURE(...)                                       \
  ::tessera::tests::needs_test_thread(__FILE__, __LINE__); \
  INTERNAL_CATCH_CAPTURE(INTERNAL_CATCH_UNIQUE_NAME(capturer), "CAPTURE", __VA_ARGS__)
