// Keys and values in pages, as kernels and CPU code both see them: what no token wrote is all ones, NaN in every type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include <tessera/extend/kv/kv_layout.hpp>
#include <tessera/extend/kv/records.hpp>

#include "cuda/kernels/kv.hpp"

namespace tessera::test {

inline std::vector<float> random_floats(std::size_t n, std::uint32_t seed, float deviation = 1.0f) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(n);
  for (float& value : values) value = normal(engine);
  return values;
}

class PagedKv {
 public:
  // Sequences with room for so many tokens each.
  PagedKv(const KvLayout& layout, const std::vector<std::uint64_t>& tokens) : layout_(layout) {
    for (const std::uint64_t n : tokens) {
      first_.push_back(static_cast<std::uint32_t>(table_.size()));
      for (std::uint64_t i = 0; i < layout_.pages(n); ++i) table_.push_back(add_page());
    }
    for (const std::uint64_t page : table_) pointers_.push_back(reinterpret_cast<std::byte*>(page));
    for (const std::uint32_t first : first_) group_tables_.push_back(pointers_.data() + first);
  }

  [[nodiscard]] const KvLayout& layout() const { return layout_; }
  [[nodiscard]] KvView view(std::size_t sequence) const {
    return {.layout = &layout_, .pages = &group_tables_[sequence]};
  }
  void give_back(std::size_t sequence, std::size_t page) {
    table_[first_[sequence] + page] = 0;
    pointers_[first_[sequence] + page] = nullptr;
  }
  // All pages' bytes, in the tables' order.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> all;
    for (const std::byte* page : pointers_) {
      if (page != nullptr) all.insert(all.end(), page, page + layout_.page_bytes());
    }
    return all;
  }
  void restore(const std::vector<std::byte>& all) {
    std::size_t at = 0;
    for (std::byte* page : pointers_) {
      if (page == nullptr) continue;
      std::memcpy(page, all.data() + at, layout_.page_bytes());
      at += layout_.page_bytes();
    }
  }
  [[nodiscard]] cuda::KvTables tables(const std::vector<std::uint32_t>& sequences,
                                      const std::vector<std::uint64_t>& positions) const {
    return {table_.data(), first_.data(), sequences.data(), positions.data()};
  }
  [[nodiscard]] const std::uint64_t* pages(std::size_t sequence) const { return table_.data() + first_[sequence]; }

 private:
  struct Free {
    void operator()(std::byte* at) const { ::operator delete[](at, std::align_val_t{64}); }
  };
  std::uint64_t add_page() {
    auto* at = static_cast<std::byte*>(::operator new[](layout_.page_bytes(), std::align_val_t{64}));
    memory_.emplace_back(at);
    std::memset(at, 0xff, layout_.page_bytes());
    return reinterpret_cast<std::uint64_t>(at);
  }

  KvLayout layout_;
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
  std::vector<std::uint64_t> table_;
  std::vector<std::uint32_t> first_;
  std::vector<std::byte*> pointers_;
  std::vector<std::byte* const*> group_tables_;  // of each sequence's one group
};

// The suffix of a codec's kernels.
inline const char* kernel_suffix(DType type) {
  switch (type) {
    case DType::f32: return "f32";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::fp8: return "fp8";
    case DType::int4: return "int4";
    case DType::k8v4: return "k8v4";
    default: return "int8";
  }
}

// Which kernels hold.
inline constexpr DType kDeviceKvTypes[] = {DType::f32, DType::f16, DType::bf16, DType::int8, DType::fp8, DType::int4, DType::k8v4};

}  // namespace tessera::test
