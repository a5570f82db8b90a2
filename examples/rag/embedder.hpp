// The model that turns texts into vectors, as an index uses it.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/tessera.hpp>

#include "store/passages.hpp"
#include "store/store.hpp"

namespace rag {

class Embedder {
 public:
  // `dimensions`: how many numbers each vector keeps (Matryoshka models); 0: all.
  Embedder(tessera::Engine engine, std::uint32_t dimensions);

  [[nodiscard]] std::uint32_t dimensions() const noexcept { return static_cast<std::uint32_t>(probe_.size()); }
  [[nodiscard]] const std::vector<float>& probe() const noexcept { return probe_; }  // the vector of a fixed text
  // Returns whether this model made the vectors of the index, so that they can be compared with vectors that the model computes now. To
  // find out, the index keeps the vector of a fixed text (probe()). The result is true if this model's vector of that text is the same, or
  // differs no more than the vectors of one model in two weight formats do.
  [[nodiscard]] bool made(const IndexSettings& settings) const;

  // Returns the number of tokens of a text.
  [[nodiscard]] std::size_t count(std::string_view text) const;
  // Returns the most tokens of a text that the model reads, special tokens around the text included.
  [[nodiscard]] std::size_t most_tokens() const;

  // Computes a vector for each passage of a file  [passages, dimensions]. The encoded text is the file's path, the passage's heading and
  // its text. Throws Failure, with the code cancelled if `stop` was requested.
  [[nodiscard]] std::vector<float> passages(std::string_view path, std::span<const Passage> passages, const std::stop_token& stop) const;
  [[nodiscard]] std::vector<float> query(std::string_view text, const std::stop_token& stop) const;

 private:
  [[nodiscard]] tessera::EmbedOptions options(tessera::TextRole role, const std::stop_token& stop) const;
  tessera::Engine engine_;
  std::uint32_t kept_ = 0;
  std::vector<float> probe_;
};

// Returns the dot product, which says how alike two texts are if the vectors have length 1.
[[nodiscard]] float dot(std::span<const float> a, std::span<const float> b) noexcept;

}  // namespace rag
