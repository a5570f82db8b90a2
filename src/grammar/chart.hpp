// Earley's parser (1970) over terminals, with shared rows. A row consists of the items that its last terminals completed, and refers to
// other rows by id. Two places of a text with the same items have the same row. So a row is a state, the row behind a terminal is worked
// out once, and going back means remembering an id.
//
// An item is a node of a rule, a number that lists and objects count with, the row where the rule was called, and the rule that is
// completed at the item's end. A call in last position hands on its caller's origin, so right recursion is as flat as left recursion.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/lexer.hpp"
#include "grammar/program.hpp"

namespace tessera::grammar {

struct Item {
  std::uint32_t node;
  std::uint32_t count;   // number of list items; for objects the id of the properties seen
  std::uint32_t origin;  // row where the rule was called
  std::uint32_t rule;    // rule that is completed at the end
  auto operator<=>(const Item&) const noexcept = default;
};

class Chart {
 public:
  Chart(const Program& program, Lexer& lexer);

  static constexpr std::size_t kMostRows = 400'000, kMostItems = 20'000;

  // Returns the row of these items; makes it if it is new. Precondition: `kernel` is sorted, without doubles.
  [[nodiscard]] std::uint32_t row(std::span<const Item> kernel);
  [[nodiscard]] static constexpr std::uint32_t first_row() noexcept { return 0; }

  [[nodiscard]] bool accepts(std::uint32_t row) const noexcept { return rows_[row].accepts; }
  [[nodiscard]] std::uint32_t lexer_state(std::uint32_t row) const noexcept { return rows_[row].lexer; }
  // Appends to `out` the items that follow once `terminal` has been read in `row`.
  void scan(std::uint32_t row, std::uint32_t terminal, std::vector<Item>& out) const;

  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  struct Waiting {  // an item that goes on when its symbol is read
    std::uint32_t symbol;
    Item item;
  };
  struct Row {
    std::uint32_t kernel, kernel_size;
    std::uint32_t scans, scans_size;  // place and number in scans_, ordered by terminal
    std::uint32_t calls, calls_size;  // place and number in calls_, ordered by rule
    std::uint32_t lexer;
    bool accepts;
  };

  void add(const Item& item);
  void expand(const Item& item, std::uint32_t self);
  void read(Symbol symbol, const Item& then, std::uint32_t self);
  void complete(const Item& item, std::uint32_t self);
  void expand_list(const Item& item, const ProgramNode& node, std::uint32_t self);
  void expand_object(const Item& item, const ProgramNode& node, std::uint32_t self);

  // For objects: returns the id of a set of seen properties. `words`: one bit for each property, then the number of members.
  [[nodiscard]] std::uint32_t seen_id(std::span<const std::uint64_t> words);

  const Program& program_;
  Lexer& lexer_;
  std::vector<Row> rows_;
  std::vector<Item> kernels_;
  std::vector<Waiting> scans_, calls_;
  Interner index_;
  std::vector<std::uint64_t> seen_words_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen_;  // place in seen_words_, number of words
  Interner seen_index_;

  // Working lists, used while a row is made.
  std::vector<Item> items_;
  Interner item_index_;
  std::vector<Waiting> new_scans_, new_calls_;
  std::vector<std::uint32_t> terminals_;
  bool new_accepts_ = false;
  std::uint64_t work_ = 0;
};

}  // namespace tessera::grammar
