// The normalizers of a tokenizer.json: they change a text before it is cut into words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/core/result.hpp>

#include "text/models/charsmap.hpp"
#include "text/nfc.hpp"
#include "text/pipeline/normal_form.hpp"
#include "text/pipeline/regex.hpp"

namespace tessera::detail {

// One step of a normalizer. "Sequence" and "BertNormalizer" are several steps.
struct NormalizerStep {
  enum class Kind : std::uint8_t {
    normal_form, lower_case, remove_marks, remove_nonspacing, replace, prepend, append, strip, clean, surround_ideographs, nmt,
    charsmap, bytes
  };
  Kind kind;
  NormalForm form{};                // normal_form
  Regex pattern{};                  // replace: what is replaced
  std::string text{};               // replace, prepend, append
  bool left = false, right = false;  // strip: at which ends
  Charsmap map{};                   // charsmap
};

class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  explicit Normalizer(std::vector<NormalizerStep> steps) noexcept : steps_(std::move(steps)) {}
  [[nodiscard]] bool empty() const noexcept { return steps_.empty(); }
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept;
  [[nodiscard]] const std::vector<NormalizerStep>& steps() const noexcept { return steps_; }

  // Normalises texts, with working memory that lasts for one encode() call of the tokenizer.
  class Runner {
   public:
    [[nodiscard]] static Result<Runner> create(const Normalizer& normalizer);
    // Returns the normal form of `text`, which must be valid UTF-8. The result is `text` itself or a view into this object, valid until
    // the next call. Errors: unsupported, a pattern takes too much work; invalid_argument, the normal form is too long.
    [[nodiscard]] Result<std::string_view> run(std::string_view text);
    // Returns how many bytes at the beginning of the last run()'s result come from the first character of that run()'s text. Splitter
    // needs this number, because some of its steps treat the beginning of the input differently.
    [[nodiscard]] std::size_t origin() const noexcept { return origin_; }

   private:
    [[nodiscard]] Status replace(const NormalizerStep& step, Regex::Finder& finder, std::string_view text, std::string& out);
    [[nodiscard]] Status follow_origin(std::size_t step, std::string_view before, std::string_view after);
    [[nodiscard]] Result<std::string_view> run_step(std::size_t step, std::string_view text, std::string& out);

    const Normalizer* normalizer_ = nullptr;
    std::vector<Regex::Finder> finders_;  // [steps]; empty objects for steps without a pattern
    Nfc nfc_;
    NormalFormer former_;
    std::string buffers_[2];
    std::size_t longest_ = 0;  // bytes that a result of this run() may have
    std::size_t origin_ = 0;   // see origin()
  };

 private:
  std::vector<NormalizerStep> steps_;
};

}  // namespace tessera::detail
