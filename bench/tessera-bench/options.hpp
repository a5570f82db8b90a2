// What the command line asks for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/core/numerics.hpp>
#include <tessera/engine.hpp>

#include "format_mix.hpp"
#include "limits.hpp"
#include "serving_options.hpp"
#include "shapes.hpp"
#include "speculating.hpp"

namespace tessera::bench {

using Counts = std::vector<std::uint32_t>;

struct Options {
  std::filesystem::path model;  // empty: `shape`
  const Shape* shape = nullptr;
  tool::Target format;
  std::filesystem::path write;  // where the made-up model goes, instead of measuring; empty: measure

  Counts prefill, batches, depths;
  bool decode = false;              // the test of one sequence from an empty context
  std::uint32_t steps = 64;         // of decode, batch and depth
  std::uint32_t batch_depth = 128;  // tokens that each sequence of a batch has before
  std::uint32_t repeat = 3;
  bool worker = false;              // what standard input asks for is measured, within the context of these tests

  SpeculateTest speculate;             // instead of tests

  bool traces = false;                 // instead of tests, the requests of `serving` are served
  tool::ServingOptions serving;
  std::uint32_t trace_context = 0;     // tokens of the longest of them
  std::uint64_t kv_budget = 0;         // bytes of KV pages; 0: as many as are wanted
  std::uint64_t kv_file = 0;           // bytes of a file for those of preempted requests; 0: there is none

  std::uint32_t threads = 0;
  KvOptions kv;
  BackendKind backend = BackendKind::cpu;
  CudaOptions cuda;
  InstructionSet instruction_set = InstructionSet::automatic;
  Numerics numerics = Numerics::automatic;
  std::uint64_t read_buffer = 0;  // bytes
  Limits limits;                  // of a device, as far as the caller knows them

  bool json = false;
  std::filesystem::path plot;

  // Positions that the longest test, or request, needs.
  [[nodiscard]] std::uint32_t context() const noexcept;
};

// nullopt: --help or --version was asked for and has been printed. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

[[nodiscard]] std::string help_footer();  // what --help shows below the options

}  // namespace tessera::bench
