// bench_adapters MODEL.gguf [RANK [KIND [ADAPTERS]]]: measures how much adapters slow a model down. Makes ADAPTERS random adapters
// (default 16) of rank RANK (default 16) for matrices of the layers (KIND: all, the default, or attention), and computes the same tokens
// with and without them, by turns. Prints the median of the tokens a second with adapters, the median without, and the median of the
// ratios (with, divided by without).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/formats/rows.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

namespace {

template <class T>
T value(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().text().c_str());
  std::exit(1);
}
void check(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().text().c_str());
  std::exit(1);
}

bool is_adapted(const TensorInfo& tensor, const std::string& kind) {
  if (!tensor.name.starts_with("blk.") || tensor.n_dims < 2 || tensor.name.find("norm") != tensor.name.npos) return false;
  return kind == "all" || tensor.name.find("attn") != tensor.name.npos;
}

// Writes an adapter of F16 numbers.
void write_adapter(const std::filesystem::path& path, const ModelSource& base, std::uint32_t rank, const std::string& kind, std::uint32_t seed) {
  GgufWriter writer;
  check(writer.set_string("general.type", "adapter"));
  check(writer.set_string("general.architecture", value(base.settings().string(Setting::architecture))));
  check(writer.set_string("general.name", path.stem().string()));
  check(writer.set_string("adapter.type", "lora"));
  check(writer.set("adapter.lora.alpha", static_cast<float>(rank)));
  for (const TensorInfo& tensor : base.tensors()) {
    if (!is_adapted(tensor, kind)) continue;
    const std::string name(tensor.name);
    check(writer.add_tensor(name + ".lora_a", DType::f16, std::vector<std::uint64_t>{tensor.dims[0], rank}));
    check(writer.add_tensor(name + ".lora_b", DType::f16, std::vector<std::uint64_t>{rank, tensor.dims[1]}));
  }
  std::mt19937 random(seed);
  const auto written = [&](std::string_view name, const ByteSink& write) {
    const TensorInfo& tensor = *base.find_tensor(name.substr(0, name.rfind('.')));
    std::vector<float> values(rank * (name.ends_with("lora_a") ? tensor.dims[0] : tensor.dims[1]));
    for (float& number : values) number = 0.02f * (static_cast<float>(random()) / 4294967296.0f - 0.5f);
    std::vector<std::byte> bytes(2 * values.size());
    check(formats::encode_row(DType::f16, values, bytes));
    return write(bytes);
  };
  check(writer.write_file(path, written));
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Case {
  std::string name;
  std::size_t sequences, prompt;  // prompt: tokens of the measured prompt; 0: decode steps, after 64 tokens of each sequence
  std::vector<std::vector<AdapterUse>> adapters;  // [sequences]
};

class Bench {
 public:
  explicit Bench(const Engine& engine) : engine_(engine) {}

  void compare(const Case& with) {
    Case without = with;
    without.adapters.assign(with.sequences, {});
    std::vector<double> plain, adapted, ratios;
    constexpr int kRounds = 7;
    for (int round = 0; round < kRounds; ++round) {
      plain.push_back(run(without));
      adapted.push_back(run(with));
      ratios.push_back(plain.back() / adapted.back());
    }
    const double tokens = static_cast<double>(with.sequences * (with.prompt == 0 ? kSteps : with.prompt));
    std::printf("%-44s %9.2f %9.2f tokens/s, ratio %.3f\n", with.name.c_str(), tokens / median(plain), tokens / median(adapted), median(ratios));
    std::fflush(stdout);
  }

 private:
  static constexpr std::size_t kSteps = 12;

  std::vector<Token> tokens(std::size_t n, std::size_t from) const {
    std::vector<Token> list(n);
    for (std::size_t i = 0; i < n; ++i) list[i] = static_cast<Token>((from + i) * 7919 % engine_.spec().vocab_size);
    return list;
  }

  double run(const Case& how) const {
    std::vector<Session> sessions;
    for (const auto& adapters : how.adapters) {
      SessionOptions options;  // named: g++ 12 warns of an uninitialised temporary
      options.kv.prefix = PrefixReuse::off;
      options.context = 1024;
      options.adapters = adapters;
      sessions.push_back(value(engine_.session(options)));
    }
    if (how.prompt != 0) return seconds([&] { (void)value(sessions.front().append(tokens(how.prompt, 0))); });
    for (std::size_t i = 0; i < sessions.size(); ++i) (void)value(sessions[i].append(tokens(64, i)));
    return seconds([&] {
      for (std::size_t step = 0; step < kSteps; ++step) {
        Batch batch;
        for (std::size_t i = 0; i < sessions.size(); ++i) check(batch.add(sessions[i], tokens(1, 64 + step + i)));
        (void)value(engine_.forward(batch));
      }
    });
  }

  const Engine& engine_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_adapters MODEL.gguf [RANK [all|attention [ADAPTERS]]]\n");
    return 2;
  }
  const auto rank = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 16);
  const std::string kind = argc > 3 ? argv[3] : "all";
  const std::size_t n = argc > 4 ? static_cast<std::size_t>(std::atoi(argv[4])) : 16;
  const ModelFile file = value(ModelFile::open(argv[1]));
  const Engine engine = value(Engine::load(file, {.context = 1024}));
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tessera-bench-adapters";
  std::filesystem::create_directories(folder);
  std::vector<Adapter> adapters;
  for (std::size_t i = 0; i < n; ++i) {
    const std::filesystem::path path = folder / ("adapter" + std::to_string(i) + ".gguf");
    write_adapter(path, file, rank, kind, static_cast<std::uint32_t>(i));
    adapters.push_back(value(engine.adapter(path)));
  }
  std::filesystem::remove_all(folder);
  std::printf("%zu adapters of rank %u for %zu matrices (%s), %.1f MB each\n", n, rank, adapters[0].matrices(), kind.c_str(),
              static_cast<double>(adapters[0].bytes()) / 1e6);
  std::printf("%-44s %9s %9s\n", "", "without", "with");
  Bench bench(engine);
  const std::vector<AdapterUse> one = {{adapters[0]}};
  bench.compare({"one sequence", 1, 0, {one}});
  bench.compare({"16 sequences, the same adapter", 16, 0, std::vector<std::vector<AdapterUse>>(16, one)});
  std::vector<std::vector<AdapterUse>> different;
  for (std::size_t i = 0; i < 16; ++i) different.push_back({{adapters[i % n]}});
  bench.compare({"16 sequences, different adapters", 16, 0, different});
  bench.compare({"a prompt of 512 tokens", 1, 512, {one}});
}
