// GGUF files made by hand for tests, from the specification and without our writer: so that any of their fields can be
// wrong. Remembers where counts, lengths, types and offsets stand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/extend/files/gguf.hpp>

#include "formats/formats.hpp"

namespace gguf_bytes {

using tessera::DType;
using tessera::GgufType;

struct Builder {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> fields;  // offsets of counts, lengths, types, dimensions and tensor offsets
  std::vector<std::uint64_t> tensor_bytes;
  std::uint64_t alignment = 32;
  std::uint64_t data_bytes = 0;
  std::uint64_t keys = 0, tensors = 0;

  explicit Builder(std::uint32_t version = 3) {
    text("GGUF");
    field<std::uint32_t>(version);
    field<std::uint64_t>(0);
    field<std::uint64_t>(0);
  }

  template <class T>
  Builder& put(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
    return *this;
  }
  template <class T>
  Builder& field(T value) {
    fields.push_back(bytes.size());
    return put(value);
  }
  Builder& text(std::string_view value) {
    const auto* from = reinterpret_cast<const std::byte*>(value.data());
    bytes.insert(bytes.end(), from, from + value.size());
    return *this;
  }
  Builder& string(std::string_view value) { return field<std::uint64_t>(value.size()).text(value); }
  Builder& type(GgufType value) { return field(static_cast<std::uint32_t>(value)); }

  Builder& key(std::string_view name, GgufType value_type) {
    ++keys;
    return string(name).type(value_type);
  }
  Builder& array(std::string_view name, GgufType element, std::uint64_t count) {
    return key(name, GgufType::array).type(element).field(count);
  }
  // Its data stand after those of the tensors before it.
  Builder& tensor(std::string_view name, DType dtype, const std::vector<std::uint64_t>& dims) {
    ++tensors;
    string(name).field(static_cast<std::uint32_t>(dims.size()));
    std::uint64_t values = 1;
    for (const auto dim : dims) values *= dim, field(dim);
    field(static_cast<std::uint32_t>(dtype));
    field(data_bytes);
    const auto block = tessera::formats::block_of(dtype).value_or(tessera::formats::Block{1, 1});
    tensor_bytes.push_back(values / block.values * block.bytes);
    data_bytes += (tensor_bytes.back() + alignment - 1) / alignment * alignment;
    return *this;
  }
  template <class T>
  void overwrite(std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
  std::size_t header_end = 0;
  // The counts, and the tensors' data: bytes that count upwards, zeros between tensors.
  std::vector<std::byte> finish() {
    overwrite(8, tensors);
    overwrite(16, keys);
    header_end = bytes.size();
    if (tensors == 0) return bytes;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    for (const std::uint64_t count : tensor_bytes) {
      for (std::uint64_t i = 0; i < count; ++i) bytes.push_back(static_cast<std::byte>(1 + i % 251));
      bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    }
    return bytes;
  }
};

// Every value type, alone and in an array, and tensors of 1 to 4 dimensions.
inline Builder every_type(std::uint32_t version = 3) {
  Builder b(version);
  b.key("u8", GgufType::u8).put<std::uint8_t>(200);
  b.key("i8", GgufType::i8).put<std::int8_t>(-100);
  b.key("u16", GgufType::u16).put<std::uint16_t>(60000);
  b.key("i16", GgufType::i16).put<std::int16_t>(-30000);
  b.key("u32", GgufType::u32).put<std::uint32_t>(4000000000u);
  b.key("i32", GgufType::i32).put<std::int32_t>(-2000000000);
  b.key("f32", GgufType::f32).put(1.5f);
  b.key("boolean", GgufType::boolean).put<std::uint8_t>(1);
  b.key("general.name", GgufType::string).string("a name");
  b.key("empty", GgufType::string).string("");
  b.key("u64", GgufType::u64).put<std::uint64_t>(0xfedcba9876543210u);
  b.key("i64", GgufType::i64).put<std::int64_t>(-5000000000);
  b.key("f64", GgufType::f64).put(-2.25);
  b.array("a.u8", GgufType::u8, 3).put<std::uint8_t>(1).put<std::uint8_t>(2).put<std::uint8_t>(255);
  b.array("a.i16", GgufType::i16, 2).put<std::int16_t>(-1).put<std::int16_t>(7);
  b.array("a.i32", GgufType::i32, 2).put<std::int32_t>(-1).put<std::int32_t>(70000);
  b.array("a.u64", GgufType::u64, 1).put<std::uint64_t>(1ull << 40);
  b.array("a.f32", GgufType::f32, 2).put(0.5f).put(-8.0f);
  b.array("a.f64", GgufType::f64, 1).put(1e100);
  b.array("a.boolean", GgufType::boolean, 2).put<std::uint8_t>(0).put<std::uint8_t>(1);
  b.array("a.string", GgufType::string, 3).string("one").string("").string("three");
  b.array("a.empty", GgufType::string, 0);
  b.tensor("w1", DType::f32, {5});
  b.tensor("w2", DType::f16, {3, 2});
  b.tensor("w3", DType::q4_0, {64, 2, 3});
  b.tensor("w4", DType::q6_k, {256, 1, 2, 1});
  return b;
}

// A valid file of random keys, arrays and tensors.
inline Builder random_file(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto some_text = [&](std::uint64_t most) {
    std::string text(below(most + 1), 'x');
    for (char& c : text) c = static_cast<char>(below(256));
    return text;
  };
  const auto raw = [&](Builder& b, GgufType type) {
    if (type == GgufType::boolean) { b.put(static_cast<std::uint8_t>(below(2))); return; }
    if (type == GgufType::string) { b.string(some_text(20)); return; }
    static constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    for (int i = 0; i < kBytes[static_cast<int>(type)]; ++i) b.put(static_cast<std::uint8_t>(random()));
  };
  const auto value_type = [&] {
    const auto id = below(12);
    return static_cast<GgufType>(id < 9 ? id : id + 1);  // not array
  };
  Builder b(below(2) == 0 ? 3 : 2);
  if (below(3) == 0) {
    static constexpr std::uint32_t kAlignments[] = {8, 16, 24, 32, 64, 4096};
    b.alignment = kAlignments[below(6)];
    b.key("general.alignment", GgufType::u32).put(static_cast<std::uint32_t>(b.alignment));
  }
  for (std::uint64_t i = below(12); i > 0; --i) {
    const std::string name = "key." + std::to_string(i) + some_text(6);
    const GgufType type = value_type();
    if (below(3) == 0) {
      const auto count = below(9);
      b.array(name, type, count);
      for (std::uint64_t n = 0; n < count; ++n) raw(b, type);
    } else {
      b.key(name, type);
      raw(b, type);
    }
  }
  const auto types = tessera::formats::all();
  for (std::uint64_t i = below(6); i > 0; --i) {
    const DType type = types[below(types.size())];
    std::vector<std::uint64_t> dims{tessera::formats::block_of(type)->values * (1 + below(2))};
    while (dims.size() < 4 && below(2) == 0) dims.push_back(1 + below(3));
    b.tensor("tensor." + std::to_string(i) + some_text(4), type, dims);
  }
  return b;
}

// What a parsed file promises, whatever the bytes were: touches everything that it shows.
inline bool is_sound(const tessera::GgufFile& file) {
  const std::uint64_t size = file.source().size();
  if (file.header_bytes() > size) return false;
  std::uint64_t sum = 0;
  for (const auto& entry : file.entries()) {
    if (entry.key.empty() || file.find(entry.key) != &entry) return false;
    for (const std::byte b : entry.bytes) sum += std::to_integer<std::uint64_t>(b);
    if (entry.type != GgufType::array) continue;
    const auto array = file.array(entry.key);
    if (!array) return false;
    if (array->type() == GgufType::string) {
      std::uint64_t n = 0;
      for (const std::string_view text : array->strings()) {
        ++n;
        for (const char c : text) sum += static_cast<unsigned char>(c);
      }
      if (n != array->size()) return false;
    } else {
      for (std::uint64_t i = 0; i < array->size(); ++i) sum += array->number(i) > 0 ? 1 : 0;
    }
  }
  const tessera::Settings& settings = file.settings();
  for (std::size_t i = 0; i < tessera::kSettings; ++i) {
    const auto setting = static_cast<tessera::Setting>(i);
    if (settings.has_list(setting) != settings.list(setting).has_value()) return false;
    if (settings.kind(setting).empty() || settings.called(setting).empty() || settings.place(setting).empty()) return false;
  }
  for (std::size_t i = 0; i < file.entries().size(); ++i) {
    const auto key = settings.file_key(i);
    if (!key || key->name != file.entries()[i].key) return false;
  }
  if (settings.file_key(file.entries().size())) return false;
  const volatile std::uint64_t keep = sum;
  static_cast<void>(keep);
  for (const auto& tensor : file.tensors()) {
    if (tensor.name.empty() || file.find_tensor(tensor.name) != &tensor || tensor.bytes == 0) return false;
    if (tensor.offset < file.header_bytes() || tensor.offset > size || tensor.bytes > size - tensor.offset) return false;
    if (tensor.n_dims < 1 || tensor.n_dims > 4 || tensor.offset % 8 != 0) return false;
  }
  return true;
}

}  // namespace gguf_bytes
