// tessera-quantize as a user runs it: what becomes of each tensor, what it refuses, and that OUT is whole or untouched.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/formats/rows.hpp>

#include "formats/formats.hpp"

#include "catch.hpp"

namespace test_quantize_tool {

namespace {

using namespace tessera;
namespace fs = std::filesystem;

const fs::path kTool = fs::path(TESSERA_BIN_DIR) / "tessera-quantize";

// A directory for one test, gone at its end.
struct Scratch {
  fs::path dir = fs::temp_directory_path() / ("tessera-quantize-" + std::to_string(std::random_device{}()));
  Scratch() { fs::create_directories(dir); }
  ~Scratch() { fs::remove_all(dir); }
  [[nodiscard]] fs::path operator/(const char* name) const { return dir / name; }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir), fs::directory_iterator{}));
  }
};

struct Run {
  int status;
  std::string out, err;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Run run(const Scratch& scratch, const std::string& arguments) {
  const auto out = scratch.dir.string() + ".out", err = scratch.dir.string() + ".err";
  const int raw = std::system((kTool.string() + " " + arguments + " >" + out + " 2>" + err).c_str());
  Run result{WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, read_text(out), read_text(err)};
  fs::remove(out);
  fs::remove(err);
  return result;
}

bool missing_tool() {
  if (fs::exists(kTool)) return false;
  tests::skip("tessera-quantize is not built (TESSERA_BUILD_TOOLS)");
  return true;
}

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> dims;
  DType dtype = DType::f32;
  std::vector<float> values = {};
};

std::vector<float> random_values(std::size_t n) {
  static std::mt19937 random(1);
  std::vector<float> values(n);
  for (auto& value : values) value = (static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f) * 0.1f;
  return values;
}

void write_model(const fs::path& path, std::vector<Tensor>& tensors) {
  GgufWriter writer;
  REQUIRE(writer.set_string("general.architecture", "llama"));
  REQUIRE(writer.set("llama.block_count", std::uint32_t{1}));
  REQUIRE(writer.set("general.file_type", std::uint32_t{0}));
  const std::vector<std::string> words = {"a", "", "\xc3\xa9"};
  REQUIRE(writer.set_array("tokenizer.ggml.tokens", words));
  for (auto& tensor : tensors) {
    std::size_t n = 1;
    for (const auto dim : tensor.dims) n *= dim;
    if (tensor.values.empty()) tensor.values = random_values(n);
    REQUIRE(writer.add_tensor(tensor.name, tensor.dtype, tensor.dims));
  }
  std::size_t next = 0;
  REQUIRE(writer.write_file(path, [&](std::string_view, const ByteSink& write) -> Status {
    const Tensor& tensor = tensors[next++];
    const auto block = *formats::block_of(tensor.dtype);
    std::vector<std::byte> bytes(tensor.values.size() / block.values * block.bytes);
    if (auto ok = formats::encode_row(tensor.dtype, tensor.values, bytes); !ok) return ok;
    return write(bytes);
  }));
}

std::vector<Tensor> small_model() {
  return {{"token_embd.weight", {256, 12}},      {"blk.0.attn_norm.weight", {256}},
          {"blk.0.attn_q.weight", {256, 40}},    {"blk.0.attn_q.bias", {40}, DType::f16},
          {"blk.0.ffn_down.weight", {64, 256}},  {"blk.0.ffn_up.weight", {20, 64}},
          {"position_embd.weight", {256, 8}},    {"blk.0.ffn_gate_exps.weight", {256, 4, 2}},
          {"output.weight", {256, 12}}};
}

std::vector<std::byte> data_of(const ModelFile& model, const GgufTensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  REQUIRE(model.read(tensor, 0, bytes));
  return bytes;
}

// The tensor's type is `dtype` and its bytes are what encode_row makes of the source.
void check_tensor(const fs::path& path, const Tensor& source, DType dtype) {
  INFO(source.name);
  const auto model = ModelFile::open(path);
  REQUIRE(model);
  const auto* tensor = model->find_tensor(source.name);
  REQUIRE(tensor != nullptr);
  CHECK(std::string(to_string(tensor->dtype)) == std::string(to_string(dtype)));
  auto values = source.values;
  const auto block = *formats::block_of(source.dtype);
  std::vector<std::byte> stored(values.size() / block.values * block.bytes), expected(tensor->bytes);
  REQUIRE(formats::encode_row(source.dtype, values, stored));
  REQUIRE(formats::decode_row(source.dtype, stored, values));
  REQUIRE(formats::encode_row(dtype, values, expected));
  CHECK(data_of(*model, *tensor) == expected);
}

std::string both(const fs::path& in, const fs::path& out) { return in.string() + " " + out.string() + " "; }

}  // namespace

TEST_CASE("matrices take the format, the rest stays exact, and what does not fit falls back") {
  if (missing_tool()) return;
  const Scratch scratch;
  auto tensors = small_model();
  write_model(scratch / "in.gguf", tensors);
  const auto result = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "q4_k --verbose");
  INFO(result.err);
  REQUIRE(result.status == 0);
  const DType expected[] = {DType::q4_k, DType::f32, DType::q4_k, DType::f32, DType::q5_0,
                            DType::f16,  DType::f32, DType::q4_k, DType::q6_k};
  for (std::size_t i = 0; i < tensors.size(); ++i) check_tensor(scratch / "out.gguf", tensors[i], expected[i]);
  const auto line = [&](const std::string& name) { return result.err.substr(result.err.find(name + ": "), 200); };
  CHECK(line("blk.0.ffn_down.weight").find("F32 to Q5_0, 64.0 KiB to 11.0 KiB; Q5_0 instead of Q4_K") != std::string::npos);
  CHECK(line("blk.0.ffn_up.weight").find("F16 instead of Q4_K") != std::string::npos);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 9);  // a line for each tensor
  CHECK(result.out.find("Q4_K") != std::string::npos);
  CHECK(result.out.find("bits a weight") != std::string::npos);

  const auto quiet = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "q4_k");
  CHECK(quiet.err.empty());
  CHECK(quiet.out.find("2 tensors took another format") != std::string::npos);

  const auto model = ModelFile::open(scratch / "out.gguf");
  REQUIRE(model);
  CHECK(*model->metadata().string("general.architecture") == "llama");
  CHECK(*model->metadata().unsigned_integer("general.file_type") == 14);
  CHECK(*model->metadata().unsigned_integer("general.quantization_version") == 2);
  CHECK(model->metadata().array("tokenizer.ggml.tokens")->size() == 3);
  CHECK(scratch.files() == 2);
}

TEST_CASE("every format is written, with the fallbacks of llama.cpp") {
  if (missing_tool()) return;
  const Scratch scratch;
  auto tensors = small_model();
  write_model(scratch / "in.gguf", tensors);
  struct Case {
    const char* name;
    DType attention, down;
  };
  for (const Case& c : {Case{"F32", DType::f32, DType::f32}, {"F16", DType::f16, DType::f16},
                        {"bf16", DType::bf16, DType::bf16}, {"q8_0", DType::q8_0, DType::q8_0},
                        {"Q4_0", DType::q4_0, DType::q4_0}, {"Q4_1", DType::q4_1, DType::q4_1},
                        {"Q5_0", DType::q5_0, DType::q5_0}, {"Q5_1", DType::q5_1, DType::q5_1},
                        {"Q4_K_S", DType::q4_k, DType::q5_0}, {"Q5_K", DType::q5_k, DType::q5_1},
                        {"Q6_K", DType::q6_k, DType::q8_0}, {"Q3_K_S", DType::q3_k, DType::q4_0},
                        {"MXFP4", DType::mxfp4, DType::mxfp4}}) {
    const auto result = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + c.name);
    INFO(c.name << ": " << result.err);
    REQUIRE(result.status == 0);
    check_tensor(scratch / "out.gguf", tensors[2], c.attention);
    check_tensor(scratch / "out.gguf", tensors[4], c.down);
  }
}

TEST_CASE("output and embedding follow their options, and a tied embedding is the output") {
  if (missing_tool()) return;
  const Scratch scratch;
  auto tensors = small_model();
  write_model(scratch / "in.gguf", tensors);
  const auto files = both(scratch / "in.gguf", scratch / "out.gguf");
  REQUIRE(run(scratch, files + "Q4_0 --output-type q8_0 --embedding-type F16").status == 0);
  check_tensor(scratch / "out.gguf", tensors[0], DType::f16);
  check_tensor(scratch / "out.gguf", tensors[8], DType::q8_0);
  tensors.pop_back();
  write_model(scratch / "in.gguf", tensors);
  REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q4_0").status == 0);
  check_tensor(scratch / "out.gguf", tensors[0], DType::q6_k);
}

TEST_CASE("a quantised source needs --requantize") {
  if (missing_tool()) return;
  const Scratch scratch;
  std::vector<Tensor> tensors = {{"output.weight", {256, 8}, DType::q8_0}};
  write_model(scratch / "in.gguf", tensors);
  const auto refused = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q4_K");
  CHECK(refused.status == 1);
  CHECK(refused.err.find("--requantize") != std::string::npos);
  CHECK(scratch.files() == 1);
  REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q4_K --requantize").status == 0);
  check_tensor(scratch / "out.gguf", tensors[0], DType::q6_k);
  REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q8_0").status == 0);  // nothing to encode
  check_tensor(scratch / "out.gguf", tensors[0], DType::q8_0);
}

TEST_CASE("a failure leaves OUT as it was and no temporary file") {
  if (missing_tool()) return;
  const Scratch scratch;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<Tensor> tensors = {{"output.weight", {256, 8}}};
    tensors[0].values = random_values(2048);
    tensors[0].values[777] = bad;
    write_model(scratch / "in.gguf", tensors);
    std::ofstream(scratch / "out.gguf") << "as it was";
    const auto result = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q8_0");
    CHECK(result.status == 1);
    CHECK(result.err.find("output.weight: value 9 of row 3") != std::string::npos);
    CHECK(read_text(scratch / "out.gguf") == "as it was");
    CHECK(scratch.files() == 2);
  }
}

TEST_CASE("usage errors are one line and status 2, failures one line and status 1") {
  if (missing_tool()) return;
  const Scratch scratch;
  auto tensors = small_model();
  write_model(scratch / "in.gguf", tensors);
  fs::create_symlink(scratch / "in.gguf", scratch / "link.gguf");
  const auto before = read_text(scratch / "in.gguf");
  const auto check = [&](int status, const std::string& arguments) {
    INFO(arguments);
    const auto result = run(scratch, arguments);
    CHECK(result.status == status);
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.out.empty());
  };
  check(2, "");
  check(2, both(scratch / "in.gguf", scratch / "out.gguf"));
  check(2, both(scratch / "in.gguf", scratch / "out.gguf") + "IQ3_S");
  check(2, both(scratch / "in.gguf", scratch / "out.gguf") + "Q8_0 --threads -1");
  check(2, both(scratch / "in.gguf", scratch / "out.gguf") + "Q8_0 --output-type Q4_K_M");
  check(2, both(scratch / "in.gguf", scratch / "out.gguf") + "Q8_0 --wrong");
  check(2, both(scratch / "in.gguf", scratch / "in.gguf") + "Q8_0");
  check(2, both(scratch / "in.gguf", scratch / "link.gguf") + "Q8_0");
  check(1, both(scratch / "absent.gguf", scratch / "out.gguf") + "Q8_0");
  check(1, both(scratch / "in.gguf", scratch.dir) + "Q8_0");
  CHECK(read_text(scratch / "in.gguf") == before);
  CHECK(run(scratch, "--help").status == 0);
}

TEST_CASE("the number of threads does not show") {
  if (missing_tool()) return;
  const Scratch scratch;
  std::vector<Tensor> tensors = {{"blk.0.attn_q.weight", {512, 300}}, {"output.weight", {256, 8}}};
  write_model(scratch / "in.gguf", tensors);
  REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "a.gguf") + "Q4_K -t 1").status == 0);
  REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "b.gguf") + "Q4_K -t 5").status == 0);
  CHECK(read_text(scratch / "a.gguf") == read_text(scratch / "b.gguf"));
}

namespace {

// A model of 16 layers whose matrices are smallest possible.
std::vector<Tensor> deep_model(bool fused = false) {
  std::vector<Tensor> tensors = {{"token_embd.weight", {256, 4}}};
  for (int layer = 0; layer < 16; ++layer) {
    const std::string blk = "blk." + std::to_string(layer) + ".";
    if (fused) tensors.push_back({blk + "attn_qkv.weight", {256, 3}});
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"}) {
      if (fused && (name == std::string("attn_q") || name == std::string("attn_k") || name == std::string("attn_v"))) continue;
      tensors.push_back({blk + name + ".weight", {256, 1}});
    }
    tensors.push_back({blk + "ffn_gate_inp.weight", {256, 2}});
  }
  tensors.push_back({"output.weight", {256, 4}});
  return tensors;
}

void write_deep_model(const fs::path& path, const char* architecture, std::vector<Tensor> tensors) {
  GgufWriter writer;
  REQUIRE(writer.set_string("general.architecture", architecture));
  REQUIRE(writer.set((std::string(architecture) + ".block_count").c_str(), std::uint32_t{16}));
  for (auto& tensor : tensors) {
    tensor.values = random_values(tensor.dims[0] * tensor.dims[1]);
    REQUIRE(writer.add_tensor(tensor.name, tensor.dtype, tensor.dims));
  }
  std::size_t next = 0;
  REQUIRE(writer.write_file(path, [&](std::string_view, const ByteSink& write) {
    return write(std::as_bytes(std::span(tensors[next++].values)));
  }));
}

// What each layer's tensor of this name became: a letter a layer, by the bits: 4, 5, 6, 8.
std::string formats_by_layer(const ModelFile& model, const std::string& name) {
  std::string letters;
  for (int layer = 0; layer < 16; ++layer) {
    const auto* tensor = model.find_tensor("blk." + std::to_string(layer) + "." + name + ".weight");
    const std::string type(tensor == nullptr ? "-" : to_string(tensor->dtype));
    letters += tensor == nullptr ? type : type.substr(type.find_first_of("12345678"), 1);
  }
  return letters;
}

}  // namespace

TEST_CASE("mixes give more bits where llama.cpp does") {
  if (missing_tool()) return;
  const Scratch scratch;
  struct Case {
    const char* architecture;
    const char* mix;
    std::uint32_t file_type;
    const char* values;
    const char* down;
    const char* others;
    const char* output = nullptr;  // of attention, if not as the others
  };
  for (const Case& c : {Case{"llama", "Q4_K_M", 15, "6644644644644666", "6644644644644666", "4444444444444444"},
                        {"llama", "q4_k_s", 14, "5555444444444444", "5544444444444444", "4444444444444444"},
                        {"llama", "Q5_K_M", 17, "6655655655655666", "6655655655655666", "5555555555555555"},
                        {"llama", "Q5_K_S", 16, "5555555555555555", "5555555555555555", "5555555555555555"},
                        {"llama", "Q6_K", 18, "6666666666666666", "6666666666666666", "6666666666666666"},
                        {"llama", "Q4_K", 14, "4444444444444444", "4444444444444444", "4444444444444444"},
                        {"llama", "Q2_K", 10, "3333333333333333", "3333333333333333", "2222222222222222", "3333333333333333"},
                        {"llama", "Q3_K_S", 11, "3333333333333333", "3333333333333333", "3333333333333333"},
                        {"llama", "Q3_K_M", 12, "5544444444444444", "5444444444444444", "3333333333333333", "4444444444444444"},
                        {"llama", "Q3_K_L", 13, "5555555555555555", "5555555555555555", "3333333333333333", "5555555555555555"},
                        {"llama", "IQ4_XS", 30, "4444444444444444", "5544444444444444", "4444444444444444"},
                        {"llama", "IQ4_NL", 25, "4444444444444444", "5544444444444444", "4444444444444444"},
                        {"falcon", "Q4_K_M", 15, "6644644644644666", "6544544544544555", "4444444444444444"}}) {
    INFO(c.architecture << " " << c.mix);
    write_deep_model(scratch / "in.gguf", c.architecture, deep_model());
    REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + c.mix).status == 0);
    const auto model = ModelFile::open(scratch / "out.gguf");
    REQUIRE(model);
    CHECK(*model->metadata().unsigned_integer("general.file_type") == c.file_type);
    CHECK(formats_by_layer(*model, "attn_v") == c.values);
    CHECK(formats_by_layer(*model, "ffn_down") == c.down);
    for (const char* name : {"attn_q", "attn_k", "ffn_up"}) CHECK(formats_by_layer(*model, name) == c.others);
    CHECK(formats_by_layer(*model, "attn_output") == (c.output != nullptr ? c.output : c.others));
    CHECK(model->find_tensor("blk.0.ffn_gate_inp.weight")->dtype == DType::f32);
    CHECK(model->find_tensor("output.weight")->dtype == (c.architecture == std::string("falcon") ? DType::q8_0 : DType::q6_k));
  }
  write_deep_model(scratch / "in.gguf", "phi2", deep_model(true));
  REQUIRE(run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q4_K_M").status == 0);
  CHECK(formats_by_layer(*ModelFile::open(scratch / "out.gguf"), "attn_qkv") == "5555555555555555");
}

TEST_CASE("a mix that tessera has no weights for is told apart from no format at all") {
  if (missing_tool()) return;
  const Scratch scratch;
  auto tensors = small_model();
  write_model(scratch / "in.gguf", tensors);
  const auto later = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "IQ3_M");
  CHECK(later.status == 2);
  CHECK(later.err.find("IQ3_M is not available yet") != std::string::npos);
  const auto never = run(scratch, both(scratch / "in.gguf", scratch / "out.gguf") + "Q4_M");
  CHECK(never.status == 2);
  CHECK(never.err.find("'Q4_M' is not a format; there are F32") != std::string::npos);
}

TEST_CASE("Q4_K_M has the formats of a file that llama.cpp's quantiser wrote") {
  if (missing_tool()) return;
  const char* home = std::getenv("HOME");
  const fs::path theirs = fs::path(home == nullptr ? "/" : home) / ".cache/tessera-models/gemma-3-270m-q4_k_m.gguf";
  if (!fs::exists(theirs)) return tests::skip("no " + theirs.string() + " (shared/get-models gemma3)");
  const Scratch scratch;
  REQUIRE(run(scratch, both(theirs, scratch / "out.gguf") + "Q4_K_M --requantize").status == 0);
  const auto want = ModelFile::open(theirs), got = ModelFile::open(scratch / "out.gguf");
  REQUIRE(want);
  REQUIRE(got);
  for (const GgufTensor& tensor : want->tensors()) {
    INFO(tensor.name);
    CHECK(got->find_tensor(tensor.name)->dtype == tensor.dtype);
  }
}

TEST_CASE("a model that people use is quantised to every format") {
  if (missing_tool()) return;
  const fs::path model = fs::path(TESSERA_SHARED_DIR) / "models/stories260K-f32.gguf";
  if (!fs::exists(model)) return tests::skip("no " + model.string());
  const Scratch scratch;
  for (const char* format : {"F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q4_K_M", "Q5_K_M", "Q5_K", "Q6_K"}) {
    INFO(format);
    const auto out = scratch / "out.gguf";
    REQUIRE(run(scratch, both(model, out) + format).status == 0);
    const auto source = ModelFile::open(model), quantised = ModelFile::open(out);
    REQUIRE(quantised);
    CHECK(quantised->tensors().size() == source->tensors().size());
    CHECK(fs::file_size(out) < fs::file_size(model));
  }
}

}  // namespace test_quantize_tool
