// The library PCRE2: its header, objects that free themselves, and its messages. PCRE2 matches the patterns of GGUF's pre-tokenizers and of
// tokenizer.json files.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tessera::detail {

struct FreePcre2 {
  void operator()(pcre2_code* freed) const noexcept { pcre2_code_free(freed); }
  void operator()(pcre2_compile_context* freed) const noexcept { pcre2_compile_context_free(freed); }
  void operator()(pcre2_match_data* freed) const noexcept { pcre2_match_data_free(freed); }
  void operator()(pcre2_match_context* freed) const noexcept { pcre2_match_context_free(freed); }
};
using Pcre2Code = std::unique_ptr<pcre2_code, FreePcre2>;
using Pcre2CompileContext = std::unique_ptr<pcre2_compile_context, FreePcre2>;
using Pcre2MatchData = std::unique_ptr<pcre2_match_data, FreePcre2>;
using Pcre2MatchContext = std::unique_ptr<pcre2_match_context, FreePcre2>;

// Compiles a pattern, if possible to machine code (JIT). If PCRE2 refuses the pattern, returns nullptr, and sets `error` to PCRE2's code.
[[nodiscard]] inline Pcre2Code compile_pcre2(std::string_view pattern, std::uint32_t options, pcre2_compile_context* context, int& error) {
  PCRE2_SIZE offset = 0;
  Pcre2Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), options, &error, &offset, context));
  // An error is ignored: if there is no JIT, or the system forbids it, the interpreter finds the same matches.
  if (code) (void)pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// Returns whether an error of PCRE2 says that there is not enough memory.
[[nodiscard]] inline bool is_pcre2_memory_error(int code) noexcept {
  constexpr int kCompileNoMemory = 121;
  return code == PCRE2_ERROR_NOMEMORY || code == kCompileNoMemory;
}

// Returns PCRE2's message for an error.
[[nodiscard]] inline std::string pcre2_message(int code) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

[[nodiscard]] inline std::uint64_t pcre2_memory_bytes(const pcre2_code* code) noexcept {
  std::uint64_t total = 0;
  for (const std::uint32_t what : {std::uint32_t{PCRE2_INFO_SIZE}, std::uint32_t{PCRE2_INFO_JITSIZE}}) {
    std::size_t bytes = 0;
    if (pcre2_pattern_info(code, what, &bytes) == 0) total += bytes;
  }
  return total;
}

}  // namespace tessera::detail
