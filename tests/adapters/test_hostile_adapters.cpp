// Files that are made to do harm: whatever an adapter claims, reading it ends soon, takes bounded memory, and is an error or a sound adapter.
#include <ctime>
#include <random>

#include <fmt/format.h>

#include "adapters/written_adapter.hpp"
#include "core/guard.hpp"
#include "counted_new.hpp"
#include "files/gguf_bytes.hpp"
#include "sanitized.hpp"

namespace test_hostile_adapters {

using namespace tessera;
using namespace tessera::test;
using detail::AdapterFile;
using detail::AdapterTensor;
namespace fs = std::filesystem;

constexpr double kMostSeconds = tests::kSanitized ? 3.0 : 0.1;

// The processor's time, which other programs on the machine do not change.
class Timer {
 public:
  [[nodiscard]] double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

// The old file is removed first: some file systems wait for the disk when a file is emptied and written again.
void write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<std::byte> bytes_of_file(const fs::path& path) {
  const std::string text = text_of_file(path);
  const auto raw = std::as_bytes(std::span(text));
  return {raw.begin(), raw.end()};
}

bool is_sound(const AdapterFile& file, const OpenedBase& base) {
  for (const AdapterTensor& tensor : file.tensors) {
    if (tensor.tensor >= base.tensors.size() || tensor.rank == 0) return false;
    const detail::AdaptedTensor& own = base.tensors[tensor.tensor];
    const std::uint64_t size = tensor.dtype == DType::f32 ? 4 : 2;
    const std::uint64_t a = tensor.is_embedding ? own.outputs : own.inputs * tensor.a_count,
                        b = tensor.is_embedding ? own.inputs : own.outputs * tensor.b_count;
    if (tensor.a.size() != a * tensor.rank * size || tensor.b.size() != b * tensor.rank * size) return false;
    if (!tensor.lengths.empty() && tensor.lengths.size() != own.outputs * own.count) return false;
  }
  return !file.tensors.empty();
}

std::string problem_in_time(const OpenedBase& base, const fs::path& path) {
  const Timer timer;
  const std::string text = base.problem(path);
  CHECK(timer.seconds() < kMostSeconds);
  return text;
}

gguf_bytes::Builder header_of_adapter() {
  gguf_bytes::Builder builder;
  builder.key("general.type", GgufType::string).string("adapter");
  builder.key("general.architecture", GgufType::string).string("llama");
  builder.key("adapter.type", GgufType::string).string("lora");
  return builder;
}

TEST_CASE("ranks, dims and counts beyond all measure end in an error at once", "[adapters]") {
  const AdapterCopy place;
  const fs::path path = place.path() / "a.gguf";
  const OpenedBase base(golden_folder("llama3-tied"));
  for (const std::uint64_t rank : {std::uint64_t{1} << 31, std::uint64_t{1} << 40, std::uint64_t{4097}, std::uint64_t{0}}) {
    gguf_bytes::Builder builder = header_of_adapter();
    builder.tensor("blk.0.attn_q.weight.lora_a", DType::f32, {48, 1});
    builder.tensor("blk.0.attn_q.weight.lora_b", DType::f32, {1, 48});
    auto bytes = builder.finish();
    // The dims of A and B as the file claims them.
    std::size_t replaced = 0;
    for (const std::size_t field : builder.fields) {
      std::uint64_t value = 0;
      std::memcpy(&value, bytes.data() + field, sizeof value);
      if (value == 1 && field > 150) std::memcpy(bytes.data() + field, &rank, sizeof rank), ++replaced;
    }
    CHECK(replaced >= 2);
    write_bytes(path, bytes);
    CHECK_FALSE(problem_in_time(base, path).empty());
  }
  gguf_bytes::Builder many = header_of_adapter();
  for (int i = 0; i < 200'000; ++i) many.tensor("blk.0.attn_q" + std::to_string(i) + ".lora_a", DType::f32, {1});
  write_bytes(path, many.finish());
  CHECK_THAT(problem_in_time(base, path), Catch::Contains("the file states 200000 tensors"));
  many.overwrite(8, std::uint64_t{1'000'000});
  write_bytes(path, many.bytes);
  CHECK_FALSE(problem_in_time(base, path).empty());
  // More tensors than the file has, but not more than an adapter may have.
  gguf_bytes::Builder two = header_of_adapter();
  for (const char* half : {"a", "b"}) two.tensor(std::string("blk.0.attn_q.weight.lora_") + half, DType::f32, {48, 1});
  two.finish();
  two.overwrite(8, detail::most_adapter_tensors(base.base));
  write_bytes(path, two.bytes);
  CHECK_THAT(problem_in_time(base, path), !Catch::Contains("the file states") && Catch::Contains("a.gguf"));
}

TEST_CASE("a folder's header with too many tensors is refused before it is parsed", "[adapters]") {
  const AdapterCopy copy("llama");
  const OpenedBase base(golden_folder("llama3-tied"));
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) {
    text += fmt::format(R"("base_model.model.t{}.lora_A.weight":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}},)", i);
  }
  text.back() = '}';
  const std::uint64_t length = text.size();
  std::vector<std::byte> bytes(8 + text.size());
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, text.data(), text.size());
  write_bytes(copy.path() / "adapter_model.safetensors", bytes);
  CHECK_THAT(problem_in_time(base, copy.path()), Catch::Contains("its header has") && Catch::Contains("belongs to another model"));
}

TEST_CASE("tensors that lie over each other are refused", "[adapters]") {
  const AdapterCopy place;
  const fs::path path = place.path() / "a.gguf";
  const OpenedBase base(golden_folder("llama3-tied"));
  gguf_bytes::Builder builder = header_of_adapter();
  builder.tensor("blk.0.attn_q.weight.lora_a", DType::f32, {48, 2});
  builder.tensor("blk.0.attn_q.weight.lora_b", DType::f32, {2, 48});
  auto bytes = builder.finish();
  const std::uint64_t nothing = 0;
  std::memcpy(bytes.data() + builder.fields.back(), &nothing, sizeof nothing);  // the offset of B
  write_bytes(path, bytes);
  CHECK_FALSE(problem_in_time(base, path).empty());
}

TEST_CASE("reading takes no more memory than twice the file and 64 MB", "[adapters]") {
  const AdapterCopy place;
  const fs::path path = place.path() / "a.gguf";
  const OpenedBase base(golden_folder("llama3-tied"));
  const AdapterFile file = must(base.read(adapter_folder("llama")));
  write_gguf_adapter(path, file, base);
  for (const fs::path& adapter : {path, adapter_folder("llama")}) {
    const std::size_t bytes = fs::file_size(fs::is_directory(adapter) ? adapter / "adapter_model.safetensors" : adapter);
    counted::Scope scope;
    const auto read = detail::guard([&] { return base.read(adapter); });
    scope.stop();
    CHECK(read);
    CHECK(counted::peak < 2 * bytes + (std::size_t{64} << 20));
  }
  // One expert of high rank, and a model of many experts: the others' zeros would take many times the file.
  const OpenedBase experts(golden_folder("qwen3moe"));
  const auto& gate = experts.tensors[static_cast<std::size_t>(detail::find_adapted(experts.base, "blk.0.ffn_gate_exps.weight"))];
  const std::string name = "base_model.model.model.layers.0.mlp.experts.1.gate_proj";
  write_peft_config(place.path(), R"(, "rank_pattern": {"gate_proj": 4})");
  write_safetensors(place.path() / "adapter_model.safetensors",
                    {{name + ".lora_A.weight", {4, gate.inputs}}, {name + ".lora_B.weight", {gate.outputs, 4}}});
  const AdapterFile one = must(experts.read(place.path()));
  REQUIRE(one.tensors.size() == 1);
  CHECK(one.tensors.front().a.size() == gate.count * gate.inputs * 4 * sizeof(float));
  CHECK(std::ranges::all_of(std::span(one.tensors.front().a).first(gate.inputs * 4 * sizeof(float)),
                            [](std::byte byte) { return byte == std::byte{0}; }));
}

// One change of a file's bytes.
void mutate(std::vector<std::byte>& bytes, std::size_t header, std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const std::size_t at = below(below(8) == 0 ? bytes.size() : std::min(header, bytes.size()));
  switch (below(4)) {
    case 0:
      bytes[at] ^= static_cast<std::byte>(1u << below(8));
      break;
    case 1:
      bytes[at] = static_cast<std::byte>(below(256));
      break;
    case 2: {
      const std::uint64_t values[] = {0, 1, 0xffffffff, std::uint64_t{1} << 31, ~std::uint64_t{0}, std::uint64_t{1} << 62};
      const std::uint64_t value = values[below(6)];
      std::memcpy(bytes.data() + at, &value, std::min(sizeof value, bytes.size() - at));
      break;
    }
    default:
      bytes.resize(below(bytes.size()) + 1);
      break;
  }
}

TEST_CASE("changed adapters are refused or read soundly", "[adapters]") {
  constexpr int kTries = 1000;  // of each of three kinds of changes
  const AdapterCopy copy("llama-dora"), place;
  const OpenedBase base(golden_folder("llama-bias"));
  const auto weights = bytes_of_file(copy.path() / "adapter_model.safetensors");
  const std::string config = text_of_file(copy.path() / "adapter_config.json");
  std::uint64_t json = 0;
  std::memcpy(&json, weights.data(), sizeof json);
  const AdapterFile file = must(base.read(adapter_folder("llama-f16")));
  const fs::path gguf = place.path() / "a.gguf";
  write_gguf_adapter(gguf, file, base, {.alpha = 4.0f, .dtype = DType::f16});
  const auto whole = bytes_of_file(gguf);
  std::mt19937_64 random(7);
  int refused = 0, sound = 0;
  const auto judge = [&](const fs::path& path) {
    const auto read = detail::guard([&] { return base.read(path); });
    if (read) {
      REQUIRE(is_sound(*read, base));
      ++sound;
    } else {
      CAPTURE(read.error().text());
      REQUIRE_FALSE(read.error().message().empty());
      REQUIRE(read.error().code() != ErrorCode::internal);
      REQUIRE(read.error().code() != ErrorCode::out_of_memory);
      ++refused;
    }
  };
  for (int i = 0; i < kTries; ++i) {
    auto changed = whole;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) mutate(changed, 3000, random);
    write_bytes(gguf, changed);
    judge(gguf);
    changed = weights;
    for (std::uint64_t n = 1 + random() % 2; n > 0; --n) mutate(changed, 8 + json, random);
    write_bytes(copy.path() / "adapter_model.safetensors", changed);
    judge(copy.path());
  }
  write_bytes(copy.path() / "adapter_model.safetensors", weights);
  for (int i = 0; i < kTries; ++i) {
    auto changed = config;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % changed.size();
      if (random() % 2 == 0) {
        changed[at] = static_cast<char>(random() % 128);
      }
      else {
        changed.insert(at, 1, "{}[]:,\"\\*(+.0n"[random() % 14]);
      }
    }
    copy.write("adapter_config.json", changed);
    judge(copy.path());
  }
  CHECK(refused > kTries);
  CHECK(sound > kTries / 10);
}

TEST_CASE("an allocation that fails while an adapter is read or merged is an error, and nothing leaks", "[adapters]") {
  const AdapterCopy place;
  for (const auto& [adapter, model] : {std::pair{"llama-few", "llama3-tied"}, {"mixtral-down", "mixtral"}}) {
    CAPTURE(adapter);
    const OpenedBase base(golden_folder(model));
    std::int64_t k = 0;
    for (;; k += k < 300 ? 1 : 17) {
      counted::Scope scope(k);
      {
        const auto read = detail::guard([&] { return base.read(adapter_folder(adapter)); });
        const bool reached = counted::count > k;
        scope.stop();
        if (!reached) {
          CHECK(read);
          break;
        }
        // An allocation that only makes something faster may fail without an error.
        if (!read) REQUIRE(read.error().code() == ErrorCode::out_of_memory);
      }
      REQUIRE(counted::live == 0);
    }
    CHECK(k > 50);
  }
  const auto model = must(open_model(golden_folder("llama3-tied")));
  const std::vector<MergedAdapter> adapters = {{adapter_folder("llama-few"), 0.5f}};
  for (std::int64_t k = 0;; k += k < 100 ? 1 : 13) {
    counted::Scope scope(k);
    {
      const auto merged = detail::guard([&] { return detail::MergedSource::make(model, adapters, {}); });
      if (merged) {
        const TensorInfo& tensor = *(*merged)->find_tensor("blk.1.attn_q.weight");
        std::vector<std::byte> bytes;
        {
          const counted::Pause pause;
          bytes.resize(tensor.bytes);
        }
        const Status read = (*merged)->read(tensor, 0, bytes);
        if (!read) CHECK(read.error().code() == ErrorCode::out_of_memory);
      } else {
        CHECK(merged.error().code() == ErrorCode::out_of_memory);
      }
      const bool reached = counted::count > k;
      scope.stop();
      if (!reached) {
        CHECK(merged);
        break;
      }
    }
    REQUIRE(counted::live == 0);
  }
}

}  // namespace test_hostile_adapters
