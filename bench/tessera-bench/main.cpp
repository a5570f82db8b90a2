// tessera-bench: measures how fast a model runs on this machine, and compares that with the machine's limits. A tour for readers:
//   options, help       the command line
//   shapes, format      shapes of well-known models, and formats of weights
//   made_up, vocabulary a model of such a shape with made-up weights and words
//   limits, *_kernels   the limits of the machine or device: bandwidth, operations a second
//   costs               the bytes and operations that a model's steps need
//   tests               the measurements
//   worker              single measurements, requested on standard input
//   report, plot        the output
//   replay, serving     requests of a trace, served through the scheduler
//   speculating         the gain of speculation, estimated and measured
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "engine_setup.hpp"
#include "failure.hpp"
#include "interrupt.hpp"
#include "made_up.hpp"
#include "measure/serving.hpp"
#include "measure/speculating.hpp"
#include "measure/tests.hpp"
#include "measure/worker.hpp"
#include "show/plot.hpp"
#include "show/plot_file.hpp"
#include "show/report.hpp"
#include "signals.hpp"
#include "terminal_text.hpp"

namespace {

using namespace tessera;
using namespace tessera::bench;

void complain(std::string_view text) { tool::complain("tessera-bench", text); }

void write_model(const Options& options) {
  StatusLine status;
  const std::uint32_t context = options.context();  // so that the file has the context that the tests need
  const auto advance = [&](std::uint64_t done, std::uint64_t total) {
    status.show(fmt::format("writing: {} of {} MB", done / 1000000, total / 1000000));
    return stop_requested == 0;
  };
  write_made_up_model(*options.shape, options.format, context, options.write, advance);
}

std::unique_ptr<Machine> make_machine(const Engine& engine, const Options& options) {
  if (options.backend == BackendKind::cpu) return std::make_unique<Processor>(engine.threads(), options.read_buffer);
  return std::make_unique<Device>(options.limits);
}

void measure(const Options& options) {
  PlotFile plot(options.plot);
  StatusLine status;
  const auto report = options.json ? make_json() : make_table();
  if (options.backend == BackendKind::cpu) (void)matrix_kernel();  // asks for permission to use AMX, before there are threads
  const auto model = open_model(options);
  plot.check_against(options.model);
  const Engine engine = load_engine(*model, options, status);
  const ModelCosts costs(*model, engine);
  const std::unique_ptr<Machine> machine = make_machine(engine, options);
  throw_if_interrupted();
  Subject setting = subject_of(*model, engine, options);
  setting.read_buffer = machine->buffer_bytes();
  report->begin(setting, machine->measure());

  std::vector<Measurement> results;
  Tests tests(engine, costs, options, *machine, status, [&](const Measurement& result) {
    report->row(result);
    results.push_back(result);
  });
  if (options.worker) return serve(std::cin, setting, options, tests);
  const auto finish = [&] {
    report->end(machine->history());
    if (plot.wanted()) plot.write(roofline_svg(setting, results, machine->history()));  // a device's limits may be unknown
  };
  try {
    for (const Request& request : requests_of(options)) tests.run(request);
  } catch (const Interrupted&) {
    status.clear();
    finish();
    throw;
  }
  finish();
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) return 0;
  if (!options->write.empty()) {
    write_model(*options);
  } else if (options->speculate.wanted) {
    measure_speculation(*options);
  } else if (options->traces) {
    serve_trace(*options);
  } else {
    measure(*options);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // If the reader of a pipe ends (`tessera-bench | head`), SIGPIPE ends this program quietly.
  std::signal(SIGPIPE, SIG_DFL);
  for (const int signal : {SIGINT, SIGTERM}) tool::on_signal(signal, request_stop);
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    complain(fmt::format("{} (--help tells more)", error.what()));
    return 2;
  } catch (const Interrupted& stop) {
    complain(stop.what());
    return 130;
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return 1;
}
