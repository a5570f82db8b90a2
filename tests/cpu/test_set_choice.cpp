// Which instruction set an engine takes, and what it says when the system refuses one.
#include "catch.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/instruction_set_tables.hpp"
#include "cpu/instruction_sets.hpp"
#include "cpu/kernel_families.hpp"
#include "cpu/thread_pool.hpp"

namespace test_set_choice {

using namespace tessera;
using cpu::Support;

namespace {

const std::vector<Support> kAllRun = {{InstructionSet::baseline, ""}, {InstructionSet::avx2, ""},
                                      {InstructionSet::avx512_vnni, ""}, {InstructionSet::amx, ""}};

bool given() { return true; }
bool refused() { return false; }

bool asked = false;
bool note_and_give() {
  asked = true;
  return true;
}

}  // namespace

TEST_CASE("the best set that the machine has is taken", "[isa]") {
  const auto best = cpu::claim_among(kAllRun, InstructionSet::automatic, given);
  REQUIRE(best);
  CHECK(best->set == InstructionSet::amx);
  CHECK(best->refused.empty());
  const std::vector<Support> old = {{InstructionSet::baseline, ""}, {InstructionSet::avx2, ""},
                                    {InstructionSet::avx512_vnni, "the CPU has no AVX512F"}, {InstructionSet::amx, "no AMX"}};
  const auto second = cpu::claim_among(old, InstructionSet::automatic, refused);
  REQUIRE(second);
  CHECK(second->set == InstructionSet::avx2);
  CHECK(second->refused.empty());  // what the CPU lacks is no fallback
}

TEST_CASE("tests name a set that does not run, and say whether the machine or the build lacks it", "[isa]") {
  std::vector<std::string> missing;
  const auto tables = test::tables_that_run(missing);
  for (const Support& support : cpu::supported_sets()) {
    if (support.set == InstructionSet::amx) continue;  // has tests of its own
    std::string name(to_string(support.set));
    std::ranges::replace(name, '-', '_');
    CAPTURE(name, support.why_not);
    const auto has_name = [&](const std::string& text) { return text.starts_with(name + ":"); };
    const auto told = std::ranges::find_if(missing, has_name);
    REQUIRE((told == missing.end()) == support.why_not.empty());
    if (support.why_not.empty()) continue;
    const bool by_build = support.why_not == "this build has no kernels for it";
    CHECK(*told == name + (by_build ? ": this build has no kernels for it" : ": this machine lacks it"));
  }
}

TEST_CASE("tiles that the system refuses are a fallback, or an error for who wants them", "[isa]") {
  const auto next = cpu::claim_among(kAllRun, InstructionSet::automatic, refused);
  REQUIRE(next);
  CHECK(next->set == InstructionSet::avx512_vnni);
  CHECK(next->refused.find("refuses") != std::string::npos);
  const auto wanted = cpu::claim_among(kAllRun, InstructionSet::amx, refused);
  REQUIRE_FALSE(wanted);
  CHECK(wanted.error().code() == ErrorCode::unsupported);
  CHECK(wanted.error().message().find("refuses") != std::string::npos);
  CHECK(wanted.error().message().find("baseline, avx2, avx512-vnni") != std::string::npos);

  auto pool = cpu::ThreadPool::create(1);
  REQUIRE(pool);
  const cpu::CpuBackend backend(**pool, system_memory(), InstructionSet::baseline, Numerics::automatic, next->refused);
  CHECK(backend.explain().front().fallback == next->refused);  // which strict turns into an error
}

TEST_CASE("tiles are asked for only by who will use them", "[isa]") {
  asked = false;
  REQUIRE(cpu::claim_among(kAllRun, InstructionSet::avx2, note_and_give));
  CHECK_FALSE(asked);
  REQUIRE(cpu::claim_among(kAllRun, InstructionSet::automatic, note_and_give));
  CHECK(asked);
}

// Chains whose sum is just below the least normal number, where "tiny before rounding" and "tiny after" part.
TEST_CASE("results near the least normal number are flushed as the reference says", "[kernels]") {
  for (const Support& support : cpu::supported_sets()) {
    if (!cpu::claim_set(support.set)) continue;
    if (support.set == InstructionSet::neon || support.set == InstructionSet::neon_dotprod) continue;  // docs/reference/numerics.md
    const cpu::Kernels kernels = cpu::kernels_of(support.set);
    for (const cpu::Family family : {cpu::Family::bf16, cpu::Family::bf16_pairs}) {
      for (const float c : {0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 3.5f, 4.0f, 5.0f, 64.0f}) {
        std::vector<float> x(32), w(32);
        x[0] = w[0] = 0x1p-63f;
        x[2] = -c * 0x1p-76f, w[2] = 0x1p-76f;
        float expected = 0;
        if (family == cpu::Family::bf16) {
          test::bf16_step(x.data(), w.data(), 32, expected);
        } else {
          for (std::size_t k = 0; k < 32; k += 2) {
            expected = test::flushing_fma(x[k + 1], w[k + 1], expected);
            expected = test::flushing_fma(x[k], w[k], expected);
          }
        }

        alignas(64) std::array<std::byte, 1024> panel{};
        for (std::size_t k = 0; k < 32; ++k) {
          const std::uint16_t bits = f32_to_bf16(w[k]);
          std::memcpy(panel.data() + k / 2 * 64 + k % 2 * 2, &bits, 2);
        }
        const cpu::Linear& kernel = kernels.product(family, cpu::PackedForm::bf16).of(1);
        if (kernel.run == nullptr) continue;  // pairs, without an instruction for them
        std::vector<std::byte> memory(kernel.scratch_bytes + 1024);
        auto* aligned = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        kernels.preparation(cpu::InputForm::bf16)(x.data(), 32, aligned, 1);
        float out = 7;
        kernel.run({.weights = panel.data(),
                    .panel_bytes = panel.size(),
                    .panels = 1,
                    .inputs = 32,
                    .outputs = 1,
                    .x = aligned,
                    .x_stride = cpu::row_layout(cpu::InputForm::bf16, 32).bytes,
                    .rows = 1,
                    .out = &out,
                    .out_stride = 1,
                    .scratch = aligned + 512});
        INFO(to_string(support.set) << ", c = " << c << ": " << out << ", expected " << expected);
        CHECK(std::memcmp(&out, &expected, sizeof out) == 0);
      }
    }
  }
}

}  // namespace test_set_choice
