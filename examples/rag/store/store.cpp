#include "store/store.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace rag {

using tessera::ErrorCode;

namespace {

constexpr std::int64_t kApplication = 0x74726167;  // "trag"
constexpr std::int64_t kVersion = 1;

constexpr const char* kSchema = R"(
CREATE TABLE settings(id INTEGER PRIMARY KEY CHECK(id = 1), folder TEXT NOT NULL, embedder TEXT NOT NULL, dimensions INTEGER NOT NULL,
  probe BLOB NOT NULL, most_tokens INTEGER NOT NULL, overlap INTEGER NOT NULL, edition INTEGER NOT NULL);
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, changed INTEGER NOT NULL, hash TEXT NOT NULL);
CREATE TABLE passages(id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL REFERENCES files(id) ON DELETE CASCADE,
  heading TEXT NOT NULL, text TEXT NOT NULL, first_line INTEGER NOT NULL, last_line INTEGER NOT NULL);
CREATE INDEX passages_of_file ON passages(file);
CREATE TABLE vectors(passage INTEGER PRIMARY KEY REFERENCES passages(id) ON DELETE CASCADE, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE words USING fts5(place, text, content='', tokenize='porter unicode61');
CREATE TABLE prefixes(chain TEXT PRIMARY KEY, file TEXT NOT NULL);
CREATE INDEX prefixes_of_file ON prefixes(file);
)";

std::span<const std::byte> bytes_of(std::span<const float> values) { return std::as_bytes(values); }

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

constexpr std::size_t kMostDimensions = 1 << 20;

// Words that say nothing about the subject of a question.
constexpr std::array<std::string_view, 72> kIdleWords = {
    "a",    "about", "all",  "am",    "an",   "and",  "any",  "are",   "as",   "at",   "be",    "been", "but",   "by",   "can",   "could", "did",  "do",
    "does", "for",   "from", "get",   "give", "had",  "has",  "have",  "how",  "i",    "if",    "in",   "is",    "it",   "its",   "me",    "much", "my",
    "no",   "not",   "of",   "on",    "or",   "our",  "out",  "should", "so",  "some", "that",  "the",  "their", "them", "there", "these", "they", "this",
    "to",   "us",    "was",  "we",    "were", "what", "when", "where", "which", "who", "whose", "why",  "will",  "with", "would", "you",   "your", "than"};

// Returns a query of FTS5 that finds passages with at least one word of the text. A word is a row of letters, digits and "_". No part of
// the text becomes an operator of the query. Idle words (kIdleWords) are left out, unless the text has no other words.
std::string any_word(std::string_view text) {
  std::string query, idle;
  for (std::size_t at = 0; at < text.size();) {
    const auto is_letter = [&](std::size_t i) {
      const auto c = static_cast<unsigned char>(text[i]);
      return c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    std::string word;
    for (; at < text.size() && is_letter(at); ++at) word += text[at] >= 'A' && text[at] <= 'Z' ? static_cast<char>(text[at] - 'A' + 'a') : text[at];
    ++at;
    if (word.empty()) continue;
    std::string& list = std::ranges::find(kIdleWords, word) == kIdleWords.end() ? query : idle;
    list += fmt::format("{}\"{}\"", list.empty() ? "" : " OR ", word);
  }
  return query.empty() ? idle : query;
}

}  // namespace

Store::Store(const std::filesystem::path& file, OpenMode mode) : database_(file, mode) {
  const std::int64_t application = database_.number("PRAGMA application_id"), version = database_.number("PRAGMA user_version");
  const std::string name = tessera::tool::text_of(file);
  if (application == 0 && version == 0 && database_.number("SELECT count(*) FROM sqlite_master") == 0) {
    if (mode != OpenMode::create) throw Failure(ErrorCode::corrupt_file, fmt::format("{} is an empty database: make it with tessera-rag index FOLDER", name));
    Transaction transaction(database_);
    database_.execute(kSchema);
    database_.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplication, kVersion).c_str());
    transaction.commit();
    database_.execute("PRAGMA journal_mode = WAL");
    return;
  }
  if (application != kApplication) throw Failure(ErrorCode::corrupt_file, fmt::format("{} is a database of another program: name another file with --index", name));
  if (version != kVersion) {
    throw Failure(ErrorCode::unsupported, fmt::format("{} has version {} of the format, and this program reads version {}: make the index anew with index --rebuild", name, version, kVersion));
  }
  database_.execute("PRAGMA journal_mode = WAL");  // only now is it certain that the file is an index
}

bool Store::is_index(const std::filesystem::path& file) {
  // The header of a SQLite file has the application's number at byte 68, the highest byte first.
  std::array<unsigned char, 72> header{};
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return false;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return false;
  stream.read(reinterpret_cast<char*>(header.data()), header.size());
  if (stream.gcount() == 0) return true;  // an index whose program was killed before the first page was written
  std::int64_t application = 0;
  for (std::size_t i = 68; i < header.size(); ++i) application = application << 8 | header[i];
  if (application == kApplication) return true;
  try {  // the first pages may still be in the log beside the file
    Store(file, OpenMode::create);
    return true;
  } catch (const Failure&) {
    return false;
  }
}

std::optional<IndexSettings> Store::settings() {
  Statement row(database_, "SELECT folder, embedder, dimensions, probe, most_tokens, overlap FROM settings");
  if (!row.row()) return std::nullopt;
  IndexSettings settings;
  settings.folder = row.text(0);
  settings.embedder = row.text(1);
  settings.probe = floats_of(row.bytes(3));
  const bool has_dimensions = !settings.probe.empty() && settings.probe.size() <= kMostDimensions && row.number(2) == static_cast<std::int64_t>(settings.probe.size());
  if (!has_dimensions || row.number(4) < 0 || row.number(5) < 0) {
    throw Failure(ErrorCode::corrupt_file, "the index is damaged: make it anew with index --rebuild");
  }
  settings.dimensions = static_cast<std::uint32_t>(settings.probe.size());
  settings.cut.most_tokens = static_cast<std::size_t>(row.number(4));
  settings.cut.overlap = static_cast<std::size_t>(row.number(5));
  return settings;
}

void Store::set_settings(const IndexSettings& settings) {
  Statement(database_, "INSERT OR REPLACE INTO settings VALUES(1, ?, ?, ?, ?, ?, ?, 0)")
      .bind(settings.folder)
      .bind(settings.embedder)
      .bind(std::int64_t{settings.dimensions})
      .bind_bytes(bytes_of(settings.probe))
      .bind(static_cast<std::int64_t>(settings.cut.most_tokens))
      .bind(static_cast<std::int64_t>(settings.cut.overlap))
      .run();
}

std::map<std::string, StoredFile> Store::files() {
  std::map<std::string, StoredFile> files;
  Statement row(database_, "SELECT path, id, size, changed, hash FROM files");
  while (row.row()) files[row.text(0)] = {row.number(1), static_cast<std::uint64_t>(row.number(2)), row.number(3), row.text(4)};
  return files;
}

void Store::put_file(const ListedFile& file, std::string_view hash, std::span<const Passage> passages, std::span<const float> vectors,
                     std::uint32_t dimensions) {
  Transaction transaction(database_);
  Statement old(database_, "SELECT id FROM files WHERE path = ?");
  if (old.bind(file.path).row()) take_out(old.number(0));
  Statement(database_, "INSERT INTO files(path, size, changed, hash) VALUES(?, ?, ?, ?)")
      .bind(file.path)
      .bind(static_cast<std::int64_t>(file.size))
      .bind(file.changed)
      .bind(hash)
      .run();
  const std::int64_t id = database_.last_row_id();
  Statement add(database_, "INSERT INTO passages(file, heading, text, first_line, last_line) VALUES(?, ?, ?, ?, ?)");
  Statement add_words(database_, "INSERT INTO words(rowid, place, text) VALUES(?, ?, ?)");
  Statement add_vector(database_, "INSERT INTO vectors VALUES(?, ?)");
  for (std::size_t i = 0; i < passages.size(); ++i) {
    const Passage& passage = passages[i];
    add.bind(id).bind(passage.heading).bind(passage.text).bind(static_cast<std::int64_t>(passage.first_line)).bind(static_cast<std::int64_t>(passage.last_line)).run();
    const std::int64_t row = database_.last_row_id();
    add_words.bind(row).bind(file.path + " " + passage.heading).bind(passage.text).run();
    add_vector.bind(row).bind_bytes(bytes_of(vectors.subspan(i * dimensions, dimensions))).run();
  }
  next_edition();
  transaction.commit();
}

void Store::set_changed(std::int64_t file, const ListedFile& listed) {
  Statement(database_, "UPDATE files SET size = ?, changed = ? WHERE id = ?").bind(static_cast<std::int64_t>(listed.size)).bind(listed.changed).bind(file).run();
}

void Store::remove_file(std::int64_t file) {
  Transaction transaction(database_);
  take_out(file);
  next_edition();
  transaction.commit();
}

// Removes a file with its passages and their words. SQLite does not remove the words by itself. The index of words keeps no texts, so the
// statement that deletes a passage's words must contain the passage's text.
void Store::take_out(std::int64_t file) {
  Statement(database_, "INSERT INTO words(words, rowid, place, text) SELECT 'delete', p.id, f.path || ' ' || p.heading, p.text FROM passages p "
                       "JOIN files f ON f.id = p.file WHERE f.id = ?")
      .bind(file)
      .run();
  Statement(database_, "DELETE FROM files WHERE id = ?").bind(file).run();
}

void Store::next_edition() { database_.execute("UPDATE settings SET edition = edition + 1"); }

IndexCounts Store::counts() {
  return {database_.number("SELECT count(*) FROM files"), database_.number("SELECT count(*) FROM passages"), database_.number("SELECT edition FROM settings")};
}

Vectors Store::vectors(std::uint32_t dimensions) {
  Vectors all;
  Statement row(database_, "SELECT passage, vector FROM vectors ORDER BY passage");
  while (row.row()) {
    const std::span<const std::byte> bytes = row.bytes(1);
    if (bytes.size() != dimensions * sizeof(float)) throw Failure(ErrorCode::corrupt_file, "the index is damaged (a vector of another length): make it anew with index --rebuild");
    const std::size_t at = all.values.size();
    all.values.resize(at + dimensions);
    std::memcpy(all.values.data() + at, bytes.data(), bytes.size());
    all.passages.push_back(row.number(0));
  }
  return all;
}

std::optional<StoredPassage> Store::passage(std::int64_t id) {
  Statement row(database_, "SELECT f.path, p.heading, p.text, p.first_line, p.last_line FROM passages p JOIN files f ON f.id = p.file WHERE p.id = ?");
  row.bind(id);
  if (!row.row()) return std::nullopt;
  return StoredPassage{id, row.text(0), row.text(1), row.text(2), static_cast<std::size_t>(row.number(3)), static_cast<std::size_t>(row.number(4))};
}

std::vector<float> Store::vector(std::int64_t passage) {
  Statement row(database_, "SELECT vector FROM vectors WHERE passage = ?");
  row.bind(passage);
  return row.row() ? floats_of(row.bytes(0)) : std::vector<float>();
}

std::vector<WordMatch> Store::with_words(std::string_view query, std::size_t most) {
  const std::string words = any_word(query);
  std::vector<WordMatch> matches;
  if (words.empty()) return matches;
  // A word in the path or in the headings counts twice as much as a word in the text.
  Statement row(database_, "SELECT rowid, bm25(words, 2.0, 1.0) AS score FROM words WHERE words MATCH ? ORDER BY score, rowid LIMIT ?");
  row.bind(words).bind(static_cast<std::int64_t>(most));
  while (row.row()) matches.push_back({row.number(0), -row.real(1)});  // FTS5 gives the best match the lowest score
  return matches;
}

std::optional<GraphSeal> Store::graph_seal() {
  if (database_.number("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'graph'") == 0) return std::nullopt;
  Statement row(database_, "SELECT edition, passages, dimensions, hash FROM graph");
  if (!row.row()) return std::nullopt;
  GraphSeal seal{.edition = row.number(0), .passages = row.number(1), .dimensions = row.number(2)};
  const std::span<const std::byte> hash = row.bytes(3);
  if (hash.size() != seal.hash.size()) return std::nullopt;
  std::ranges::copy(hash, seal.hash.begin());
  return seal;
}

void Store::set_graph_seal(const GraphSeal& seal) {
  Transaction transaction(database_);
  // Makes the table here, so that indexes of earlier versions get it too.
  database_.execute("CREATE TABLE IF NOT EXISTS graph(id INTEGER PRIMARY KEY CHECK(id = 1), edition INTEGER NOT NULL, passages INTEGER NOT NULL, "
                    "dimensions INTEGER NOT NULL, hash BLOB NOT NULL)");
  Statement(database_, "INSERT OR REPLACE INTO graph VALUES(1, ?, ?, ?, ?)").bind(seal.edition).bind(seal.passages).bind(seal.dimensions).bind_bytes(seal.hash).run();
  transaction.commit();
}

}  // namespace rag
