// Embeddings of texts, and scores of documents for a query. An embedding is a vector for a whole text; the dot product of two texts'
// vectors says how similar the texts are. Encoders (BERT, XLM-R) compute embeddings, and so do decoders that were trained to embed texts
// (Qwen3-Embedding). Scores come from models that rank documents (cross-encoders, Qwen3-Reranker).
//
//   const std::array<std::string_view, 2> texts = {"A cat sleeps.", "The cat is asleep."};
//   auto embeddings = engine.embed(texts);
//   if (embeddings) {
//     const auto a = embeddings->row(0), b = embeddings->row(1);
//     std::printf("%.3f\n", std::inner_product(a.begin(), a.end(), b.begin(), 0.0));
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <tessera/extend/model/model_spec.hpp>
#include <tessera/text/tokenizer.hpp>

namespace tessera {

namespace detail {
class EmbeddingMaker;
}

// Says what a text is used for, and so which prompt is put in front of it. Some models were trained with a prompt in front of queries or of
// documents, and state this prompt in their files.
enum class TextRole : std::int32_t {
  plain = 0,     // no prompt
  query = 1,     // the model's prompt for queries, if it has one
  document = 2,  // the model's prompt for documents, if it has one
};

// Says what happens to a text that has more tokens than the model reads (EmbedOptions::most_tokens).
enum class LongText : std::int32_t {
  cut = 0,      // only the first tokens are read (Embeddings::was_cut())
  refuse = 1,   // the text is an error: invalid_argument
  // Windows of the text are read one by one. The text's vector is the mean of the windows' vectors, weighted by their numbers of tokens.
  // Error with Pooling::none: invalid_argument.
  windows = 2,
};

struct EmbedOptions {
  // automatic: the pooling that the model's files state; the mean if they state none; the first token for a model that ranks
  // (Pooling::rank). To choose Pooling::rank yourself is an error: invalid_argument.
  Pooling pooling = Pooling::automatic;
  TextRole role = TextRole::plain;
  std::optional<std::string> prompt = {};  // text in front of each text, instead of the model's prompt
  // Special::parse: the name of a control token in a text becomes this token, as in sentence-transformers. as_text: the name stays letters.
  Special special = Special::as_text;
  // Number of values of each vector. A smaller number than the model's keeps only the first values, for models that were trained for this
  // (Matryoshka embeddings; Kusupati et al. 2022). 0: all values.
  std::uint32_t dimensions = 0;
  // true: each vector is scaled to length 1, even if the model's files do not ask for it. A vector of zeros stays as it is.
  bool normalises = true;
  LongText long_text = LongText::cut;
  // Only for LongText::windows: number of tokens that a window shares with the window before it; less than a window has. A prompt is in the
  // first window only.
  std::uint32_t overlap = 0;
  // The largest number of tokens that are read from a text, including the tokens that the tokenizer puts around the text. 0, or a number
  // that is too large: as many as the model's files and the context allow.
  std::uint32_t most_tokens = 0;
  std::stop_token stop = {};        // checked before every layer
  // Called after each text, with the number of finished texts and the number of all texts. Return false to cancel.
  std::function<bool(std::size_t done, std::size_t total)> progress = {};
};

// The vectors of texts, in the order of the texts.
class Embeddings {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }  // texts
  [[nodiscard]] std::size_t dimensions() const noexcept { return dimensions_; }
  // Returns the vector of text i. With Pooling::none a text has a vector for each token, and `row` is the token's index; otherwise `row` is
  // 0. Empty if there is no such text or vector.
  [[nodiscard]] std::span<const float> row(std::size_t i, std::size_t row = 0) const noexcept {
    if (i >= texts_.size() || row >= texts_[i].rows) return {};
    return std::span(values_).subspan((texts_[i].first + row) * dimensions_, dimensions_);
  }
  [[nodiscard]] std::size_t rows(std::size_t i) const noexcept { return i < texts_.size() ? texts_[i].rows : 0; }  // vectors of text i
  // Return the number of tokens that were read from text i, and whether the rest of the text was cut off.
  [[nodiscard]] std::size_t tokens(std::size_t i) const noexcept { return i < texts_.size() ? texts_[i].tokens : 0; }
  [[nodiscard]] bool was_cut(std::size_t i) const noexcept { return i < texts_.size() && texts_[i].was_cut; }
  [[nodiscard]] std::span<const float> values() const noexcept { return values_; }  // all vectors, one after another

 private:
  friend class detail::EmbeddingMaker;
  struct Text {
    std::size_t first = 0, rows = 0, tokens = 0;
    bool was_cut = false;
  };
  std::vector<float> values_;
  std::vector<Text> texts_;
  std::size_t dimensions_ = 0;
};

struct RerankOptions {
  std::string instruction = {};   // the task in a sentence, for models that accept one (Qwen3-Reranker); empty: the model's usual task
  // The largest number of tokens that are read for a document: query, document, and the tokens around them. If there are more, a
  // cross-encoder's query and document are cut at their ends; for a decoder, the document (and then the query) is cut at its end. 0: as many
  // as the context allows, and for a cross-encoder the model's files.
  std::uint32_t most_tokens = 0;
  std::stop_token stop = {};      // checked before every layer
};

}  // namespace tessera
