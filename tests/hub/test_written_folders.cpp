// A model that is written as a folder, and opened again, computes the same bits.
#include <cmath>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/formats/rows.hpp>
#include <tessera/unstable/files/gguf_settings.hpp>
#include <tessera/unstable/hub/written_folder.hpp>

#include "hub/folder.hpp"

namespace test_written_folders {

using namespace tessera;
using namespace tessera::test;
namespace fs = std::filesystem;

// A path for a folder, which is removed at the end.
class Place {
 public:
  Place() {
    static int count = 0;
    path_ = fs::temp_directory_path() / ("tessera-written-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    fs::remove_all(path_);
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

std::vector<std::byte> bytes_of(const ModelSource& model, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  must(model.read(tensor, 0, bytes));
  return bytes;
}

std::vector<float> logits_of(const fs::path& path, std::span<const Token> tokens) {
  const Engine engine = must(Engine::load(path, {.tokenizer = TokenizerUse::none, .numerics = Numerics::reference, .threads = 2}));
  Session session = must(engine.session({.kv = {.dtype = DType::f32}}));
  return all_logits(session, tokens, tokens.size());
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float difference = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
  return difference;
}

TEST_CASE("a GGUF file that becomes a folder gives the same logits", "[hub]") {
  int count = 0;
  for (const GoldenCase& entry : golden_cases()) {
    DYNAMIC_SECTION(entry.name) {
      const auto model = must(open_model(entry.file()));
      const Place place;
      const auto written = write_folder(*model, place.path(), {});
      INFO((written ? "" : written.error().text()));
      REQUIRE(written);
      const auto tokens = read_tokens(golden_dir() / (entry.name + ".tokens.txt"));
      const auto expected = logits_of(entry.file(), tokens), got = logits_of(place.path(), tokens);
      // Folders have the logarithms of rates of decay, and no float32 may be the logarithm of just this rate.
      const bool has_rates = std::ranges::any_of(model->tensors(), [](const TensorInfo& tensor) { return tensor.name.ends_with(".ssm_a"); });
      if (!has_rates) CHECK(same_bits(expected, got));
      CHECK(largest_difference(expected, got) <= 1e-5f);
    }
    ++count;
  }
  CHECK(count > 50);
}

TEST_CASE("a folder that becomes a GGUF file, and a folder again, has the same tensors", "[hub]") {
  for (const auto& entry : fs::directory_iterator(golden_dir() / "folders")) {
    DYNAMIC_SECTION(entry.path().filename().string()) {
      const auto first = must(open_model(entry.path()));
      const Place middle, last;
      fs::create_directories(middle.path());
      const fs::path file = middle.path() / "model.gguf";
      GgufWriter writer;
      must(write_settings(writer, first->settings()));
      for (const TensorInfo& tensor : first->tensors()) {
        must(writer.add_tensor(tensor.name, tensor.n_dims == 1 ? DType::f32 : tensor.dtype, std::span(tensor.dims.data(), tensor.n_dims)));
      }
      must(writer.write_file(file, [&](std::string_view name, const ByteSink& write) -> Status {
        const TensorInfo& tensor = *first->find_tensor(name);
        const auto bytes = bytes_of(*first, tensor);
        if (tensor.n_dims != 1 || tensor.dtype == DType::f32) return write(bytes);
        std::vector<float> values(tensor.dims[0]);
        must(formats::decode_row(tensor.dtype, bytes, values));
        return write(std::as_bytes(std::span(values)));
      }));
      const auto gguf = must(open_model(file));
      must(write_folder(*gguf, last.path(), {}));
      const auto again = must(open_model(last.path()));
      CHECK(again->tensors().size() == first->tensors().size());
      for (const TensorInfo& tensor : first->tensors()) {
        CAPTURE(std::string(tensor.name));
        const TensorInfo* own = again->find_tensor(tensor.name);
        REQUIRE(own != nullptr);
        CHECK(own->dtype == tensor.dtype);
        CHECK(own->dims == tensor.dims);
        CHECK(bytes_of(*first, tensor) == bytes_of(*again, *own));
      }
      const auto tokens = read_tokens(entry.path() / "tokens.txt");
      CHECK(same_bits(logits_of(file, tokens), logits_of(last.path(), tokens)));
      // A GGUF file has the base of the rope as float32, and these models compute a base that float32 does not hold.
      if (!entry.path().filename().string().starts_with("hunyuan")) CHECK(same_bits(logits_of(entry.path(), tokens), logits_of(last.path(), tokens)));
    }
  }
}

}  // namespace test_written_folders
