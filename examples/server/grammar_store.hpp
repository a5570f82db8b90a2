// Compiled grammars by a text that tells them apart, for requests that state the same again. The one that was not asked for the
// longest goes first.
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
  std::vector<std::string> warnings{};  // sentences: what of a request's schemas the grammar does not hold
};

class GrammarStore {
 public:
  using Make = std::function<StoredGrammar()>;

  // Two that ask for the same new one at once both make it.
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
  static constexpr std::size_t kMost = 64;  // of up to 48 MiB of states each
  struct Entry {
    std::string key;
    StoredGrammar stored;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // the last that was asked for in front
};

}  // namespace server
