// A cache of answers that are found by meaning: the vector of a question finds the answer to a question whose vector is nearly the same.
//
// An answer is found only under its own key: the tenant, and a digest of all that the answer depends on besides the question's text (the
// model, earlier messages, sampling fields). So no tenant ever gets another tenant's answer, however alike the questions are.
//
// Cost: find() compares the vector with each vector under the key. The time of all other work hardly grows with the number of answers: each
// call removes only a few of the answers whose time is over, the oldest first.
//
// Every function may be called from several threads.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "requests/answer.hpp"
#include "tiers/bins.hpp"

namespace gateway {

struct CacheOptions {
  double threshold = 0.95;                         // the least similarity (dot product of vectors of length 1) of a hit
  std::chrono::seconds time_to_live{3600};
  std::uint64_t bytes = std::uint64_t{256} << 20;  // the most bytes of texts and vectors; then the least recently used answers are removed
};

// The part of a question that must be equal if an answer is reused.
struct CacheKey {
  std::string tenant;
  std::array<unsigned char, 32> context{};  // SHA-256
  auto operator<=>(const CacheKey&) const = default;
};
[[nodiscard]] CacheKey key_of(std::string_view tenant, std::string_view context);

class SemanticCache {
 public:
  using Clock = std::chrono::steady_clock;
  using Now = std::function<Clock::time_point()>;

  explicit SemanticCache(const CacheOptions& options, Now now = &Clock::now) : options_(options), now_(std::move(now)) {}

  struct Hit {
    Answer answer;
    std::string question;  // the text that the answer was computed for
    std::uint64_t id = 0;  // for forget()
  };
  struct Lookup {
    double similarity = 0;  // similarity of the nearest question under this key; 0: there is none
    std::optional<Hit> hit;
  };
  // Returns the nearest question's answer if it is near enough and not too old. Counts a hit or a miss.
  [[nodiscard]] Lookup find(const CacheKey& key, std::span<const float> vector);
  // Adds an answer, in place of an older one to the same text under this key. An answer that is larger than the whole cache is not added.
  void put(const CacheKey& key, std::string question, std::vector<float> vector, Answer answer);
  // Removes an answer that turned out wrong. Does nothing if the answer is gone already.
  void forget(std::uint64_t id);

  struct Figures {
    std::uint64_t hits = 0, misses = 0, added = 0, evicted = 0, expired = 0, forgotten = 0, entries = 0, bytes = 0;
    Bins similarities{Bins::similarities()};  // similarity of the nearest question, for each lookup that had one
  };
  [[nodiscard]] Figures figures() const;

 private:
  struct Entry {
    CacheKey key;
    std::string question;
    std::vector<float> vector;  // [dimensions]
    Answer answer;
    std::uint64_t id = 0, bytes = 0;
    Clock::time_point until;
    std::size_t place = 0;      // index in the entries of its group
  };
  using Entries = std::list<Entry>;  // the most recently used one first
  // The entries of one key.
  struct Group {
    std::vector<Entries::iterator> entries;                               // in no order
    std::unordered_map<std::string_view, Entries::iterator> by_question;  // the keys are the texts of the entries
  };

  void remove(Entries::iterator entry);
  void remove_expired(Clock::time_point now);

  const CacheOptions options_;
  const Now now_;
  mutable std::mutex mutex_;  // guards the members below
  Entries entries_;
  std::map<CacheKey, Group> groups_;                    // every entry is in its key's group
  std::map<std::uint64_t, Entries::iterator> by_id_;    // every entry. All have the same time to live, so the lowest id expires first
  std::uint64_t last_id_ = 0;
  Figures figures_;
};

}  // namespace gateway
