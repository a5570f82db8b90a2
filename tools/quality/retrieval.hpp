// Measures how well a model's embeddings find documents: recall and nDCG, over questions whose right documents are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <tessera/engine.hpp>

namespace tessera::quality {

// Documents, questions, and which documents are right for each question.
struct RetrievalData {
  std::vector<std::string> documents, questions;
  std::vector<std::map<std::size_t, double>> right;  // for each question: its right documents, and for each its relevance, above 0
};

// Reads a folder in the form of BEIR's data sets (Thakur et al. 2021): corpus.jsonl with _id, title and text of a document a line, queries.jsonl
// with _id and text, and qrels/test.tsv with a title line and "question <tab> document <tab> score". Questions without a right document are left
// out. Errors name the file and the line.
[[nodiscard]] Result<RetrievalData> read_retrieval(const std::filesystem::path& folder);

struct RetrievalRow {
  std::uint32_t dimensions = 0;
  // Means over the questions. recall_N: the share of a question's right documents that are among the first N documents found. ndcg_10: the
  // normalised discounted cumulative gain of the first 10 documents (Jarvelin & Kekalainen 2002), with the gain 2^score - 1.
  double recall_1 = 0.0, recall_3 = 0.0, recall_10 = 0.0, ndcg_10 = 0.0;
};

// Returns a row for each number of `dimensions`; the number 0 means all dimensions of the model. The vectors of all texts are computed
// once, and for each row cut to its dimensions and normalised. `progress` gets the number of texts done and the number of all texts.
[[nodiscard]] Result<std::vector<RetrievalRow>> measure_retrieval(const Engine& engine, const RetrievalData& data, std::span<const std::uint32_t> dimensions,
                                                                  const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace tessera::quality
