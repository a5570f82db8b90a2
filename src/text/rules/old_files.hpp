// Makes a tokenizer.json from the files of folders that are older than tokenizer.json: GPT-2's vocab.json and merges.txt, or BERT's
// vocab.txt. The result is the text for Setting::tokenizer_json.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <tessera/core/result.hpp>

namespace tessera::detail {

// Returns the tokenizer.json of GPT-2: byte-level BPE. `vocab_json`: the text of vocab.json. `merges_txt`: one merge in each line; a first
// line "#version" is skipped. `special`: texts of control tokens, which vocab_json has. Errors: invalid_argument, vocab_json is not an
// object of ids, or lacks a token of `special`; out_of_memory. Other faults in the files are found when the result is read.
[[nodiscard]] Result<std::string> gpt2_tokenizer_json(std::string_view vocab_json, std::string_view merges_txt,
                                                      std::span<const std::string_view> special, bool add_prefix_space);

// Returns the tokenizer.json of BERT: WordPiece. `vocab_txt`: one token in each line; the line's number is the token's id. `lower_case`:
// the value of do_lower_case in tokenizer_config.json. [PAD], [UNK], [CLS], [SEP] and [MASK] are control tokens. Error: corrupt_file,
// vocab_txt has no [UNK], [CLS] or [SEP].
[[nodiscard]] Result<std::string> bert_tokenizer_json(std::string_view vocab_txt, bool lower_case);

}  // namespace tessera::detail
