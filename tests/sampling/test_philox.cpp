// Philox4x32-10 against the known answers published with Random123 (kat_vectors).
#include <tessera/extend/sampling/philox.hpp>

#include "catch.hpp"

namespace test_philox {

using namespace tessera::sampling;

TEST_CASE("Philox4x32-10 gives the published answers") {
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t kOnes = 0xffffffff;
  CHECK(philox4x32_10({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("uniform numbers lie in [0, 1), fill it evenly and depend on every input") {
  constexpr double kFirst = philox_uniform(1, 2, 3, 4);
  STATIC_REQUIRE(kFirst >= 0.0);
  CHECK(philox_uniform(1, 2, 3, 4) == kFirst);
  CHECK(philox_uniform(0, 2, 3, 4) != kFirst);
  CHECK(philox_uniform(std::uint64_t{1} << 33, 2, 3, 4) != philox_uniform(0, 2, 3, 4));
  CHECK(philox_uniform(1, std::uint64_t{1} << 33, 3, 4) != philox_uniform(1, 0, 3, 4));
  CHECK(philox_uniform(1, 2, 0, 4) != kFirst);
  CHECK(philox_uniform(1, 2, 3, 0) != kFirst);
  int buckets[16] = {};
  for (std::uint64_t i = 0; i < 160'000; ++i) {
    const double u = philox_uniform(42, i, 0, 0);
    REQUIRE(u >= 0.0);
    REQUIRE(u < 1.0);
    ++buckets[static_cast<int>(u * 16)];
  }
  double chi = 0;
  for (const int count : buckets) chi += (count - 10'000.0) * (count - 10'000.0) / 10'000.0;
  CHECK(chi < 37.7);  // 15 degrees of freedom, 99.9 %
}

}  // namespace test_philox
