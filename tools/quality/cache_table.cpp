#include "cache_table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tessera::quality {
namespace {

Result<Session> session_of(const Engine& engine, DType dtype, const TokenBudget& budget) {
  return engine.session({.kv = {.dtype = dtype, .prefix = PrefixReuse::off, .budget = budget}});
}

}  // namespace

Result<std::vector<CacheRow>> compare_caches(const Engine& engine, const Documents& documents, const CacheTableOptions& options,
                                             const std::function<void(std::size_t)>& progress) {
  std::vector<CacheRow> rows(options.caches.size());
  std::vector<std::uint64_t> bytes(rows.size());
  std::size_t before = 0;  // tokens of the documents before
  for (const auto& document : documents) {
    auto exact = session_of(engine, DType::f32, {.tokens = kNoTokenBudget});
    if (!exact) return exact.error();
    std::vector<Session> sessions;
    for (const tool::CacheChoice& cache : options.caches) {
      auto session = session_of(engine, cache.dtype, cache.budget(document.size()));
      if (!session) return Error(session.error().code(), fmt::format("{}: {}", cache.name, session.error().message()));
      sessions.push_back(*std::move(session));
    }
    const std::span<const Token> read = std::span(document).first(document.size() - 1);
    const std::size_t counted = options.last == 0 || options.last > read.size() ? 0 : read.size() - options.last;
    for (std::size_t begin = 0; begin < read.size();) {
      // Reads the next chunk. Only the last predictions of a document are compared. A chunk never contains both predictions that are
      // compared and predictions that are not, because append() returns logits of all its tokens or of none; so a chunk ends where the
      // compared ones begin.
      const std::size_t border = begin < counted ? counted : read.size();
      const std::size_t count = std::min(options.chunk, border - begin);
      const std::span<const Token> part = read.subspan(begin, count);
      const AppendOptions wanted{.logits = begin < counted ? LogitsOf::none : LogitsOf::all};
      const auto expected = exact->append(part, wanted);
      if (!expected) return expected.error();
      for (std::size_t i = 0; i < sessions.size(); ++i) {
        const auto got = sessions[i].append(part, wanted);
        if (!got) return Error(got.error().code(), fmt::format("{}: {}", options.caches[i].name, got.error().message()));
        if (wanted.logits == LogitsOf::none) continue;
        for (std::size_t row = 0; row < count; ++row) {
          if (rows[i].divergence.add((*expected)[row], (*got)[row], document[begin + row + 1])) continue;
          return Error(ErrorCode::invalid_argument,
                       fmt::format("{}: the logits after token {} of document {} are not all finite", options.caches[i].name,
                                   begin + row + 1, &document - documents.data() + 1));
        }
      }
      begin += count;
      progress(before + begin);
    }
    for (std::size_t i = 0; i < sessions.size(); ++i) bytes[i] += sessions[i].kv().bytes();
    before += read.size();
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].bytes_per_token = static_cast<double>(bytes[i]) / static_cast<double>(std::max<std::size_t>(before, 1));
  }
  return rows;
}

}  // namespace tessera::quality
