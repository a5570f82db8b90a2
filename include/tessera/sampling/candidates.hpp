// The tokens that may still be drawn, and what a stage can do to them. Two orders exist, both the same on every
// machine: by token id (at the start; removing keeps the order) and best first. "Best" means the higher logit, and of
// equal logits the lower token id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tessera/core/token.hpp>

namespace tessera::sampling {

struct Candidate {
  Token token;
  float logit;
  float probability;  // what the last softmax() said; stages that change logits leave it stale
};

class Candidates {
 public:
  // Memory that is taken once for a vocabulary and lent to every draw.
  struct Workspace {
    std::span<Candidate> items;          // [vocabulary]
    std::span<Candidate> spare;          // [vocabulary]
    std::span<std::uint64_t> keys;       // [vocabulary]
    std::span<std::uint32_t> counts;     // [vocabulary], all zero between stages
  };

  // The first `size` of workspace.items are the candidates.
  Candidates(const Workspace& workspace, std::size_t size) noexcept : workspace_(workspace), size_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t vocabulary() const noexcept { return workspace_.items.size(); }

  // Read them, or change their logits. A logit of -inf removes the candidate from the draw; of several +inf each is
  // equally likely. Tokens must stay as they are.
  [[nodiscard]] std::span<const Candidate> view() const noexcept { return workspace_.items.first(size_); }
  [[nodiscard]] std::span<Candidate> items() noexcept { return workspace_.items.first(size_); }

  // The best of them. Must not be empty.
  [[nodiscard]] const Candidate& best() const noexcept;

  // Keeps the first n in the present order.
  void keep(std::size_t n) noexcept {
    if (n < size_) size_ = n;
  }

  // Keeps the n best, in the present order. Linear: nothing is sorted.
  void keep_best(std::size_t n) noexcept;

  // Keeps the smallest set of best candidates whose probabilities reach p, and at least min_keep (and one) of them, in
  // the present order. After softmax(). Linear but for a small part that is sorted.
  void keep_mass(double p, std::size_t min_keep) noexcept;

  // Brings the n best to the front, best first; the others follow in the order they had. O(size + n log n).
  void sort_best(std::size_t n) noexcept;

  // Sets each probability to exp(logit) / sum of exp(logit), summed in double, four running sums over the present
  // order. False, with nothing of use done, where that is not a number: no candidate, all -inf, or a NaN.
  bool softmax() noexcept;

  // Removes the candidates for which condition(candidate) holds; the others keep their order.
  template <class Condition>
  void remove_if(Condition&& condition) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      const Candidate candidate = workspace_.items[i];
      if (!condition(candidate)) workspace_.items[kept++] = candidate;
    }
    size_ = kept;
  }

  // Scratch memory for stages. `spare` has room for every candidate; the functions above use it too. `counts`
  // has one cell per token id: whoever writes it puts the zeros back.
  [[nodiscard]] std::span<Candidate> spare() noexcept { return workspace_.spare; }
  [[nodiscard]] std::span<std::uint32_t> counts() noexcept { return workspace_.counts; }

 private:
  std::uint64_t nth_key(std::size_t n) noexcept;

  Workspace workspace_;
  std::size_t size_;
};

}  // namespace tessera::sampling
