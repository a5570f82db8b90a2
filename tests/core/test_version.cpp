#include <tessera/version.hpp>

#include "catch.hpp"

namespace test_version {

TEST_CASE("version() is the three numbers of the project") {
  const std::string version(tessera::version());
  CHECK_THAT(version, Catch::Matchers::Matches("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace test_version
