// Regular expressions over bytes as hash-consed nodes, matched by derivatives: the derivative of r by a byte b is the expression of the
// texts that may follow b in a text of r (Brzozowski, 1964). Nodes have a normal form: equal sets get equal ids often enough that every
// expression has finitely many derivatives. Intersection and complement are nodes like any other.
#pragma once

#include <cstdint>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/fuel.hpp"
#include "grammar/interner.hpp"
#include "grammar/regex/byte_set.hpp"
#include "grammar/regex/charset.hpp"
#include "grammar/regex/number.hpp"

namespace tessera::grammar {

using Regex = std::uint32_t;  // a node's id

inline constexpr std::uint32_t kUnlimited = 0xFFFFFFFFu;

class RegexStore {
 public:
  RegexStore();

  static constexpr Regex kEmpty = 0;    // no text
  static constexpr Regex kEpsilon = 1;  // the empty text
  static constexpr Regex kAll = 3;      // every text of bytes

  Regex bytes(const ByteSet& set);
  Regex literal(std::string_view text);                          // the bytes of the text
  Regex character(const CharSet& set, Spelling spelling);        // one character of the set
  Regex literal(std::string_view utf8, Spelling spelling);       // its characters, however they are spelled
  // Returns the alternative of these texts: a tree by their first characters, so that a thousand texts cost no more than their letters.
  Regex literals(std::vector<std::string> texts, Spelling spelling);
  Regex concat(Regex a, Regex b);
  Regex concat(std::span<const Regex> parts);
  Regex alternative(Regex a, Regex b);
  Regex alternative(std::span<const Regex> parts);
  Regex both(Regex a, Regex b);
  Regex negate(Regex a);
  Regex repeat(Regex a, std::uint32_t min, std::uint32_t max);
  Regex star(Regex a) { return repeat(a, 0, kUnlimited); }
  Regex number(const NumberSpec& spec);
  Regex import(const RegexStore& from, Regex node, std::vector<Regex>& done);  // done: [nodes of from], kNone at first

  [[nodiscard]] bool nullable(Regex r) const noexcept { return nodes_[r].nullable; }
  [[nodiscard]] Regex derivative(Regex r, unsigned byte);
  // Returns a set that includes every byte a text of r may begin with.
  [[nodiscard]] const ByteSet& first(Regex r);
  // Divides the bytes into classes whose bytes have the same derivative: classes[byte] is a number below the result. A byte with which no
  // text begins has class 0.
  unsigned classes(Regex r, std::array<std::uint8_t, 256>& classes) { return classes_of({&r, 1}, classes); }
  unsigned classes_of(std::span<const Regex> list, std::array<std::uint8_t, 256>& classes);
  // Returns whether r is the empty set. Searches if r has an intersection or a complement.
  [[nodiscard]] bool is_empty(Regex r);
  [[nodiscard]] bool matches(Regex r, std::string_view text);
  // Returns whether any n characters of the set, spelled as UTF-8 without escapes, may come next and be followed by some end; false if that
  // is not obvious.
  [[nodiscard]] bool absorbs(Regex r, const CharSet& set, std::uint32_t n);
  [[nodiscard]] bool searches(Regex r) const noexcept { return nodes_[r].search; }  // true: is_empty() is not obvious

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }  // number of derivatives taken

  static constexpr std::size_t kMostNodes = 400'000;
  static constexpr std::uint32_t kDeepest = 2'000;  // levels of recursion in a derivative

 private:
  enum class Kind : std::uint8_t { empty, epsilon, bytes, character, concat, alternative, both, negate, repeat, number };
  struct Node {
    Kind kind;
    bool nullable = false;
    bool search = false;     // true: has `both` or `negate`, or is a number, so that only a search can tell whether it is empty
    bool pure_json = false;  // true: has only whole characters of a JSON string
    bool finite = false;     // true: has finitely many texts; false if that is not obvious
    std::uint32_t a = 0, b = 0;      // operands; for lists: place in lists_, number
    std::uint32_t min = 0, max = 0;  // counts of a repeat
    std::uint32_t height = 1;
  };

  Regex intern(Node node, std::span<const Regex> list = {});
  [[nodiscard]] std::span<const Regex> list(Regex r) const noexcept { return {lists_.data() + nodes_[r].a, nodes_[r].b}; }
  void flatten(Kind kind, Regex r, std::vector<Regex>& out) const;
  Regex expand_character(Regex r);
  Regex number_node(std::uint32_t spec, const NumberState& state);
  Regex derive(Regex r, unsigned byte);
  Regex trie(std::span<const std::string> texts, std::size_t at, Spelling spelling);
  [[nodiscard]] bool is_any_star(Regex r) const noexcept;
  [[nodiscard]] bool search_empty(Regex r);
  void front_sets(Regex r, std::vector<ByteSet>& out);
  [[nodiscard]] std::uint32_t set_id(const ByteSet& set);
  [[nodiscard]] std::uint32_t charset_id(const CharSet& set);
  void merge_sets(std::vector<Regex>& parts);
  void merge_heads(std::vector<Regex>& parts);

  std::vector<Node> nodes_;
  std::vector<Regex> lists_;
  Interner index_;
  std::vector<ByteSet> sets_;
  Interner set_index_;
  std::vector<CharSet> charsets_;
  Interner charset_index_;
  std::vector<NumberSpec> numbers_;
  std::vector<NumberState> number_states_;
  SmallMap expanded_;              // character node -> node over bytes
  SmallMap derivatives_;           // node << 8 | byte -> node
  SmallMap firsts_;                // node -> set
  std::uint64_t work_ = 0;
  std::vector<std::uint8_t> empty_;  // [nodes]: 0 unknown, 1 empty, 2 not
};

}  // namespace tessera::grammar
