// Quantised layers of model folders become rows that decode to exactly the weights which they stand for.
#include "catch.hpp"
#include "files/quantised/awq.hpp"
#include "files/quantised/codebook4.hpp"
#include "files/quantised/fp4.hpp"
#include "files/quantised/fp8.hpp"
#include "files/quantised/gptq.hpp"
#include "files/quantised/packed_integers.hpp"
#include "files/quantised/scaled_int8.hpp"
#include "files/safetensors/safetensors_folder.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace test_quantised {

using namespace tessera;
using namespace tessera::detail;

namespace {

// The layers that make_quantised_goldens.py has written.
class Goldens {
 public:
  Goldens() : file_(*SafetensorsFolder::open(TESSERA_SOURCE_DIR "/tests/files/data/quantised.safetensors")) {
    for (const SafetensorsTensor& tensor : file_.tensors()) {
      names_.emplace_back(tensor.name);
      bytes_.emplace_back(tensor.bytes);
      REQUIRE(file_.read(tensor, 0, bytes_.back()));
    }
    REQUIRE(names_.size() > 100);
  }
  // Empty if the layer has no such tensor.
  [[nodiscard]] std::span<const std::byte> operator()(const std::string& layer, const std::string& part) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == layer + "." + part) return bytes_[i];
    }
    return {};
  }
  [[nodiscard]] std::vector<float> floats(const std::string& layer, const std::string& part) const {
    const auto bytes = (*this)(layer, part);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    REQUIRE_FALSE(values.empty());
    return values;
  }

 private:
  SafetensorsFolder file_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::byte>> bytes_;
};

using Decode = std::function<Status(std::uint64_t first, std::uint64_t rows, std::span<std::byte> out)>;

// Checks that the rows in `form` decode to `expected`, all at once and two at a time; F16 and BF16 to the nearest numbers of the type.
void check_rows_equal(const std::string& layer, DType form, std::uint64_t outputs, std::vector<float> expected, const Decode& decode) {
  for (float& value : expected) {
    if (form == DType::f16) value = f16_to_f32(f32_to_f16(value));
    if (form == DType::bf16) value = bf16_to_f32(f32_to_bf16(value));
  }
  INFO(layer << " as " << to_string(form));
  const std::uint64_t inputs = expected.size() / outputs, row_bytes = form_row_bytes(form, inputs);
  std::vector<std::byte> all(outputs * row_bytes), pieces(all.size());
  REQUIRE(decode(0, outputs, all));
  for (std::uint64_t first = 0; first < outputs; first += 2) {
    const std::uint64_t rows = std::min<std::uint64_t>(2, outputs - first);
    REQUIRE(decode(first, rows, std::span(pieces).subspan(first * row_bytes, rows * row_bytes)));
  }
  CHECK(all == pieces);
  std::vector<float> values(expected.size());
  for (std::uint64_t row = 0; row < outputs; ++row) {
    REQUIRE(formats::decode_row(form, std::span(all).subspan(row * row_bytes, row_bytes), std::span(values).subspan(row * inputs, inputs)));
  }
  std::size_t differ = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] == expected[i] || (std::isnan(values[i]) && std::isnan(expected[i])))) ++differ;
  }
  CHECK(differ == 0);
  // Ranges that do not exist, and room of another size.
  CHECK(decode(outputs, 1, std::span(all).first(row_bytes)).error().code() == ErrorCode::invalid_argument);
  CHECK(decode(~std::uint64_t{0}, 2, std::span(all).first(2 * row_bytes)).error().code() == ErrorCode::invalid_argument);
  CHECK(decode(0, 1, std::span(all).first(row_bytes - 1)).error().code() == ErrorCode::invalid_argument);
}

// The error of a layer one of whose tensors lacks its last byte.
template <class Layer>
void check_short(Layer layer, std::span<const std::byte> Layer::* tensor, Status (*check)(const Layer&)) {
  layer.*tensor = (layer.*tensor).first((layer.*tensor).size() - 1);
  CHECK(check(layer).error().code() == ErrorCode::corrupt_file);
}

Status gptq_status(const GptqLayer& layer) {
  const auto checked = check_gptq(layer);
  return checked ? Status() : checked.error();
}
Status packed_status(const PackedIntegersLayer& layer) {
  const auto checked = check_packed_integers(layer);
  return checked ? Status() : checked.error();
}

}  // namespace

TEST_CASE("GPTQ layers of 2, 3, 4 and 8 bits") {
  const Goldens goldens;
  struct Case {
    const char* name;
    unsigned bits;
    GptqVersion version;
    bool symmetric, act_order;
    DType form;
  };
  const Case kCases[] = {
      {"gptq2", 2, GptqVersion::v1, true, false, DType::q4_0},      {"gptq3", 3, GptqVersion::v1, false, false, DType::q4_0},
      {"gptq3v2", 3, GptqVersion::v2, true, false, DType::q4_0},    {"gptq4", 4, GptqVersion::v1, true, false, DType::q4_0},
      {"gptq4zero", 4, GptqVersion::v1, false, false, DType::q5_0}, {"gptq4v2", 4, GptqVersion::v2, false, false, DType::q5_0},
      {"gptq8", 8, GptqVersion::v2, true, false, DType::q8_0},      {"gptq8zero", 8, GptqVersion::v1, false, false, DType::f16},
      {"gptq4order", 4, GptqVersion::v1, true, true, DType::f16},
  };
  for (const Case& c : kCases) {
    INFO(c.name);
    GptqLayer layer{.shape = {.outputs = 32, .inputs = 64, .group = 32},
                    .bits = c.bits,
                    .version = c.version,
                    .symmetric = c.symmetric,
                    .qweight = goldens(c.name, "qweight"),
                    .qzeros = goldens(c.name, "qzeros"),
                    .scales = goldens(c.name, "scales"),
                    .g_idx = goldens(c.name, "g_idx")};
    const auto act_order = check_gptq(layer);
    REQUIRE(act_order);
    CHECK(*act_order == c.act_order);
    CHECK(gptq_form(layer, *act_order) == c.form);
    check_rows_equal(c.name, c.form, 32, goldens.floats(c.name, "expected"),
                     [&](auto first, auto rows, auto out) { return decode_gptq(layer, *act_order, first, rows, out); });
    for (const auto tensor : {&GptqLayer::qweight, &GptqLayer::qzeros, &GptqLayer::scales, &GptqLayer::g_idx}) {
      check_short(layer, tensor, gptq_status);
    }
    if (!c.symmetric) {
      layer.symmetric = true;
      std::vector<std::byte> out(32 * form_row_bytes(gptq_form(layer, false), 64));
      CHECK_THAT(decode_gptq(layer, false, 0, 32, out).error().message(), Catch::Contains("set \"sym\" to false"));
    }
  }
}

TEST_CASE("GPTQ layers that cannot be") {
  const Goldens goldens;
  GptqLayer layer{.shape = {.outputs = 32, .inputs = 64, .group = 32},
                  .qweight = goldens("gptq4", "qweight"),
                  .qzeros = goldens("gptq4", "qzeros"),
                  .scales = goldens("gptq4", "scales")};
  CHECK(check_gptq(layer));
  std::vector<std::int32_t> groups(64, 0);
  groups[7] = 2;
  layer.g_idx = std::as_bytes(std::span(groups));
  CHECK(check_gptq(layer).error().message() == "g_idx puts input 7 into group 2 of 2");
  groups[7] = -1;
  CHECK(check_gptq(layer).error().message() == "g_idx puts input 7 into group -1 of 2");
  layer.g_idx = {};
  for (const unsigned bits : {0u, 1u, 5u, 16u, 33u}) {
    layer.bits = bits;
    CHECK(check_gptq(layer).error().code() == ErrorCode::unsupported);
  }
  layer.bits = 4;
  for (const LinearShape shape : {LinearShape{0, 64, 32}, LinearShape{32, 0, 32}, LinearShape{32, 64, 0}, LinearShape{33, 64, 32},
                                  LinearShape{32, 65, 32}, LinearShape{std::uint64_t{1} << 60, std::uint64_t{1} << 60, 32}}) {
    layer.shape = shape;
    CHECK_FALSE(check_gptq(layer));
  }
}

TEST_CASE("AWQ layers") {
  const Goldens goldens;
  const AwqLayer layer{.shape = {.outputs = 16, .inputs = 64, .group = 32},
                       .qweight = goldens("awq", "qweight"),
                       .qzeros = goldens("awq", "qzeros"),
                       .scales = goldens("awq", "scales")};
  REQUIRE(check_awq(layer));
  CHECK(awq_form(layer) == DType::q5_0);
  check_rows_equal("awq", DType::q5_0, 16, goldens.floats("awq", "expected"),
                   [&](auto first, auto rows, auto out) { return decode_awq(layer, first, rows, out); });
  for (const auto tensor : {&AwqLayer::qweight, &AwqLayer::qzeros, &AwqLayer::scales}) {
    check_short(layer, tensor, +[](const AwqLayer& l) { return check_awq(l); });
  }
}

TEST_CASE("integers of compressed-tensors") {
  const Goldens goldens;
  struct Case {
    const char* name;
    unsigned bits;
    bool packed;
    ScaleType scale_type;
    std::uint64_t inputs, group;
    DType form;
  };
  const Case kCases[] = {
      {"packed4", 4, true, ScaleType::bf16, 64, 32, DType::q4_0},     {"packed4zero", 4, true, ScaleType::f16, 64, 32, DType::q5_0},
      {"packed4row", 4, true, ScaleType::f16, 64, 64, DType::q4_0},   {"packed4odd", 4, true, ScaleType::bf16, 52, 20, DType::bf16},
      {"packed4order", 4, true, ScaleType::f16, 64, 32, DType::f16},  {"packed8", 8, true, ScaleType::bf16, 64, 32, DType::q8_0},
      {"packed8zero", 8, true, ScaleType::f16, 64, 32, DType::f16},   {"int8", 8, false, ScaleType::bf16, 64, 64, DType::q8_0},
      {"int8zero", 8, false, ScaleType::f32, 64, 64, DType::f32},
  };
  for (const Case& c : kCases) {
    INFO(c.name);
    PackedIntegersLayer layer{.shape = {.outputs = 6, .inputs = c.inputs, .group = c.group},
                              .bits = c.bits,
                              .packed = c.packed,
                              .scale_type = c.scale_type,
                              .weight = goldens(c.name, "weight"),
                              .scales = goldens(c.name, "scales"),
                              .zeros = goldens(c.name, "zeros"),
                              .g_idx = goldens(c.name, "g_idx")};
    const auto reordered = check_packed_integers(layer);
    REQUIRE(reordered);
    CHECK(packed_integers_form(layer, *reordered) == c.form);
    std::uint64_t rounded = 0;
    check_rows_equal(c.name, c.form, 6, goldens.floats(c.name, "expected"), [&](auto first, auto rows, auto out) {
      return decode_packed_integers(layer, *reordered, first, rows, out, rounded);
    });
    CHECK(rounded == 0);
    for (const auto tensor : {&PackedIntegersLayer::weight, &PackedIntegersLayer::scales, &PackedIntegersLayer::zeros,
                              &PackedIntegersLayer::g_idx}) {
      if (!(layer.*tensor).empty()) check_short(layer, tensor, packed_status);
    }
  }

  // A BF16 scale that no F16 number equals is rounded, and told: 2^-24 + 2^-31.
  const std::uint16_t scale[] = {0x3381};
  const std::vector<std::byte> weight(16, std::byte{0x99});
  const PackedIntegersLayer tiny{.shape = {.outputs = 1, .inputs = 32, .group = 32},
                                 .weight = weight,
                                 .scales = std::as_bytes(std::span(scale))};
  REQUIRE(check_packed_integers(tiny));
  std::byte block[18];
  std::uint64_t rounded = 0;
  REQUIRE(decode_packed_integers(tiny, false, 0, 1, block, rounded));
  CHECK(rounded == 1);
}

TEST_CASE("FP8 layers") {
  const Goldens goldens;
  struct Case {
    const char* name;
    std::uint64_t block_outputs, block_inputs;
    Fp8Type type;
    Fp8ScaleType scale_type;
  };
  const Case kCases[] = {
      {"fp8tensor", 5, 40, Fp8Type::e4m3, Fp8ScaleType::f32}, {"fp8row", 1, 40, Fp8Type::e4m3, Fp8ScaleType::bf16},
      {"fp8block", 2, 16, Fp8Type::e4m3, Fp8ScaleType::f32},  {"fp8e8m0", 2, 16, Fp8Type::e4m3, Fp8ScaleType::e8m0},
      {"fp8e5m2", 2, 16, Fp8Type::e5m2, Fp8ScaleType::f16},
  };
  for (const Case& c : kCases) {
    INFO(c.name);
    const Fp8Layer layer{.outputs = 5,
                         .inputs = 40,
                         .block_outputs = c.block_outputs,
                         .block_inputs = c.block_inputs,
                         .type = c.type,
                         .scale_type = c.scale_type,
                         .weight = goldens(c.name, "weight"),
                         .scales = goldens(c.name, "scales")};
    REQUIRE(check_fp8(layer));
    check_rows_equal(c.name, DType::f32, 5, goldens.floats(c.name, "expected"),
                     [&](auto first, auto rows, auto out) { return decode_fp8(layer, DType::f32, first, rows, out); });
    const auto bf16 = goldens(c.name, "bf16");
    std::vector<float> expected(bf16.size() / 2);
    REQUIRE(formats::decode_row(DType::bf16, bf16, expected));
    check_rows_equal(c.name, DType::bf16, 5, expected,
                     [&](auto first, auto rows, auto out) { return decode_fp8(layer, DType::bf16, first, rows, out); });
    for (const auto tensor : {&Fp8Layer::weight, &Fp8Layer::scales}) {
      check_short(layer, tensor, +[](const Fp8Layer& l) { return check_fp8(l); });
    }
    std::byte out[40];
    CHECK(decode_fp8(layer, DType::q8_0, 0, 1, out).error().code() == ErrorCode::invalid_argument);
  }
}

TEST_CASE("MXFP4 and NVFP4 rows") {
  const Goldens goldens;
  for (const bool mx : {true, false}) {
    const std::string name = mx ? "mxfp4" : "nvfp4";
    Fp4Rows rows{.rows = 4, .inputs = 128, .weights = goldens(name, "weights"), .scales = goldens(name, "scales")};
    const auto check = mx ? check_mxfp4 : check_nvfp4;
    const auto decode = mx ? decode_mxfp4 : decode_nvfp4;
    const DType form = mx ? DType::mxfp4 : DType::nvfp4;
    REQUIRE(check(rows));
    const auto expected = goldens.floats(name, "expected");
    check_rows_equal(name, form, 4, expected, [&](auto first, auto count, auto out) { return decode(rows, {first, count}, out); });

    // Every second row, from row 1 on.
    const std::uint64_t row_bytes = form_row_bytes(form, 128);
    std::vector<std::byte> odd(2 * row_bytes), all(4 * row_bytes);
    REQUIRE(decode(rows, {.first = 1, .count = 2, .step = 2}, odd));
    REQUIRE(decode(rows, {.first = 0, .count = 4}, all));
    for (std::uint64_t i = 0; i < 2; ++i) {
      CHECK(std::ranges::equal(std::span(odd).subspan(i * row_bytes, row_bytes), std::span(all).subspan((2 * i + 1) * row_bytes, row_bytes)));
    }
    CHECK_FALSE(decode(rows, {.first = 1, .count = 3, .step = 2}, std::span(all).first(3 * row_bytes)));
    CHECK_FALSE(decode(rows, {.first = 1, .count = 3, .step = ~std::uint64_t{0}}, std::span(all).first(3 * row_bytes)));

    check_short(rows, &Fp4Rows::weights, +check);
    check_short(rows, &Fp4Rows::scales, +check);
    std::vector<std::byte> scales(rows.scales.begin(), rows.scales.end());
    scales.back() = std::byte{255};
    rows.scales = scales;
    CHECK(check(rows).error().code() == ErrorCode::corrupt_file);
    rows.inputs = 120;
    CHECK(check(rows).error().code() == ErrorCode::unsupported);
  }
}

TEST_CASE("NF4 layers") {
  const Goldens goldens;
  for (const char* name : {"nf4", "nf4nested"}) {
    Codebook4Layer layer{.outputs = 6,
                         .inputs = 80,
                         .nested_block = 4,
                         .weight = goldens(name, "weight"),
                         .table = goldens(name, "table"),
                         .absmax = goldens(name, "absmax"),
                         .nested_absmax = goldens(name, "nested_absmax"),
                         .nested_table = goldens(name, "nested_table")};
    if (!layer.nested_table.empty()) layer.nested_offset = goldens.floats(name, "offset")[0];
    REQUIRE(check_codebook4(layer));
    check_rows_equal(name, DType::f32, 6, goldens.floats(name, "expected"),
                     [&](auto first, auto rows, auto out) { return decode_codebook4(layer, first, rows, out); });
    for (const auto tensor : {&Codebook4Layer::weight, &Codebook4Layer::table, &Codebook4Layer::absmax, &Codebook4Layer::nested_absmax,
                              &Codebook4Layer::nested_table}) {
      if (!(layer.*tensor).empty()) check_short(layer, tensor, +[](const Codebook4Layer& l) { return check_codebook4(l); });
    }
  }
}

TEST_CASE("an odd number of 4-bit weights leaves half a byte unused") {
  std::vector<float> table(16);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  const std::byte weight[] = {std::byte{0x12}, std::byte{0x3f}};
  const float absmax[] = {0.5f};
  const Codebook4Layer layer{.outputs = 3,
                             .inputs = 1,
                             .weight = weight,
                             .table = std::as_bytes(std::span(table)),
                             .absmax = std::as_bytes(std::span(absmax))};
  REQUIRE(check_codebook4(layer));
  float values[3];
  REQUIRE(decode_codebook4(layer, 0, 3, std::as_writable_bytes(std::span(values))));
  CHECK(values[0] == 0.5f);
  CHECK(values[1] == 1.0f);
  CHECK(values[2] == 1.5f);
}

TEST_CASE("layers of bitsandbytes' 8 bits") {
  const Goldens goldens;
  const ScaledInt8Layer layer{.outputs = 3, .inputs = 40, .weight = goldens("bnb8", "weight"), .scb = goldens("bnb8", "scb")};
  REQUIRE(check_scaled_int8(layer));
  check_rows_equal("bnb8", DType::f32, 3, goldens.floats("bnb8", "expected"),
                   [&](auto first, auto rows, auto out) { return decode_scaled_int8(layer, first, rows, out); });
  for (const auto tensor : {&ScaledInt8Layer::weight, &ScaledInt8Layer::scb}) {
    check_short(layer, tensor, +[](const ScaledInt8Layer& l) { return check_scaled_int8(l); });
  }
}

}  // namespace test_quantised
