// Compares the speed of several builds of the kernels: runs them by turns in one process, so that changes of the machine's clock rate and
// load affect all builds alike. See README.md.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "contender.hpp"
#include "measure/limits.hpp"

namespace {

struct Options {
  std::vector<std::string> builds;
  std::string family = "int8", form = "block32_4";
  std::size_t rows = 1, inputs = 2048, outputs = 2048, job = 0, megabytes = 1500, threads = 2;
  double seconds = 20, least_gb_per_s = 0;
};

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "by_turns: {}\n", why);
  std::exit(1);
}

// One build to compare: a library of kernels. The command line names it by PATH, PATH@BYTES or PATH@BYTES+. BYTES: how many bytes beyond
// its present reads a kernel prefetches weights. Without "+", the kernel prefetches one cache line in four; with "+", every line.
struct Build {
  std::string name;
  std::vector<Contender> products;  // [threads]

  Build(const std::string& text, const Options& options) : name(text) {
    Question question{options.family.c_str(), options.form.c_str(), options.rows, options.inputs, 4096, false};
    const std::size_t at = text.rfind('@');
    const std::string path = text.substr(0, at);
    if (at != std::string::npos) {
      question.all_lines = text.back() == '+';
      question.ahead_bytes = std::strtoull(text.c_str() + at + 1, nullptr, 10);
    }
    void* library = dlopen(path.find('/') == std::string::npos ? ("./" + path).c_str() : path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) fail(dlerror());
    const auto make = reinterpret_cast<decltype(&tessera_contender)>(dlsym(library, "tessera_contender"));
    if (make == nullptr) fail(path + ": not a library of kernels as bench/by_turns makes them");
    products.resize(options.threads);
    for (Contender& product : products) {
      if (const char* why = make(&question, &product); *why != 0) fail(path + ": " + why);
    }
  }
};

// Returns random bytes that are usable as weights in every packed form. Read as F16, F32 or powers of two (MXFP4's scales), they are near 1
// and never denormal, because denormals would slow the arithmetic down. The bytes lie in huge pages if there are any.
std::byte* weights(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) fail("no memory");
  madvise(mapped, bytes, MADV_HUGEPAGE);
  std::mt19937 random(1);
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const std::uint32_t word = (static_cast<std::uint32_t>(random()) & 0x073f073fu) | 0x38403840u;
    std::memcpy(static_cast<std::byte*>(mapped) + i, &word, 4);
  }
  return static_cast<std::byte*>(mapped);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Kernels of matrix products by turns. Libraries are build/release/bin/kernels_*.so.");
  app.add_option("builds", options.builds,
                 "libraries; PATH@4096 prefetches one line in four, 4096 bytes ahead; PATH@3072+ all lines")
      ->required();
  app.add_option("--family", options.family)->capture_default_str();
  app.add_option("--form", options.form, "of packed weights")->capture_default_str();
  app.add_option("--rows", options.rows)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--inputs", options.inputs)->check(CLI::Range(256, 1 << 20))->capture_default_str();
  app.add_option("--outputs", options.outputs, "outputs of a product; in a turn each thread computes one product")->capture_default_str();
  app.add_option("--job", options.job, "outputs of the product at a time, as tasks are cut, in whole pieces of the kernel; 0: all")
      ->capture_default_str();
  app.add_option("--megabytes", options.megabytes, "megabytes of weights that the turns go through; 0: the same weights in each turn")
      ->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seconds", options.seconds)->capture_default_str();
  app.add_option("--least", options.least_gb_per_s, "only turns count in which a plain read reaches this many GB/s")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

#if defined(__x86_64__)
  syscall(SYS_arch_prctl, 0x1023, 18);  // ARCH_REQ_XCOMP_PERM: permits AMX tiles, before threads start. Fails, harmlessly, without AMX
#endif
  std::vector<Build> builds;
  for (const std::string& build : options.builds) builds.emplace_back(build, options);
  const Contender& any = builds[0].products[0];
  const std::size_t panels = options.outputs / any.panel_outputs, bytes = panels * any.panel_bytes;
  for (const Build& build : builds) {
    const Contender& product = build.products[0];
    if (options.outputs / product.panel_outputs * product.panel_bytes != bytes) fail("the builds' panels differ in bytes");
  }
  if (panels == 0) fail(fmt::format("--outputs: a panel has {}", any.panel_outputs));
  // Each thread has its own region of weights, with room after the region for prefetches beyond its end.
  const std::size_t places = std::max<std::size_t>(1, options.megabytes * 1'000'000 / options.threads / bytes);
  const std::size_t region = places * bytes + (1 << 20);
  std::byte* const all = weights(region * options.threads);

  const std::size_t contenders = builds.size() + 1;  // the builds, and a plain read of the same bytes as the last
  const auto plain_read = tessera::bench::read_kernels()[0].run;
  std::vector<std::vector<double>> times(contenders);
  std::barrier barrier(static_cast<std::ptrdiff_t>(options.threads));
  bool done = false;
  const auto work = [&](std::size_t thread) {
    std::vector<std::size_t> order(contenders);
    for (std::size_t c = 0; c < contenders; ++c) order[c] = c;
    std::mt19937 random(7);
    std::size_t place = 0;
    const auto start = std::chrono::steady_clock::now();
    while (!done) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t c : order) {
        const std::byte* from = all + thread * region + place++ % places * bytes;
        barrier.arrive_and_wait();
        const auto before = std::chrono::steady_clock::now();
        if (c == builds.size()) {
          (void)plain_read(from, bytes);
        } else {
          const Contender& product = builds[c].products[thread];
          const std::size_t n = options.outputs / product.panel_outputs, least = product.least_panels;
          const std::size_t pieces = std::max<std::size_t>(1, options.job / product.panel_outputs / least);
          const std::size_t job = options.job == 0 ? n : pieces * least;
          for (std::size_t panel = 0; panel < n; panel += job) {
            product.multiply(product.state, from + panel * product.panel_bytes, std::min(job, n - panel));
          }
        }
        const std::chrono::duration<double> own = std::chrono::steady_clock::now() - before;
        barrier.arrive_and_wait();
        if (thread == 0) times[c].push_back(own.count());
      }
      barrier.arrive_and_wait();
      if (thread == 0) done = std::chrono::steady_clock::now() - start > std::chrono::duration<double>(options.seconds);
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t t = 1; t < options.threads; ++t) threads.emplace_back(work, t);
  work(0);
  for (std::thread& thread : threads) thread.join();

  const std::vector<double>& reads = times[builds.size()];
  const double volume = static_cast<double>(bytes * options.threads) * 1e-9;
  std::vector<std::size_t> counted;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    if (volume / reads[i] >= options.least_gb_per_s) counted.push_back(i);
  }
  if (counted.empty()) fail("no turn's plain read was as fast as --least asks");
  const auto median = [&](auto&& value, double q = 0.5) {
    std::vector<double> values;
    for (const std::size_t i : counted) values.push_back(value(i));
    return quantile(values, q);
  };
  fmt::print("{} rows of {} in {} {}, {} threads: {} of {} turns\n", options.rows, options.inputs, options.family,
             options.form, options.threads, counted.size(), reads.size());
  fmt::print("{:>10}  {:>7}  {:>8}  {:<22}  {}\n", "µs", "GB/s", "TOP/s", "times as fast", "share of a plain read");
  const double operations = 2e-12 * static_cast<double>(options.rows * options.inputs * options.outputs * options.threads);
  for (std::size_t c = 0; c < contenders; ++c) {
    const auto ratio = [&](double q) { return median([&](std::size_t i) { return times[0][i] / times[c][i]; }, q); };
    const double time = median([&](std::size_t i) { return times[c][i]; });
    fmt::print("{:10.1f}  {:7.1f}  {:>8}  {:.3f} ({:.3f}-{:.3f})      {:.3f}   {}\n", time * 1e6, volume / time,
               c < builds.size() ? fmt::format("{:.3f}", operations / time) : "", ratio(0.5), ratio(0.25), ratio(0.75),
               median([&](std::size_t i) { return reads[i] / times[c][i]; }),
               c < builds.size() ? builds[c].name : "plain read");
  }
}
