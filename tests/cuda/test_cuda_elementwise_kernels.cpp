// The kernels that are neither products nor attention, on the emulator, with numbers that can be computed by hand.
#include <emulator/launch.hpp>

#include <cstdint>
#include <vector>

#include "catch.hpp"
#include "cuda/kernels/elementwise.hpp"

namespace test_cuda_elementwise_kernels {

using namespace tessera;        // NOLINT: a test
using namespace tessera::cuda;  // NOLINT

TEST_CASE("four numbers in, four out: norms, activations, sums and products") {
  const float x[] = {1, 2, 3, 4}, ones[] = {1, 1, 1, 1}, zeros[] = {0, 0, 0, 0}, signs[] = {-1, 0, 1, 2};
  std::vector<float> out(4);
  const auto run = [](const char* kernel, const auto& args) { emulator::launch(kernel, {1}, kRowThreads, 0, args); };
  const auto is = [&](std::vector<float> want) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(out[i] == Approx(want[i]).margin(1e-6));
  };
  run("rms_norm", NormArgs{x, ones, nullptr, out.data(), 4, 0.0f});  // x / sqrt((1 + 4 + 9 + 16) / 4)
  is({0.3651484f, 0.7302967f, 1.0954451f, 1.4605935f});
  run("layer_norm", NormArgs{x, ones, zeros, out.data(), 4, 0.0f});  // (x - 2.5) / sqrt(1.25)
  is({-1.3416408f, -0.4472136f, 0.4472136f, 1.3416408f});

  run("activate_silu", ActivateArgs{signs, out.data(), 4});  // x / (1 + exp(-x))
  is({-0.2689414f, 0, 0.7310586f, 1.7615942f});
  run("activate_squared_relu", ActivateArgs{signs, out.data(), 4});
  is({0, 0, 1, 4});
  out = {1, 2, 3, 4};
  run("activate_gated_squared_relu", ActivateArgs{signs, out.data(), 4});
  is({0, 0, 3, 16});

  out = {10, 20, 30, 40};
  run("add_rows", AddArgs{x, out.data(), 4, 4});
  is({11, 22, 33, 44});
  run("multiply_rows", AddArgs{x, out.data(), 4, 4});
  is({11, 44, 99, 176});
  run("scale_rows", ScaleArgs{out.data(), 4, 0.5f});
  is({5.5f, 22, 49.5f, 88});
  run("softcap_rows", SoftcapArgs{out.data(), 4, 1.0f});  // tanh(x)
  is({0.9999666f, 1, 1, 1});
}

TEST_CASE("four numbers in, four out: rows are taken by their numbers, and columns from the first on") {
  const float in[] = {1, 2, 3, 4, 5, 6, 7, 8};  // [4 rows][2]
  const std::uint32_t rows[] = {3, kNoRow};
  std::vector<float> out = {0, 0, -1, -2};
  emulator::launch("gather_rows", {2}, kRowThreads, 0, GatherArgs{rows, in, out.data(), 2, 2});
  CHECK(out == std::vector<float>{7, 8, -1, -2});  // the row without a number stays
  emulator::launch("take_columns", {2}, kRowThreads, 0, TakeColumnsArgs{in, out.data(), 2, 1, 4, 0});  // of [2 rows][4]
  CHECK(out == std::vector<float>{2, 3, 6, 7});
}

}  // namespace test_cuda_elementwise_kernels
