// The pre-tokenizers of a tokenizer.json: they cut a text into the words that the model encodes one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

#include "text/pipeline/characters.hpp"
#include "text/pipeline/regex.hpp"

namespace tessera::detail {

// The ways in which matches become pieces when a text is split.
enum class SplitBehavior : std::uint8_t { removed, isolated, contiguous, merged_with_previous, merged_with_next };

// Says before which texts the step Metaspace puts its mark (usually U+2581). always: before each text between added tokens; first: only
// before a text at the very beginning of the input; never: before none.
enum class PrependScheme : std::uint8_t { always, first, never };

struct SplitStep {
  enum class Kind : std::uint8_t {
    pattern,           // splits by `pattern`
    white_space,       // splits by characters of a kind
    numeric,           //
    punctuation,       //
    delimiter,         //
    words,             // keeps runs of word characters, and runs of others that are not white space
    fixed_length,      // pieces of `length` characters
    metaspace,         // writes spaces as `mark`, and splits in front of it if `splits`
    prefix_space,      // puts a space in front of a text that does not begin with one
    bytes              // writes bytes in GPT-2's alphabet
  };
  Kind kind;
  SplitBehavior behavior = SplitBehavior::removed;
  bool invert = false;
  Regex pattern{};
  CodePoint delimiter = 0;
  std::size_t length = 0;
  std::string mark{};
  PrependScheme scheme = PrependScheme::never;
  bool splits = false;
};

class Splitter {
 public:
  Splitter() = default;  // does not split
  explicit Splitter(std::vector<SplitStep> steps) noexcept : steps_(std::move(steps)) {}
  [[nodiscard]] const std::vector<SplitStep>& steps() const noexcept { return steps_; }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  // Removes the last step if its kind is `bytes`, and returns whether it has removed it. The step `bytes` writes each byte of a word as a
  // letter of GPT-2's alphabet. Without this step, the words consist of the text's own bytes, so the model must be one that reads bytes.
  [[nodiscard]] bool take_last_bytes() noexcept;

  using Word = std::function<Status(std::string_view)>;

  // Splits texts, with working memory that lasts for one encode() call of the tokenizer.
  class Runner {
   public:
    [[nodiscard]] static Result<Runner> create(const Splitter& splitter);
    // Calls word() for each word of `text`, in order; no word is empty. `text` is one of the texts between the added tokens of an input,
    // normalised. `origin`: if `text` is at the beginning of the input, the number of bytes at its beginning that the normaliser has made
    // from the input's first character (Normalizer::Runner::origin()); otherwise 0. Steps that treat the beginning of the input
    // differently need it. Precondition: `text` is valid UTF-8. Errors: those of word(), and unsupported, a pattern takes too much work.
    [[nodiscard]] Status run(std::string_view text, std::size_t origin, const Word& word);

   private:
    class Parts;
    [[nodiscard]] Status run_from(std::size_t step, std::string_view text, std::size_t origin);
    [[nodiscard]] Status by_pattern(std::size_t step, std::string_view text, Parts& parts);
    [[nodiscard]] Status metaspace(std::size_t step, std::string_view text, std::size_t origin);

    const Splitter* splitter_ = nullptr;
    const Word* word_ = nullptr;
    std::vector<Regex::Finder> finders_;  // [steps]; empty objects for steps without a pattern
    std::vector<std::string> texts_;      // [steps]: the text that a step writes
  };

 private:
  std::vector<SplitStep> steps_;
};

}  // namespace tessera::detail
