// Texts that both Engine::load() and Engine::explain() print.
#pragma once

#include <string_view>

namespace tessera::detail {

inline constexpr std::string_view kNoType = "-";  // KernelUse::dtype of lines that have no type

inline constexpr std::string_view kAssumedPreTokenizer =
    "the file does not name its pre-tokenizer, and \"default\" is assumed: tokens may differ from those that the model was "
    "trained with. Convert the model again, or write the key";

}  // namespace tessera::detail
