#include "store/saved_prefixes.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace rag {

namespace fs = std::filesystem;

namespace {

// The most chains that best_order() looks up. Without a limit there could be thousands, with many passages in many orders.
constexpr std::size_t kMostLookups = 200;

std::string digest(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

SavedPrefixes::SavedPrefixes(Database& database, fs::path folder, std::string_view beginning, std::uint64_t most_bytes)
    : database_(database), folder_(std::move(folder)), first_key_(digest(beginning)), most_bytes_(most_bytes) {}

std::string SavedPrefixes::next_key(std::string_view before, std::string_view passage) const {
  return digest(fmt::format("{}{}", before, digest(passage)));
}

std::string SavedPrefixes::file_of(const std::string& key) {
  Statement row(database_, "SELECT file FROM prefixes WHERE chain = ?");
  row.bind(key);
  const std::string file = row.row() ? row.text(0) : std::string();
  std::error_code ignored;
  // The name comes from the database, and must not lead out of the folder.
  if (file.empty() || file.find_first_not_of("0123456789abcdef") != file.npos || !fs::is_regular_file(folder_ / file, ignored)) return {};
  return file;
}

void SavedPrefixes::find_longest(std::span<const std::string> passages, const std::string& key, std::vector<std::size_t>& chain, PassageOrder& best,
                                 std::size_t& lookups) {
  for (std::size_t i = 0; i < passages.size(); ++i) {
    if (std::ranges::find(chain, i) != chain.end()) continue;
    if (lookups++ >= kMostLookups) return;
    const std::string longer = next_key(key, passages[i]);
    const std::string file = file_of(longer);
    if (file.empty()) continue;
    chain.push_back(i);
    if (chain.size() > best.saved) best = {chain, chain.size(), file};
    find_longest(passages, longer, chain, best, lookups);
    chain.pop_back();
  }
}

PassageOrder SavedPrefixes::best_order(std::span<const std::string> passages) {
  PassageOrder best;
  std::vector<std::size_t> chain;
  std::size_t lookups = 0;
  if (most_bytes_ != 0) find_longest(passages, first_key_, chain, best, lookups);
  for (std::size_t i = 0; i < passages.size(); ++i) {
    if (std::ranges::find(best.order, i) == best.order.end()) best.order.push_back(i);
  }
  return best;
}

bool SavedPrefixes::restore(const tessera::Engine& engine, const std::string& file) {
  const auto session = engine.restore(folder_ / file);
  if (!session) {
    forget(file);
    return false;
  }
  std::error_code ignored;
  fs::last_write_time(folder_ / file, fs::file_time_type::clock::now(), ignored);  // the time of the last use
  return true;
}

void SavedPrefixes::save(const tessera::Engine& engine, std::span<const tessera::Token> tokens, std::span<const std::string> passages) {
  if (most_bytes_ == 0 || passages.empty() || tokens.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw Failure(tessera::ErrorCode::io, fmt::format("{}: {}", tessera::tool::text_of(folder_), error.message()));
  tessera::Session session = value(engine.session());
  if (const auto read = session.append(tokens, {.logits = tessera::LogitsOf::none}); !read) throw Failure(read.error());
  std::vector<std::string> keys;
  for (const std::string& passage : passages) keys.push_back(next_key(keys.empty() ? first_key_ : keys.back(), passage));
  if (const auto saved = session.save(folder_ / keys.back()); !saved) throw Failure(saved.error());
  Transaction transaction(database_);
  for (const std::string& key : keys) {
    if (!file_of(key).empty() && key != keys.back()) continue;  // a chain that another file has already
    Statement(database_, "INSERT OR REPLACE INTO prefixes VALUES(?, ?)").bind(key).bind(keys.back()).run();
  }
  transaction.commit();
  make_room();
}

void SavedPrefixes::forget(const std::string& file) {
  Statement(database_, "DELETE FROM prefixes WHERE file = ?").bind(file).run();
  std::error_code ignored;
  fs::remove(folder_ / file, ignored);
}

void SavedPrefixes::make_room() {
  struct Saved {
    fs::file_time_type used;
    std::uint64_t bytes;
    std::string name;
  };
  std::vector<Saved> files;
  std::uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code gone;
    const std::uint64_t size = at->file_size(gone);
    const auto used = at->last_write_time(gone);
    if (gone) continue;
    files.push_back({used, size, tessera::tool::text_of(at->path().filename())});
    bytes += size;
  }
  std::ranges::sort(files, {}, &Saved::used);
  for (const Saved& file : files) {
    if (bytes <= most_bytes_) return;
    forget(file.name);
    bytes -= file.bytes;
  }
}

}  // namespace rag
