// tessera-quantize --imatrix as a user runs it: which importance guides which row, and what is refused.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <tessera/extend/files/gguf_writer.hpp>
#include <tessera/extend/files/model_file.hpp>
#include <tessera/extend/formats/rows.hpp>
#include <tessera/unstable/formats/weighted_rows.hpp>

#include "catch.hpp"

namespace test_quantize_importance {

using namespace tessera;

namespace {

// Files of one test, gone at its end.
struct ImatrixFiles {
  std::filesystem::path dir = std::filesystem::temp_directory_path() / ("tessera-imatrix-" + std::to_string(std::random_device{}()));
  ImatrixFiles() { std::filesystem::create_directories(dir); }
  ~ImatrixFiles() { std::filesystem::remove_all(dir); }
  [[nodiscard]] std::filesystem::path operator/(const char* name) const { return dir / name; }
};

struct QuantizeRun {
  int status;
  std::string err;
};

// tessera-quantize in.gguf out.gguf Q3_K --imatrix FILE
QuantizeRun quantize_with(const ImatrixFiles& files, const char* imatrix) {
  const std::string err = (files / "err").string();
  const std::string command = std::string(TESSERA_BIN_DIR) + "/tessera-quantize " + (files / "in.gguf").string() + " " +
                              (files / "out.gguf").string() + " Q3_K --imatrix " + (files / imatrix).string() + " >/dev/null 2>" + err;
  const int raw = std::system(command.c_str());
  std::ifstream text(err, std::ios::binary);
  return {WIFEXITED(raw) ? WEXITSTATUS(raw) : -1, {std::istreambuf_iterator<char>(text), {}}};
}

bool lacks_quantize() {
  if (std::filesystem::exists(std::string(TESSERA_BIN_DIR) + "/tessera-quantize")) return false;
  tests::skip("tessera-quantize is not built (TESSERA_BUILD_TOOLS)");
  return true;
}

struct Weights {
  std::string name;
  std::vector<std::uint64_t> dims;
  std::vector<float> values = {};
};

std::vector<Weights> write_weights(const std::filesystem::path& path) {
  std::vector<Weights> all = {{"token_embd.weight", {256, 12}}, {"blk.0.attn_q.weight", {768, 100}},
                              {"blk.0.ffn_gate_exps.weight", {256, 4, 2}}, {"output.weight", {256, 12}}};
  GgufWriter writer;
  REQUIRE(writer.set_string("general.architecture", "llama"));
  std::mt19937 random(1);
  for (Weights& of : all) {
    std::size_t n = 1;
    for (const auto dim : of.dims) n *= dim;
    for (std::size_t i = 0; i < n; ++i) of.values.push_back((static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f) * 0.1f);
    REQUIRE(writer.add_tensor(of.name, DType::f32, of.dims));
  }
  std::size_t next = 0;
  REQUIRE(writer.write_file(path, [&](std::string_view, const ByteSink& write) { return write(std::as_bytes(std::span(all[next++].values))); }));
  return all;
}

struct ImatrixSums {
  std::string name;
  std::vector<std::uint64_t> dims;  // inputs, matrices
  std::vector<float> sums, counts;
};

void write_importance(const std::filesystem::path& path, const std::vector<ImatrixSums>& all, const char* type = "imatrix") {
  GgufWriter writer;
  REQUIRE(writer.set_string("general.type", type));
  for (const ImatrixSums& of : all) {
    REQUIRE(writer.add_tensor(of.name + ".in_sum2", DType::f32, of.dims));
    const std::uint64_t counts[] = {1, of.counts.size()};
    if (!of.counts.empty()) REQUIRE(writer.add_tensor(of.name + ".counts", DType::f32, counts));
  }
  REQUIRE(writer.write_file(path, [&](std::string_view name, const ByteSink& write) -> Status {
    for (const ImatrixSums& of : all) {
      if (name == of.name + ".in_sum2") return write(std::as_bytes(std::span(of.sums)));
      if (name == of.name + ".counts") return write(std::as_bytes(std::span(of.counts)));
    }
    return {};
  }));
}

std::vector<float> uneven(std::size_t n) {
  std::mt19937 random(5);
  std::vector<float> values(n);
  for (float& value : values) value = random() % 5 == 0 ? 100.0f : 0.01f * static_cast<float>(random() % 100);
  return values;
}

}  // namespace

TEST_CASE("an importance matrix guides each row, and each expert by its own") {
  if (lacks_quantize()) return;
  const ImatrixFiles scratch;
  const auto tensors = write_weights(scratch / "in.gguf");
  const std::vector<ImatrixSums> all = {{"blk.0.attn_q.weight", {768, 1}, uneven(768), {4}},
                                 {"blk.0.ffn_gate_exps.weight", {256, 2}, uneven(512), {2, 8}}};
  write_importance(scratch / "imatrix", all);
  const QuantizeRun done = quantize_with(scratch, "imatrix");
  INFO(done.err);
  CHECK(done.status == 0);
  // What it says nothing of is named.
  for (const char* name : {"token_embd.weight", "output.weight"}) CHECK(done.err.find(name) != std::string::npos);
  CHECK(done.err.find("attn_q") == std::string::npos);
  const auto model = ModelFile::open(scratch / "out.gguf");
  REQUIRE(model);
  for (const ImatrixSums& of : all) {
    CAPTURE(of.name);
    const auto source = std::ranges::find_if(tensors, [&](const Weights& t) { return t.name == of.name; });
    const GgufTensor& tensor = *model->find_tensor(of.name);
    CHECK(tensor.dtype == DType::q3_k);
    std::vector<float> importance(source->values.size());
    for (std::size_t i = 0; i < importance.size(); ++i) {
      const std::size_t matrix = i / (tensor.dims[0] * tensor.dims[1]);
      importance[i] = of.sums[matrix * tensor.dims[0] + i % tensor.dims[0]] / of.counts[matrix];
    }
    std::vector<std::byte> guided(tensor.bytes), plain(tensor.bytes);
    REQUIRE(formats::encode_weighted_row(DType::q3_k, source->values, importance, guided));
    REQUIRE(formats::encode_row(DType::q3_k, source->values, plain));
    std::vector<std::byte> written(tensor.bytes);
    REQUIRE(model->read(tensor, 0, written));
    CHECK(written == guided);
    CHECK(guided != plain);
  }
}

TEST_CASE("an importance matrix of another model, or none, is refused, and OUT is untouched") {
  if (lacks_quantize()) return;
  const ImatrixFiles scratch;
  (void)write_weights(scratch / "in.gguf");
  const auto refused = [&](const std::vector<ImatrixSums>& all, const char* type, const std::string& says) {
    write_importance(scratch / "imatrix", all, type);
    const QuantizeRun done = quantize_with(scratch, "imatrix");
    INFO(done.err);
    CHECK(done.status == 1);
    CHECK(done.err.find(says) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(scratch / "out.gguf"));
  };
  const std::string q = "blk.0.attn_q.weight";
  refused({{q, {768, 1}, uneven(768), {4}}}, "adapter", "general.type is \"adapter\"");
  refused({}, "imatrix", "no tensor");
  refused({{"blk.9.attn_q.weight", {256, 1}, uneven(256), {4}}}, "imatrix", "blk.9.attn_q.weight");
  refused({{q, {128, 1}, uneven(128), {4}}}, "imatrix", "768 inputs");
  refused({{q, {768, 2}, uneven(1536), {4, 4}}}, "imatrix", "1 matrices");
  refused({{"blk.0.ffn_gate_exps.weight", {256, 1}, uneven(256), {4}}}, "imatrix", "2 matrices");
  refused({{q, {768, 1}, uneven(768), {}}}, "imatrix", "counts are missing");
  refused({{q, {768, 1}, std::vector<float>(768, -1.0f), {4}}}, "imatrix", "damaged");
  refused({{q, {768, 1}, uneven(768), {std::numeric_limits<float>::quiet_NaN()}}}, "imatrix", "damaged");
  const QuantizeRun missing = quantize_with(scratch, "nowhere");
  CHECK(missing.status == 1);
  CHECK(missing.err.find("nowhere") != std::string::npos);
}

}  // namespace test_quantize_importance
