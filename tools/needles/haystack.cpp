#include "haystack.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace tessera::needles {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 2862933555777941757u + 3037000493u) {}
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(state_ >> 33) % n;
  }
  template <std::size_t kN>
  std::string_view of(const std::array<std::string_view, kN>& words) { return words[below(kN)]; }

 private:
  std::uint64_t state_;
};

constexpr std::array<std::string_view, 12> kWho = {"The gardener", "A young teacher", "The old baker", "My neighbour", "The captain", "A farmer",
                                                   "The librarian", "Her brother", "The carpenter", "A tired nurse", "The painter", "His aunt"};
constexpr std::array<std::string_view, 12> kDid = {"walked to", "wrote a letter about", "often spoke of", "painted", "remembered", "left",
                                                   "returned to", "dreamed of", "asked about", "looked at", "cleaned", "sold"};
constexpr std::array<std::string_view, 12> kWhat = {"the bridge", "the small garden", "the market", "a wooden boat", "the kitchen", "the old mill",
                                                    "the harbour", "the red house", "the forest", "a broken clock", "the school", "the river"};
constexpr std::array<std::string_view, 10> kWhen = {"in the morning", "before the rain came", "after lunch", "on a cold day", "late in the evening",
                                                    "during the summer", "while the others slept", "when the wind was calm", "without a word", "for the first time"};
constexpr std::array<std::string_view, 10> kThings = {"lighthouse", "castle", "museum", "bakery", "observatory", "monastery", "theatre", "fortress", "orchard", "railway"};

std::string sentence(Random& random) {
  return fmt::format("{} {} {} {}. ", random.of(kWho), random.of(kDid), random.of(kWhat), random.of(kWhen));
}

}  // namespace

Haystack make_haystack(std::uint64_t seed, std::size_t words, double depth) {
  Random random(seed);
  const std::string_view thing = random.of(kThings);
  Haystack made;
  for (int i = 0; i < 5; ++i) made.answer += static_cast<char>('1' + random.below(9));
  bool is_in = false;
  std::size_t n = 0;
  while (n < words) {
    if (!is_in && static_cast<double>(n) >= depth * static_cast<double>(words)) {
      made.text += fmt::format("The secret number of the {} is {}. ", thing, made.answer);
      is_in = true;
    }
    const std::string next = sentence(random);
    n += static_cast<std::size_t>(std::ranges::count(next, ' '));
    made.text += next;
  }
  made.question = fmt::format("\n\nQuestion: What is the secret number of the {}?\nAnswer: The secret number of the {} is", thing, thing);
  return made;
}

}  // namespace tessera::needles
