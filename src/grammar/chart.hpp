// Earley's parser (1970). It reads a sequence of terminals, and says which terminals may come next.
//
// An item says that a rule is being read, and how far: the rule, a position in the rule (a node), the row in which the rule was called
// (the origin), and a number with which lists and objects count. A row is the set of items after the terminals that were read so far; it
// refers to earlier rows by id. If two positions of a text have the same items, they have the same row. So a row's id is the whole state
// of the parser: what follows a row is computed only once, and going back in the text means going back to an earlier row's id.
//
// If the last symbol of a rule is a call, the called rule's items get the caller's origin and rule. So for a rule that ends with a call
// of itself (right recursion), one completion is enough, however deep the recursion is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/lexer.hpp"
#include "grammar/program.hpp"

namespace tessera::grammar {

struct Item {
  std::uint32_t node;
  std::uint32_t count;   // for lists: number of items so far; for objects: id of the set of properties seen
  std::uint32_t origin;  // row in which the rule was called
  std::uint32_t rule;    // rule that is completed when the items reach its end
  auto operator<=>(const Item&) const noexcept = default;
};

class Chart {
 public:
  Chart(const Program& program, Lexer& lexer);

  static constexpr std::size_t kMostRows = 400'000, kMostItems = 20'000;

  // Returns the row with these items, which is made if it is new. Precondition: `kernel` is sorted and has no item twice.
  [[nodiscard]] std::uint32_t row(std::span<const Item> kernel);
  [[nodiscard]] static constexpr std::uint32_t first_row() noexcept { return 0; }

  [[nodiscard]] bool accepts(std::uint32_t row) const noexcept { return rows_[row].accepts; }
  [[nodiscard]] std::uint32_t lexer_state(std::uint32_t row) const noexcept { return rows_[row].lexer; }
  // Appends to `out` the items that follow when `terminal` is read in `row`.
  void scan(std::uint32_t row, std::uint32_t terminal, std::vector<Item>& out) const;

  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  struct Waiting {  // an item, and the symbol that must be read before it
    std::uint32_t symbol;
    Item item;
  };
  struct Row {
    std::uint32_t kernel, kernel_size;
    std::uint32_t scans, scans_size;  // range of scans_, sorted by terminal: first index and number
    std::uint32_t calls, calls_size;  // range of calls_, sorted by rule: first index and number
    std::uint32_t lexer;
    bool accepts;
  };

  void add(const Item& item);
  void expand(const Item& item, std::uint32_t self);
  void read(Symbol symbol, const Item& then, std::uint32_t self);
  void complete(const Item& item, std::uint32_t self);
  void expand_list(const Item& item, const ProgramNode& node, std::uint32_t self);
  void expand_object(const Item& item, const ProgramNode& node, std::uint32_t self);

  // Returns an id for a set of properties of an object, namely those that have occurred. `words`: one bit for each property, then a word
  // with the number of members.
  [[nodiscard]] std::uint32_t seen_id(std::span<const std::uint64_t> words);

  const Program& program_;
  Lexer& lexer_;
  std::vector<Row> rows_;
  std::vector<Item> kernels_;
  std::vector<Waiting> scans_, calls_;
  Interner index_;
  std::vector<std::uint64_t> seen_words_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen_;  // [id of a set]: first index in seen_words_, and number of words
  Interner seen_index_;

  // Working lists for the row that is being made.
  std::vector<Item> items_;
  Interner item_index_;
  std::vector<Waiting> new_scans_, new_calls_;
  std::vector<std::uint32_t> terminals_;
  bool new_accepts_ = false;
  std::uint64_t work_ = 0;
};

}  // namespace tessera::grammar
