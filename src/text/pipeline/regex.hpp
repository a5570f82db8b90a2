// Regular expressions of a tokenizer.json, matched by PCRE2. A pattern comes from a file and may be hostile, so there are limits for its
// size, and for the work and memory of its matches. To reach a limit is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::detail {

class Regex {
 public:
  static constexpr std::size_t kLongestPattern = 16 << 10;  // in bytes

  Regex() noexcept;  // an empty object, which can only be assigned to
  // Compiles a pattern (Oniguruma's syntax), or a literal text. Errors: unsupported, the pattern has a construct that is not translated, is
  // too large, or is refused by PCRE2.
  [[nodiscard]] static Result<Regex> compile(std::string_view pattern);
  [[nodiscard]] static Result<Regex> literal(std::string_view text);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

  struct Match {
    std::size_t begin, end;  // both npos: there is no further match
  };

  // Finds matches, with working memory that lasts for one encode() call of the tokenizer.
  class Finder {
   public:
    Finder() noexcept;  // an empty object, which can only be assigned to
    [[nodiscard]] static Result<Finder> create(const Regex& regex);
    Finder(Finder&&) noexcept;
    Finder& operator=(Finder&&) noexcept;
    ~Finder();
    // begin() sets the text, which must be valid UTF-8, and starts at its beginning. next() finds the next match in this text. A match
    // can be empty, but an empty match never begins where the match before it ends. Errors: unsupported, the pattern takes more steps or
    // memory on this text than tessera allows.
    void begin(std::string_view text);
    [[nodiscard]] Result<Match> next();

   private:
    struct State;
    [[nodiscard]] Result<Match> search(std::size_t from);
    std::unique_ptr<State> state_;
  };

 private:
  struct Code;
  [[nodiscard]] static Result<Regex> make(std::string pattern, std::string text);
  std::unique_ptr<Code> code_;  // nullptr for a literal
  std::string text_;            // the pattern as the file has it, for errors; or the text of a literal
};

}  // namespace tessera::detail
