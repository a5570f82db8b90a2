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

#include <string>

namespace tessera::tests {

// Call and return from the test case when something that users may lack is absent. The reason reaches the summary of
// scripts/test; an executable in which nothing but skips happened counts as skipped.
void skip(const std::string& reason);

}  // namespace tessera::tests
