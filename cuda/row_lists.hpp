// Lists of rows that a step uploads. They lie in the step's arena one after another, so that short lists take little memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/guard.hpp"
#include "cuda/step_arena.hpp"

namespace tessera::cuda {

class RowLists {
 public:
  struct List {
    const std::uint32_t* rows = nullptr;  // on the device
    std::uint32_t count = 0;
  };

  // Replaces the lists by list_of(item) for each of `items`, and adds them to the arena.
  template <class Item, class ListOf>
  Status set(StepArena& arena, std::span<const Item> items, ListOf list_of) {
    std::size_t n = 0;
    for (const Item& item : items) n += list_of(item).size();
    TESSERA_TRY(const auto table, arena.add<std::uint32_t>(n));
    lists_.clear();
    std::size_t at = 0;
    for (const Item& item : items) {
      const std::span<const std::uint32_t> list = list_of(item);
      if (!list.empty()) std::memcpy(table.host + at, list.data(), list.size_bytes());
      lists_.push_back({.rows = table.device + at, .count = static_cast<std::uint32_t>(list.size())});
      at += list.size();
    }
    return {};
  }
  [[nodiscard]] const List& operator[](std::size_t list) const noexcept { return lists_[list]; }

 private:
  std::vector<List> lists_;
};

}  // namespace tessera::cuda
