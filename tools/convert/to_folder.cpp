#include "to_folder.hpp"

#include <chrono>
#include <cstdio>
#include <stop_token>
#include <thread>

#include <fmt/format.h>

#include <tessera/unstable/hub/written_folder.hpp>

#include "report.hpp"
#include "system/program.hpp"

namespace tessera::convert {

namespace {

std::string megabytes(std::uint64_t bytes) {
  return bytes < 1000'000 ? fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3) : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

// Requests a stop when a signal has come. A signal handler must not use the library's stop tokens itself, so a thread does.
class SignalWatch {
 public:
  explicit SignalWatch(const volatile std::sig_atomic_t* stop)
      : thread_([this, stop](const std::stop_token& end) {
          while (!end.stop_requested()) {
            if (stop != nullptr && *stop != 0) source_.request_stop();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
          }
        }) {}
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;  // destroyed first, which ends the thread
};

void print_summary(const FolderSummary& summary) {
  fmt::print("model_type {}\n", summary.model_type);
  for (const auto& type : summary.types) fmt::print("{:<8} {:>6} tensors {:>12}\n", to_string(type.type), type.tensors, megabytes(type.bytes));
  for (const auto& file : summary.files) fmt::print("{} {:>6} tensors {:>12}\n", file.name, file.tensors, megabytes(file.bytes));
  if (summary.rounded != 0) {
    fmt::print("{} tensors have no format that hubs have for every model, or another was asked for: their numbers are rounded (F32 keeps them)\n", summary.rounded);
  }
}

}  // namespace

Status write_as_folder(const ModelSource& model, const ToFolder& options) {
  const SignalWatch watch(options.stop);
  FolderOptions folder{.type = options.type, .on_written = {}, .stop = watch.token()};
  if (options.shard_bytes != 0) folder.shard_bytes = options.shard_bytes;
  const auto plan = plan_folder(model, folder);
  if (!plan) return plan.error();
  if (options.dry_run || options.verbose) print_summary(*plan);
  if (options.verbose) fmt::print("{}", plan->config);
  if (options.dry_run) return {};
  const auto begin = std::chrono::steady_clock::now();
  quantize::ProgressLine line(plan->bytes, "writing");
  folder.on_written = [&](std::uint64_t bytes) { line.advance(bytes); };
  const auto written = write_folder(model, options.out, folder);
  line.clear();
  if (!written) {
    if (written.error().code() == ErrorCode::cancelled) return Error(ErrorCode::cancelled, "interrupted; nothing was written");
    return written.error();
  }
  if (!options.verbose) print_summary(*written);
  fmt::print("{}: {}, {:.1f} s\n", tool::text_of(options.out), megabytes(written->bytes),
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return {};
}

}  // namespace tessera::convert
