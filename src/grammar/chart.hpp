// Earley's parser (1970) over terminals, with rows that are shared: a row is made of the items that its last terminals
// completed, refers to other rows by id, and two places of a text with the same items have the same row. So a row is a
// state, what a terminal leads to is worked out once, and going back is to remember an id.
//
// An item is a node of a rule, a number that lists and objects count with, the row where the rule was called, and the rule
// that is completed at its end. A call in last position hands its caller's origin on, so that right recursion is as flat
// as left recursion.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/lexer.hpp"
#include "grammar/program.hpp"

namespace tessera::grammar {

struct Item {
  std::uint32_t node;
  std::uint32_t count;   // of list items; for objects, which properties were seen (an id)
  std::uint32_t origin;  // a row
  std::uint32_t rule;    // what is completed at the end
  auto operator<=>(const Item&) const noexcept = default;
};

class Chart {
 public:
  Chart(const Program& program, Lexer& lexer);

  static constexpr std::size_t kMostRows = 400'000, kMostItems = 20'000;

  // The row of these items, sorted and each once.
  [[nodiscard]] std::uint32_t row(std::span<const Item> kernel);
  [[nodiscard]] static constexpr std::uint32_t first_row() noexcept { return 0; }

  [[nodiscard]] bool accepts(std::uint32_t row) const noexcept { return rows_[row].accepts; }
  [[nodiscard]] std::uint32_t lexer_state(std::uint32_t row) const noexcept { return rows_[row].lexer; }
  // Adds the items behind `terminal`, read from `row`.
  void scan(std::uint32_t row, std::uint32_t terminal, std::vector<Item>& out) const;

  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  [[nodiscard]] std::uint64_t work() const noexcept { return work_; }

 private:
  struct Waiting {  // an item that goes on when its symbol is there
    std::uint32_t symbol;
    Item item;
  };
  struct Row {
    std::uint32_t kernel, kernel_size;
    std::uint32_t scans, scans_size;  // by terminal
    std::uint32_t calls, calls_size;  // by rule
    std::uint32_t lexer;
    bool accepts;
  };

  void add(const Item& item);
  void expand(const Item& item, std::uint32_t self);
  void read(Symbol symbol, const Item& then, std::uint32_t self);
  void complete(const Item& item, std::uint32_t self);
  void expand_list(const Item& item, const ProgramNode& node, std::uint32_t self);
  void expand_object(const Item& item, const ProgramNode& node, std::uint32_t self);

  // Of objects: the properties seen, one bit each, and behind them the number of members.
  [[nodiscard]] std::uint32_t seen_id(std::span<const std::uint64_t> words);

  const Program& program_;
  Lexer& lexer_;
  std::vector<Row> rows_;
  std::vector<Item> kernels_;
  std::vector<Waiting> scans_, calls_;
  Interner index_;
  std::vector<std::uint64_t> seen_words_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> seen_;  // where in seen_words_, how many
  Interner seen_index_;

  // While a row is made.
  std::vector<Item> items_;
  Interner item_index_;
  std::vector<Waiting> new_scans_, new_calls_;
  std::vector<std::uint32_t> terminals_;
  bool new_accepts_ = false;
  std::uint64_t work_ = 0;
};

}  // namespace tessera::grammar
