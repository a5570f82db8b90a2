// Regular expressions over bytes. They are stored as nodes, and equal nodes are stored only once (hash consing), so an expression is the
// id of its node. They are matched by derivatives: the derivative of an expression r by a byte b is the expression of all texts that may
// follow b in a text of r (Brzozowski, 1964). Nodes are brought into a normal form. So expressions that match the same texts mostly have
// the same id, and each expression has finitely many derivatives. Intersection and complement are nodes like any other.
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

using Regex = std::uint32_t;  // the id of a node

inline constexpr std::uint32_t kUnlimited = 0xFFFFFFFFu;

class RegexStore {
 public:
  RegexStore();

  static constexpr Regex kEmpty = 0;    // matches no text
  static constexpr Regex kEpsilon = 1;  // matches only the empty text
  static constexpr Regex kAll = 3;      // matches every text of bytes

  Regex bytes(const ByteSet& set);
  Regex literal(std::string_view text);                          // matches exactly these bytes
  Regex character(const CharSet& set, Spelling spelling);        // matches one character of the set
  Regex literal(std::string_view utf8, Spelling spelling);       // matches these characters, in any way they may be written
  // Matches any of these texts. The expression is a tree over the texts' characters: texts with the same beginning share its nodes.
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
  // Copies a node of another store into this store. `done`: [nodes of from], the copy of each node; kNone at first.
  Regex import(const RegexStore& from, Regex node, std::vector<Regex>& done);

  [[nodiscard]] bool nullable(Regex r) const noexcept { return nodes_[r].nullable; }
  [[nodiscard]] Regex derivative(Regex r, unsigned byte);
  // Returns a set of bytes that contains at least every byte with which a text of r may begin.
  [[nodiscard]] const ByteSet& first(Regex r);
  // Divides the 256 bytes into classes: all bytes of a class have the same derivative of r (or of each expression of the list). So a
  // derivative is computed once for each class, not for each byte. Sets classes[b] to the class of byte b, and returns the number of
  // classes. Class 0 has the bytes with which no text of r begins. If there are more than 255 classes, returns 0: then only class 0 can be
  // relied on, and each other byte must be treated as a class of its own.
  unsigned classes(Regex r, std::array<std::uint8_t, 256>& classes) { return classes_of({&r, 1}, classes); }
  unsigned classes_of(std::span<const Regex> list, std::array<std::uint8_t, 256>& classes);
  // Returns whether r matches no text. If r contains an intersection, a complement or a number, the answer may take a search over
  // derivatives.
  [[nodiscard]] bool is_empty(Regex r);
  [[nodiscard]] bool matches(Regex r, std::string_view text);
  // Returns true if every sequence of at most n characters of the set, written in UTF-8 without escapes, is the beginning of some text of
  // r. May return false although that is so, if it is not easy to find out.
  [[nodiscard]] bool absorbs(Regex r, const CharSet& set, std::uint32_t n);
  [[nodiscard]] bool searches(Regex r) const noexcept { return nodes_[r].search; }  // true: is_empty(r) has to search

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }  // number of derivatives computed so far

  static constexpr std::size_t kMostNodes = 400'000;
  static constexpr std::uint32_t kDeepest = 2'000;  // limit for the recursion in a derivative

 private:
  enum class Kind : std::uint8_t { empty, epsilon, bytes, character, concat, alternative, both, negate, repeat, number };
  struct Node {
    Kind kind;
    bool nullable = false;
    bool search = false;     // true: the expression contains an intersection, a complement or a number, so is_empty() has to search
    bool pure_json = false;  // true: all texts of the expression are whole characters as a JSON string writes them; false: not known
    bool finite = false;     // true: the expression has finitely many texts; false: not known
    std::uint32_t a = 0, b = 0;      // operands; for a list: its first index in lists_, and its size
    std::uint32_t min = 0, max = 0;  // bounds of a repetition
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
  SmallMap expanded_;              // key: node of a character set; value: node over bytes
  SmallMap derivatives_;           // key: node << 8 | byte; value: node
  SmallMap firsts_;                // key: node; value: index of its set of first bytes
  std::uint64_t work_ = 0;
  std::vector<std::uint8_t> empty_;  // [node]: 0 not known, 1 empty, 2 not empty
};

}  // namespace tessera::grammar
