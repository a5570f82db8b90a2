// The main function of every test executable. It exits with 0, 1, or 77 (ctest's "skipped"); Catch's own status is the
// number of failed assertions, which may be 77 too.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include <iostream>

namespace {

constexpr int kSkipped = 77;
int skips = 0;
bool asserted = false;

}  // namespace

namespace tessera::tests {

void skip(const std::string& reason) {
  ++skips;
  std::cout << "SKIPPED " << Catch::getResultCapture().getCurrentTestName() << ": " << reason << std::endl;
}

}  // namespace tessera::tests

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct Counter : ListenerBase {
  using ListenerBase::ListenerBase;
  void testRunEnded(const Catch::TestRunStats& run) override { asserted = run.totals.assertions.total() > 0; }
};
CATCH_REGISTER_LISTENER(Counter)

int main(int argc, char** argv) {
  if (Catch::Session().run(argc, argv) != 0) return 1;
  return skips > 0 && !asserted ? kSkipped : 0;
}
