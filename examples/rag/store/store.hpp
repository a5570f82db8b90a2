// The index on disk: files, their passages, the passages' vectors and words, in one file of SQLite.
//
// Tables (store.cpp): settings, one row; files; passages, and the vector of each passage; words, an index of the passages' words (FTS5);
// prefixes, the saved keys and values of passages (saved_prefixes.hpp); graph, one row that says which file of a graph belongs to this
// index (GraphSeal: edition, sizes, hash of the file), or no row if there is no graph.
// Invariants: a file and its passages are written in one transaction, so that a program that is killed loses one file at most. The number
// `edition` grows with each such transaction: a graph (graph.hpp) that was built from another edition is stale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.hpp"
#include "store/passages.hpp"
#include "text_files.hpp"

namespace rag {

// The model and the options that all vectors of an index are made with.
struct IndexSettings {
  std::string folder;    // absolute path of the folder of texts
  std::string embedder;  // the model's name by the user; a path is absolute
  std::uint32_t dimensions = 0;
  std::vector<float> probe;  // the embedder's vector of a fixed text: shows whether a model is the same  [dimensions]
  CutOptions cut;
};

struct StoredFile {
  std::int64_t id = 0;
  std::uint64_t size = 0;
  std::int64_t changed = 0;  // ListedFile::changed; 0: the file may have changed since, so it is read again
  std::string hash;          // hash of the content
};

// A passage with the place that it came from.
struct StoredPassage {
  std::int64_t id = 0;
  std::string path, heading, text;
  std::size_t first_line = 0, last_line = 0;
};

struct IndexCounts {
  std::int64_t files = 0, passages = 0, edition = 0;
};

// Identifies the file of a graph (graph.hpp), by the index from which the graph was made and by the hash of the file.
struct GraphSeal {
  std::int64_t edition = 0, passages = 0, dimensions = 0;
  std::array<std::byte, 16> hash{};
};

// All vectors, one after the other, and the passage of each.
struct Vectors {
  std::vector<std::int64_t> passages;
  std::vector<float> values;  // [passages, dimensions]
};

// A passage that has words of a query.
struct WordMatch {
  std::int64_t passage = 0;
  double score = 0.0;  // BM25: the higher, the better
};

class Store {
 public:
  // Opens an index. Errors: not_found; corrupt_file, no index, or one of another version of this program.
  Store(const std::filesystem::path& file, OpenMode mode);

  // Returns whether the file is an index, of any version, damaged or not.
  [[nodiscard]] static bool is_index(const std::filesystem::path& file);

  [[nodiscard]] std::optional<IndexSettings> settings();  // nullopt: a new index
  void set_settings(const IndexSettings& settings);

  [[nodiscard]] std::map<std::string, StoredFile> files();  // by path
  // Replaces a file and its passages.  vectors: [passages, dimensions]
  void put_file(const ListedFile& file, std::string_view hash, std::span<const Passage> passages, std::span<const float> vectors,
                std::uint32_t dimensions);
  // Stores the new size and time of a file whose content is the same.
  void set_changed(std::int64_t file, const ListedFile& listed);
  void remove_file(std::int64_t file);

  [[nodiscard]] IndexCounts counts();
  [[nodiscard]] Vectors vectors(std::uint32_t dimensions);
  [[nodiscard]] std::optional<StoredPassage> passage(std::int64_t id);
  [[nodiscard]] std::vector<float> vector(std::int64_t passage);  // empty: there is no such passage
  // Returns the passages that have words of the query, the best first.
  [[nodiscard]] std::vector<WordMatch> with_words(std::string_view query, std::size_t most);

  [[nodiscard]] std::optional<GraphSeal> graph_seal();  // nullopt: no graph was written
  void set_graph_seal(const GraphSeal& seal);

  [[nodiscard]] Database& database() noexcept { return database_; }

 private:
  void take_out(std::int64_t file);
  void next_edition();
  Database database_;
};

}  // namespace rag
