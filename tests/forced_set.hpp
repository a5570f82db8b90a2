// The instruction set that a run of the tests forces on engines: forced_set.cpp.
#pragma once

namespace tessera::tests {

// An environment variable of the test programs: the name of the set that `automatic` is (docs/tests.md).
inline constexpr const char* kForcedSetVariable = "TESSERA_TEST_INSTRUCTIONS";

}  // namespace tessera::tests
