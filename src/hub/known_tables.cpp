#include "hub/table.hpp"

#include "hub/tables/tables.hpp"

namespace tessera::detail::hub {

namespace {

std::array<std::span<const Table>, 7> all_tables() noexcept {
  return {dense_tables(), older_tables(), gemma_tables(), expert_tables(), latent_tables(), recurrent_tables(), encoder_tables()};
}

}  // namespace

const Table* find_table(std::string_view model_type) noexcept {
  for (const auto& family : all_tables()) {
    for (const Table& table : family) {
      if (table.model_type == model_type) return &table;
    }
  }
  return nullptr;
}

std::vector<const Table*> tables_of(std::string_view architecture) {
  std::vector<const Table*> found;
  for (const auto& family : all_tables()) {
    for (const Table& table : family) {
      if (table.architecture == architecture) found.push_back(&table);
    }
  }
  return found;
}

std::string known_types() {
  std::string names;
  for (const auto& family : all_tables()) {
    for (const Table& table : family) names.append(names.empty() ? "" : ", ").append(table.model_type);
  }
  return names;
}

}  // namespace tessera::detail::hub
