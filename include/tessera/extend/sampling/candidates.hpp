// The candidates (tokens that may still be drawn), and the changes that a stage can make to them. At first the candidates are in the order
// of token ids, and removing candidates keeps the order; sort_best() moves the best to the front. Both orders are the same on every
// machine. The *best* candidate has the highest logit; of equal logits, the lowest token id.
//
// Candidates are stored as columns (all tokens, all logits, all weights), so that loops over a vocabulary are loops over plain floats. A
// `Candidate` is one row of these columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include <tessera/core/token.hpp>

namespace tessera::sampling {

struct Candidate {
  Token token;
  float logit;
  float probability;  // probability after the last softmax(), even if logits have changed since; 0 before the first softmax()
};

// The candidates of one draw. A stage receives and changes them:
//
//   auto stage = [](sampling::Candidates& candidates, const sampling::Context&) { candidates.keep_best(40); };
//   auto sampler = sampling::chain().stage(stage).seed(1).build();
class Candidates {
 public:
  // Memory for all candidates of a vocabulary. It is allocated once and used by every draw.
  struct Workspace {
    std::span<Token> tokens;           // [vocabulary]
    std::span<float> logits;           // [vocabulary]
    std::span<float> weights;          // [vocabulary]
    std::span<std::uint64_t> keys;     // [vocabulary], scratch
    std::span<std::uint32_t> counts;   // [vocabulary], all zero between stages
  };

  // Makes candidates from the first `size` elements of workspace.tokens and workspace.logits.
  Candidates(const Workspace& workspace, std::size_t size) noexcept : workspace_(workspace), size_(size), rows_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t vocabulary() const noexcept { return workspace_.tokens.size(); }

  [[nodiscard]] Candidate operator[](std::size_t i) const noexcept {
    settle();
    return {workspace_.tokens[i], workspace_.logits[i], probability(i)};
  }
  [[nodiscard]] std::span<const Token> tokens() const noexcept {
    settle();
    return workspace_.tokens.first(size_);
  }
  [[nodiscard]] std::span<const float> logits() const noexcept {
    settle();
    return workspace_.logits.first(size_);
  }
  [[nodiscard]] float probability(std::size_t i) const noexcept {
    settle();
    return sum_ > 0.0 ? static_cast<float>(static_cast<double>(workspace_.weights[i]) / sum_) : 0.0f;
  }

  // Returns the rows as a range: for (const Candidate candidate : candidates.view()).
  class View;
  [[nodiscard]] View view() const noexcept;

  // Returns the logits, which the caller may change. A candidate with the logit -inf is never drawn. If a candidate has +inf, only
  // candidates with +inf are drawn, and all of these are equally likely.
  [[nodiscard]] std::span<float> change_logits() noexcept {
    settle();
    weighed_ = false;
    return workspace_.logits.first(size_);
  }

  // Returns the best candidate. Precondition: not empty().
  [[nodiscard]] Candidate best() const noexcept {
    settle();
    return (*this)[best_index()];
  }

  // Sets each logit to (logit - shift) / divisor. Precondition: divisor > 0.
  void divide_logits(float shift, float divisor) noexcept;

  // Keeps the first n candidates in the present order.
  void keep(std::size_t n) noexcept {
    settle();
    if (n >= size_) return;
    size_ = rows_ = n;
    weighed_ = false;
  }

  // Keeps the n best candidates, in the present order. Time: linear, because nothing is sorted.
  void keep_best(std::size_t n) noexcept;

  // Keeps the candidates whose logit is at least `threshold` or NaN, in the present order.
  void keep_from(double threshold) noexcept;

  // Keeps the smallest set of best candidates whose probabilities sum to at least p, but at least min_keep candidates and at least one.
  // Keeps the present order. Precondition: softmax() was called. Time: linear, except for a small part that is sorted.
  void keep_mass(double p, std::size_t min_keep) noexcept;

  // Moves the n best candidates to the front, best first; the others follow in their old order. Time: O(size + n log n).
  void sort_best(std::size_t n) noexcept;

  // Computes the probability of each candidate: exp(logit) / sum of exp(logit). The sum is computed in double, in a fixed order of
  // additions (candidate i is added to running sum i % 4 of four), so that all machines get the same bits. Returns false, and sets the
  // probabilities to 0, if the result is not a number: there is no candidate, all logits are -inf, or a logit is NaN.
  bool softmax() noexcept;

  // Removes the candidates for which condition(candidate) returns true; the others keep their order.
  template <class Condition>
  void remove_if(Condition&& condition) {
    settle();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      if (!condition((*this)[i])) move_row(i, kept++);
    }
    shrink(kept);
    weighed_ = false;
  }

  // Returns scratch memory for stages: one cell for each token id, which is 0. A stage that writes to a cell sets the cell back to 0 before
  // it returns.
  [[nodiscard]] std::span<std::uint32_t> counts() noexcept { return workspace_.counts; }

  // Draws a token after the last stage: returns the first candidate at which the running sum of probabilities exceeds uniform * (sum of all
  // probabilities). Preconditions: softmax() has succeeded; uniform is in [0, 1).
  [[nodiscard]] Token draw(double uniform) const noexcept;

  // Returns n such that no row from n on has been moved or overwritten: these rows still have the tokens that they had at first. So the
  // sampler needs to restore only the first n tokens before the next draw.
  [[nodiscard]] std::size_t rows_moved() const noexcept { return rows_moved_; }

 private:
  struct Edge {
    std::uint64_t threshold;  // key() of the last candidate that is kept
    bool certain;             // true: rounding of the sums cannot have changed which candidates are kept
  };

  [[nodiscard]] std::uint64_t key(std::size_t i) const noexcept;
  [[nodiscard]] std::size_t best_index() const noexcept;
  std::uint64_t nth_key(std::size_t n) noexcept;
  void keep_keys_from(std::uint64_t threshold) noexcept;
  std::size_t move_kept(std::uint64_t threshold) const noexcept;
  void remove_now() const noexcept;
  [[nodiscard]] double exact_sum() const noexcept;
  template <class Mass, class At>
  std::size_t narrow(double target, const Mass& mass, const At& at, std::size_t count, double& above) noexcept;
  template <class Mass>
  Edge find_edge(double target, double doubt, const Mass& mass) noexcept;

  // Completes a removal that keep_mass() has postponed. keep_mass() only sets the weights of removed rows to 0, because often the draw
  // follows directly and no row needs to move. Every function that reads rows calls settle() first.
  void settle() const noexcept {
    if (put_off_) remove_now();
  }

  void move_row(std::size_t from, std::size_t to) const noexcept {
    workspace_.tokens[to] = workspace_.tokens[from];
    workspace_.logits[to] = workspace_.logits[from];
    workspace_.weights[to] = workspace_.weights[from];
  }
  // Sets the size after the kept rows were moved to the front. Row number `kept` may have been overwritten too, because a loop copies each
  // row to the next free place before it knows whether the row is kept.
  void shrink(std::size_t kept) noexcept {
    if (kept < size_ && kept >= rows_moved_) rows_moved_ = kept + 1;
    size_ = rows_ = kept;
  }

  Workspace workspace_;
  std::size_t size_;
  mutable std::size_t rows_;           // number of rows: size_, or more while a removal is postponed
  mutable std::size_t rows_moved_ = 0;
  mutable bool put_off_ = false;       // true: rows whose key is below put_off_threshold_ are no longer candidates
  std::uint64_t put_off_threshold_ = 0;
  // Sum of the weights at the last softmax(); 0 before the first.
  mutable double sum_ = 0.0;
  // true: a removal was postponed during softmax(), so the last bits of sum_ may differ from the sum in the fixed order.
  mutable bool sum_loose_ = false;
  bool weighed_ = false;  // true: the weights are exp(logit - best logit) of the present candidates
  bool by_token_ = true;  // true: the candidates are in the order of token ids
};

class Candidates::View {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Candidate;
    using difference_type = std::ptrdiff_t;
    using pointer = const Candidate*;
    using reference = Candidate;

    iterator() noexcept = default;
    iterator(const Candidates* candidates, std::size_t at) noexcept : candidates_(candidates), at_(at) {}
    Candidate operator*() const noexcept { return (*candidates_)[at_]; }
    iterator& operator++() noexcept { return ++at_, *this; }
    iterator operator++(int) noexcept { return {candidates_, at_++}; }
    bool operator==(const iterator& other) const noexcept { return at_ == other.at_; }

   private:
    const Candidates* candidates_ = nullptr;
    std::size_t at_ = 0;
  };

  explicit View(const Candidates* candidates) noexcept : candidates_(candidates) {}
  [[nodiscard]] iterator begin() const noexcept { return {candidates_, 0}; }
  [[nodiscard]] iterator end() const noexcept { return {candidates_, candidates_->size()}; }
  [[nodiscard]] std::size_t size() const noexcept { return candidates_->size(); }
  [[nodiscard]] Candidate operator[](std::size_t i) const noexcept { return (*candidates_)[i]; }

 private:
  const Candidates* candidates_;
};

inline Candidates::View Candidates::view() const noexcept { return View(this); }

}  // namespace tessera::sampling
