// tessera-rank: waits for engines in other processes, and computes a part of the model for them.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <tessera/extend/ranks.hpp>
#include <tessera/tessera.hpp>

#include "command_line.hpp"
#include "failure.hpp"
#include "interrupts.hpp"
#include "machine_options.hpp"
#include "model_place.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;

constexpr const char* kProgram = "tessera-rank";
constexpr int kUsage = 2, kFailure = 1;

constexpr const char* kFooter = R"(A model that is too large or too slow for one machine is divided among several: each machine runs tessera-rank, and one runs a
program with --rank-at. Each rank loads its part of the weights, and keeps the keys and values of its part. All need the same
MODEL file and the same version of tessera. Texts are the same as on one machine, to the last bit.

MODEL is a GGUF file, a folder as hubs publish models, or a name (ollama:NAME, lmstudio:NAME, hf:NAME).

On two other machines:    tessera-rank model.gguf --listen 0.0.0.0:7070 --secret-file secret.txt
On yours:                 generate -m model.gguf --rank-at host1:7070 --rank-at host2:7070 --rank-secret-file secret.txt -p "Hello"
On one machine, to try:   tessera-rank model.gguf --listen unix:/tmp/rank1

What ranks send is not encrypted: use a network of your own, or a tunnel. Ctrl-C ends tessera-rank.
Exit status: 0 ended by Ctrl-C, 1 failure, 2 usage.)";

struct Arguments {
  std::string model;
  RankOptions options;
};

// Prints the progress of loading in percent.
bool show_progress(std::uint64_t done, std::uint64_t total) {
  static std::uint64_t shown = ~std::uint64_t{0};
  const std::uint64_t percent = total == 0 ? 100 : done * 100 / total;
  if (percent == shown) return true;
  shown = percent;
  fmt::print(stderr, "\rloading {} %{}", percent, percent == 100 ? "\n" : "");
  std::fflush(stderr);
  return true;
}

int run(Arguments arguments) {
  Interrupts interrupts(IdleInterrupt::ends);
  const Interruptible work(interrupts);
  RankOptions& options = arguments.options;
  options.stop = work.token();
  options.listening = [](const std::string& address) { tool::complain(kProgram, fmt::format("waiting for an engine at {}", address)); };
  options.log = [](LogLevel, std::string_view line) { tool::complain(kProgram, line); };
  options.progress = show_progress;
  if (const Status served = serve_rank(value(tool::model_place(arguments.model)), options); !served) throw Failure(served.error());
  return 0;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Computes a part of a model for a program on another machine.", kProgram};
  app.footer(kFooter);
  app.add_option("-m,--model,MODEL", arguments.model, "the model")->required()->type_name("");
  app.add_option("--listen", arguments.options.listen, "Where to wait for an engine: HOST:PORT, or unix:PATH.\nPort 0: a free port, which is printed")
      ->required()
      ->type_name("ADDRESS");
  app.add_option_function<std::string>(
         "--secret-file", [&](const std::string& path) { arguments.options.secret = tool::read_secret(path, "--secret-file"); },
         "Serve only engines that got a file with the same text, with\n--rank-secret-file. Default: every engine is served")
      ->type_name("FILE");
  tool::add_instruction_set(app, arguments.options.instruction_set);
  tool::add_threads(app, arguments.options.threads);
  tool::add_version(app, kProgram);
  try {
    tool::parse(app, argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    tool::complain(kProgram, fmt::format("{} (--help tells more)", error.what()));
    return kUsage;
  }
  return run(std::move(arguments));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const UsageError& error) {
    tool::complain(kProgram, fmt::format("{} (--help tells more)", error.what()));
    return kUsage;
  } catch (const std::exception& error) {
    tool::complain(kProgram, error.what());
  } catch (...) {
    tool::complain(kProgram, "unknown failure: please report it");
  }
  return kFailure;
}
