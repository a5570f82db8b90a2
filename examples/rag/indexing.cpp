#include "indexing.hpp"

#include <chrono>
#include <map>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace rag {

namespace {

// A file that changed less than this time ago may change again and keep its time, because file systems count time in steps.
constexpr std::int64_t kSettled = 2'000'000'000;  // nanoseconds

std::string hash_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::int64_t file_clock_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::filesystem::file_time_type::clock::now().time_since_epoch()).count();
}

std::vector<Passage> passages_of(const ListedFile& file, std::string_view text, const Embedder& embedder, const CutOptions& cut) {
  return cut_text(file.path, text, [&embedder](std::string_view piece) { return embedder.count(piece); }, cut);
}

}  // namespace

std::string difference(const IndexSettings& index, const std::string& folder, const Embedder& embedder) {
  if (!folder.empty() && folder != index.folder) return fmt::format("the index was made from the folder {}", index.folder);
  if (!embedder.made(index)) {
    return fmt::format("the index was made with another embedder ({}, {} dimensions; this one has {})", index.embedder, index.dimensions, embedder.dimensions());
  }
  return {};
}

IndexReport bring_up_to_date(Store& store, const IndexSettings& settings, const Embedder& embedder, const IndexingOptions& options) {
  const std::filesystem::path folder = tessera::tool::path_of(settings.folder);
  Listing listing = list_folder(folder, options.limits);
  std::map<std::string, StoredFile> known = store.files();
  IndexReport report;
  report.skipped = std::move(listing.skipped);
  std::size_t done = 0;
  for (ListedFile& file : listing.files) {
    if (options.progress) options.progress(done++, listing.files.size());
    if (options.stop.stop_requested()) throw Failure(tessera::ErrorCode::cancelled, "stopped");
    const auto before = known.find(file.path);
    const bool is_known = before != known.end();
    if (is_known && before->second.size == file.size && before->second.changed == file.changed) {
      ++report.unchanged;
      known.erase(before);
      continue;
    }
    if (file_clock_now() - file.changed < kSettled) file.changed = 0;
    std::string text, reason;
    if (!read_text(folder / tessera::tool::path_of(file.path), options.limits, text, reason)) {
      report.skipped.push_back({file.path, reason});
      continue;  // below, an earlier version of the file is removed from the index
    }
    const std::string hash = hash_of(text);
    if (is_known && before->second.hash == hash) {
      store.set_changed(before->second.id, file);
      ++report.unchanged;
      known.erase(before);
      continue;
    }
    const std::vector<Passage> passages = passages_of(file, text, embedder, settings.cut);
    store.put_file(file, hash, passages, embedder.passages(file.path, passages, options.stop), embedder.dimensions());
    report.passages += passages.size();
    ++(is_known ? report.changed : report.added);
    if (is_known) known.erase(before);
  }
  for (const auto& [path, file] : known) {
    store.remove_file(file.id);
    ++report.removed;
  }
  return report;
}

}  // namespace rag
