// Keys and values of passages, saved for later questions.
//
// A prompt is instructions, passages, question. The keys and values of a passage depend on everything in front of the passage. So they are
// saved as a chain: the instructions and some passages in a fixed order. A later prompt that begins with the same chain, or with its first
// passages, uses these keys and values instead of computing them. best_order() puts the passages of a new question into the order that
// reuses most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "store/database.hpp"

namespace rag {

// The passages of a prompt in order, and how many of them begin a saved chain.
struct PassageOrder {
  std::vector<std::size_t> order;  // indices of the given passages
  std::size_t saved = 0;           // how many passages at the beginning of `order` are in the saved chain
  std::string file = {};           // the saved chain's file; empty: none
};

class SavedPrefixes {
 public:
  // `folder`: the folder of the files; it is made when something is saved. `beginning`: everything that stands in front of the passages,
  // and the model (beginning() in answering.hpp). `most_bytes`: the most bytes of all files together; 0: nothing is saved or read.
  SavedPrefixes(Database& database, std::filesystem::path folder, std::string_view beginning, std::uint64_t most_bytes);

  // Puts the passages that begin a saved chain first; the others keep their order. `passages`: the texts, the best first.
  [[nodiscard]] PassageOrder best_order(std::span<const std::string> passages);

  // Loads a saved chain: reads the file, and adds its pages to the engine's prefix index, where prompts find them. If the file is damaged
  // or was written for another model, removes the file and returns false.
  bool restore(const tessera::Engine& engine, const std::string& file);

  // Saves the keys and values of `tokens`: the tokens of a prompt up to the end of `passages`. Takes keys and values from the prefix index,
  // and computes those that are missing there. If all files together then have more bytes than allowed, removes chains, the least recently
  // used first.
  void save(const tessera::Engine& engine, std::span<const tessera::Token> tokens, std::span<const std::string> passages);

 private:
  [[nodiscard]] std::string next_key(std::string_view before, std::string_view passage) const;
  [[nodiscard]] std::string file_of(const std::string& key);
  void find_longest(std::span<const std::string> passages, const std::string& key, std::vector<std::size_t>& chain, PassageOrder& best, std::size_t& lookups);
  void forget(const std::string& file);
  void make_room();

  Database& database_;
  std::filesystem::path folder_;
  std::string first_key_;
  std::uint64_t most_bytes_;
};

}  // namespace rag
