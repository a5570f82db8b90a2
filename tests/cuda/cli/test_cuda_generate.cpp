// generate on the emulated device, and where there is none.
#include "cli/program.hpp"

namespace test_cuda_generate {

using namespace tessera::tests::cli;

namespace {

const Args kEmulated = {"--backend", "cuda", "--cuda-driver", TESSERA_CUDA_EMULATOR, "--cuda-blas", TESSERA_CUDA_EMULATOR};
const Args kStory = {"-p", "Once upon a time", "-n", "12", "--greedy", "--print-tokens"};

Args with(Args args, const Args& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

void fails_with(int status, const Args& args, const std::string& what) {
  const Outcome got = run(args);
  INFO(got.err);
  CHECK(got.status == status);
  CHECK(got.out.empty());
  CHECK(is_one_complaint(got.err));
  CHECK(got.err.find(what) != std::string::npos);
}

}  // namespace

TEST_CASE("generate says on a GPU what it says on the CPU", "[cuda]") {
  if (lacks_program()) return;
  const Outcome cpu = run(with(kStory, {"--numerics", "reference", "--kv-dtype", "f32"}));
  REQUIRE(cpu.status == 0);
  for (const char* numerics : {"auto", "invariant"}) {
    const Outcome cuda = run(with(with(kStory, kEmulated), {"--numerics", numerics, "--kv-dtype", "f32"}));
    INFO(cuda.err);
    CHECK(cuda.status == 0);
    CHECK(cuda.out == cpu.out);
  }
}

TEST_CASE("what a GPU cannot be asked for is one line and status 1", "[cuda]") {
  if (lacks_program()) return;
  fails_with(1, with(with(kStory, kEmulated), {"--cuda-device", "3"}), "GPU 3 of 1");
  fails_with(1, with(with(kStory, kEmulated), {"--numerics", "bf16"}), "choose auto, fastest or invariant");
  fails_with(1, with(kStory, {"--backend", "cuda", "--cuda-driver", "/no/such/libcuda.so"}), "/no/such/libcuda.so");
  fails_with(2, with(kStory, {"--backend", "cuda", "--cuda-device", "one"}), "--cuda-device");
}

TEST_CASE("the plan for a GPU needs none", "[cuda]") {
  if (lacks_program()) return;
  const Outcome plan = run({"--backend", "cuda", "--plan"});
  CHECK(plan.status == 0);
  CHECK(plan.out.find("peak on the GPU") != std::string::npos);
}

}  // namespace test_cuda_generate
