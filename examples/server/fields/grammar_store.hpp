// Keeps compiled grammars by key, for later requests with the same grammar. The least recently used grammar is dropped first.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <tessera/grammar/compiled.hpp>

namespace server {

struct StoredGrammar {
  tessera::CompiledGrammar grammar{};
  std::vector<std::string> warnings{};  // sentences about parts of a request's schemas that the grammar does not enforce
};

class GrammarStore {
 public:
  using Make = std::function<StoredGrammar()>;

  // Returns the grammar with this key. Calls `make` if the grammar is new; two threads that ask for it at the same time both make it.
  [[nodiscard]] StoredGrammar get(const std::string& key, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      for (auto each = entries_.begin(); each != entries_.end(); ++each) {
        if (each->key != key) continue;
        entries_.splice(entries_.begin(), entries_, each);
        return each->stored;
      }
    }
    StoredGrammar made = make();
    const std::lock_guard lock(mutex_);
    entries_.push_front({key, made});
    while (entries_.size() > kMost) entries_.pop_back();
    return made;
  }

 private:
  static constexpr std::size_t kMost = 64;  // grammars, each with up to 48 MiB of states
  struct Entry {
    std::string key;
    StoredGrammar stored;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
};

}  // namespace server
