// Custom sampler stages: a lambda that masks tokens and a class with a memory, in a chain with the library's stages.
// The logits are made up here; with an engine, pass the sampler to Session::generate().
#include <algorithm>
#include <cstdio>
#include <vector>

#include <tessera/sampling/chain.hpp>

using tessera::sampling::Candidate;
using tessera::sampling::Candidates;
using tessera::sampling::Context;

// Allows each token at most `limit` times. accept() and rollback() keep the memory in step with the sequence.
class AtMost {
 public:
  explicit AtMost(std::ptrdiff_t limit) : limit_(limit) {}

  void operator()(Candidates& candidates, const Context&) const {
    candidates.remove_if([&](const Candidate& candidate) {
      return std::count(taken_.begin(), taken_.end(), candidate.token) >= limit_;
    });
  }
  void accept(tessera::Token token, float) { taken_.push_back(token); }
  void rollback(std::size_t n) { taken_.resize(taken_.size() - n); }

 private:
  std::ptrdiff_t limit_;
  std::vector<tessera::Token> taken_;
};

int main() {
  const auto even_first = [](Candidates& candidates, const Context& context) {
    if (context.position == 0) candidates.remove_if([](const Candidate& c) { return c.token % 2 != 0; });
  };
  auto sampler = tessera::sampling::chain().stage(even_first).stage(AtMost(2)).temperature(0.7f).seed(42).build();

  const std::vector<float> logits = {0.1f, 1.2f, 0.3f, 2.5f, 1.0f};
  std::vector<tessera::Token> history;
  for (std::uint64_t position = 0; position < 10; ++position) {
    const auto token = sampler.sample(logits, history, position);
    const auto taken = token ? sampler.accept(*token) : tessera::Status(token.error());
    if (!taken) return std::fprintf(stderr, "%s\n", taken.error().text().c_str()), 1;
    history.push_back(*token);
    std::printf("%d ", *token);
  }
  std::printf("\n");
}
