// The options of the command line.
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
#include "machine_options.hpp"
#include "measure/limits.hpp"
#include "measure/speculating.hpp"
#include "serving/serving_options.hpp"
#include "shapes.hpp"

namespace tessera::bench {

using Counts = std::vector<std::uint32_t>;

struct Options {
  std::filesystem::path model;  // the model's file; empty: a made-up model of `shape`
  const Shape* shape = nullptr;
  tool::Target format;
  std::filesystem::path write;  // the file to which the made-up model is written, instead of measuring; empty: measure

  Counts prefill, batches, depths;
  bool decode = false;              // run the decode test: one sequence from an empty context
  std::uint32_t steps = 64;         // decode steps of the tests decode, batch and depth
  std::uint32_t batch_depth = 128;  // tokens that each sequence of a batch has before the test
  std::uint32_t repeat = 3;
  bool worker = false;              // true: the requests on standard input are measured (worker.hpp); the tests above only set the context

  SpeculateTest speculate;             // --speculate, instead of the tests

  bool traces = false;                 // instead of the tests, the trace of `serving` is served
  tool::ServingOptions serving;
  std::uint32_t trace_context = 0;     // tokens of the trace's longest request
  std::uint64_t kv_budget = 0;         // bytes of KV pages; 0: as many as the tests or requests need
  std::uint64_t kv_file = 0;           // bytes of a file for the KV pages of preempted requests; 0: no file

  std::uint32_t threads = 0;
  tool::Ranks ranks;
  KvOptions kv;
  BackendKind backend = BackendKind::cpu;
  CudaOptions cuda;
  InstructionSet instruction_set = InstructionSet::automatic;
  Numerics numerics = Numerics::automatic;
  std::uint64_t read_buffer = 0;  // bytes
  Limits limits;                  // limits of a device, if --limits gives them

  bool json = false;
  std::filesystem::path plot;

  // Returns the tokens of context that the longest test or request needs.
  [[nodiscard]] std::uint32_t context() const noexcept;
};

// Reads the command line. nullopt: --help or --version was given, and its text has been printed. Throws UsageError.
[[nodiscard]] std::optional<Options> parse_options(int argc, char** argv);

[[nodiscard]] std::string help_footer();  // the text of --help below the options

}  // namespace tessera::bench
