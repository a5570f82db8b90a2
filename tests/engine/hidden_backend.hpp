// A backend as a device's is, whose KV pages the processor cannot address: the CPU's, given the pages' own addresses
// for the length of a step. An engine of it computes what the CPU's computes, and everything that the library does with the
// keys and values besides goes through Memory's transfers.
#pragma once

#include <memory>
#include <vector>

#include "engine/forwarding_backend.hpp"
#include "engine/models.hpp"
#include "engine/wrapped_backend.hpp"
#include "hidden_memory.hpp"

namespace tessera::test {

using tests::HiddenMemory;

class HiddenBackend final : public ForwardingBackend {
 public:
  HiddenBackend(std::unique_ptr<Backend> inner, HiddenMemory& memory)
      : ForwardingBackend(std::move(inner)), memory_(memory) {}

  [[nodiscard]] std::string_view name() const noexcept override { return "hidden"; }
  [[nodiscard]] std::shared_ptr<Memory> kv_memory() const noexcept override { return {std::shared_ptr<void>(), &memory_}; }

  // As many pages as the tokens that are looked at need.
  Status move_tokens(const KvView& kv, const backend::KvMove& move, std::span<const backend::RopeTable> ropes) override {
    Pages pages;
    return inner().move_tokens(revealed(kv, move.from + move.count, pages), move, ropes);
  }
  Status begin(const backend::StepTables& tables) override {
    std::vector<std::uint64_t> lengths(tables.sequences.size());
    for (const backend::RowTable& row : tables.rows) {
      lengths[row.sequence] = std::max(lengths[row.sequence], row.position + 1);
    }
    pages_.assign(lengths.size(), {});
    views_.clear();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      views_.push_back(revealed(tables.sequences[i], lengths[i], pages_[i]));
    }
    backend::StepTables revealed_tables = tables;
    revealed_tables.sequences = views_;
    return inner().begin(revealed_tables);
  }

 private:
  struct Pages {
    std::vector<std::vector<std::byte*>> of_groups;
    std::vector<std::byte* const*> tables;
  };

  static KvView revealed(const KvView& kv, std::uint64_t length, Pages& pages) {
    pages = {};
    for (std::size_t group = 0; group < kv.layout->groups.size(); ++group) {
      auto& of_group = pages.of_groups.emplace_back(kv.pages[group], kv.pages[group] + kv.layout->pages(length));
      for (std::byte*& page : of_group) page = HiddenMemory::reveal(page);
    }
    for (const auto& of_group : pages.of_groups) pages.tables.push_back(of_group.data());
    return {.layout = kv.layout, .pages = pages.tables.data()};
  }

  HiddenMemory& memory_;
  std::vector<Pages> pages_;  // of the step
  std::vector<KvView> views_;
};

// The golden model with its KV pages in `memory`, which outlives it.
inline Engine load_hidden(const std::string& model, HiddenMemory& memory, const EngineOptions& options = {}) {
  Engine engine = load_golden(model, options);
  wrap_backend<HiddenBackend>(engine, memory);
  return engine;
}

}  // namespace tessera::test
