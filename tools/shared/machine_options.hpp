// The options about the machine, which all programs share. A wrong value is a usage error (exit status 2).
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tessera/backend/instruction_set.hpp>
#include <tessera/engine.hpp>
#include <tessera/extend/core/executor.hpp>
#include <tessera/version.hpp>

namespace tessera::tool {

inline constexpr std::uint32_t kMostThreads = 4096;

// Adds --version, which prints "PROGRAM 0.1.0".
inline void add_version(CLI::App& app, std::string_view program) {
  app.set_version_flag("--version", fmt::format("{} {}", program, version()), "Print the version");
}

// Adds -t, --threads N. Prints a warning if N is more than the threads that this process may use, because that is slower.
inline CLI::Option* add_threads(CLI::App& app, std::uint32_t& threads) {
  return app
      .add_option_function<std::string>(
          "-t,--threads",
          [&threads](const std::string& text) {
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, threads);
            if (error != std::errc() || stop != end || threads > kMostThreads) {
              throw CLI::ValidationError("--threads",
                                         fmt::format("\"{}\" is not a whole number from 0 to {}", text, kMostThreads));
            }
            if (const std::size_t most = usable_threads(); threads > most) {
              fmt::print(
                  stderr,
                  "warning: --threads {}: this process may use {} processor{}, and more threads than that are slower\n",
                  threads, most, most == 1 ? "" : "s");
            }
          },
          "The number of threads. Default: 0, as many as this process\nmay use (its processors, or a container's quota)")
      ->type_name("N");
}

// Reads a secret from a file, without the end of its line. Throws CLI::ValidationError for `option`.
inline std::string read_secret(const std::string& path, const char* option) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) throw CLI::ValidationError(option, fmt::format("{}: cannot be read, or is empty", path));
  return text;
}

// The ranks that share a model.
struct Ranks {
  std::uint32_t here = 1;
  std::vector<std::string> addresses;  // addresses of the ranks in other processes
  std::string secret;
  RankSplit split = RankSplit::heads;

  void put_into(EngineOptions& options) const {
    options.ranks = here;
    options.rank_addresses = addresses;
    options.rank_secret = secret;
    options.rank_split = split;
  }
};

// Adds --ranks N, --rank-at ADDRESS, --rank-split HOW and --rank-secret-file FILE.
inline void add_ranks(CLI::App& app, Ranks& ranks) {
  app.add_option("--ranks", ranks.here,
                 "Divide the model among N ranks, each with its part of the\nweights and its share of the threads. The output is the same.\n"
                 "Pays on machines with several memories (NUMA). Default: 1")
      ->check(CLI::Range(1u, 64u).description(""))
      ->type_name("N");
  app.add_option("--rank-at", ranks.addresses,
                 "Divide the model among this process and a tessera-rank that\nwaits at this address, on this machine or another. Repeat it\nfor each rank")
      ->type_name("HOST:PORT")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
         "--rank-split",
         [&ranks](const std::string& name) {
           if (name != "heads" && name != "layers") throw CLI::ValidationError("--rank-split", fmt::format("\"{}\" is not one of heads, layers", name));
           ranks.split = name == "layers" ? RankSplit::layers : RankSplit::heads;
         },
         "heads: every layer is divided, and all ranks compute at once.\nlayers: each rank has some layers; for slow networks. Default: heads")
      ->type_name("heads|layers");
  app.add_option_function<std::string>(
         "--rank-secret-file", [&ranks](const std::string& path) { ranks.secret = read_secret(path, "--rank-secret-file"); },
         "A file with the text that those tessera-ranks got with\n--secret-file")
      ->type_name("FILE");
}

// Adds --isa SET, a name of kInstructionSets or "auto".
inline CLI::Option* add_instruction_set(CLI::App& app, InstructionSet& set) {
  return app
      .add_option_function<std::string>(
          "--isa",
          [&set](const std::string& text) {
            std::string names = "auto";
            if (text == names) {
              set = InstructionSet::automatic;
              return;
            }
            for (const InstructionSet each : kInstructionSets) {
              if (text == to_string(each)) {
                set = each;
                return;
              }
              names += fmt::format("|{}", to_string(each));
            }
            throw CLI::ValidationError("--isa", fmt::format("\"{}\" is not one of {}", text, names));
          },
          "Use this instruction set of the CPU (baseline, avx2, amx, ...)\nDefault: auto, the best one")
      ->type_name("SET");
}

}  // namespace tessera::tool
