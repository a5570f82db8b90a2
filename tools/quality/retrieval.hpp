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
  // Means over the questions. recall: the share of the right documents that are among the first 1, 3, 10. ndcg: the normalised discounted
  // cumulative gain of the first 10 (Jarvelin & Kekalainen 2002), with the gain 2^score - 1.
  double recall_1 = 0.0, recall_3 = 0.0, recall_10 = 0.0, ndcg_10 = 0.0;
};

// Returns a row for each number of dimensions; 0 stands for all dimensions of the model. Computes the vectors once, and cuts and normalises
// them for each row. `progress` gets the number of texts done and the number of all texts.
[[nodiscard]] Result<std::vector<RetrievalRow>> measure_retrieval(const Engine& engine, const RetrievalData& data, std::span<const std::uint32_t> dimensions,
                                                                  const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace tessera::quality
