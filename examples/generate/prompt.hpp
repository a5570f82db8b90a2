// Turns the command line's prompt into tokens.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

// Returns a file's bytes; "-" is standard input.
[[nodiscard]] std::string read_file(const std::string& path);

// Returns the prompt's bytes, from -p or -f; an empty text without these options. Call this before an Interrupt exists, so that Ctrl-C ends
// the program while it reads.
[[nodiscard]] std::string read_prompt(const Options& options);

// Returns the tokens of the prompt: with BOS if the model wants BOS or the text is empty; never with EOS, because the text goes on.
[[nodiscard]] std::vector<tessera::Token> prompt_tokens(const Options& options, const tessera::Tokenizer& tokenizer,
                                                        const std::string& text);
// Returns the tokens to append to a session that has tokens: without BOS, possibly none.
[[nodiscard]] std::vector<tessera::Token> appended_tokens(const Options& options, const tessera::Tokenizer& tokenizer,
                                                          const std::string& text);

// Returns the ids of --tokenize, with BOS and EOS as the model's metadata says.
[[nodiscard]] std::vector<tessera::Token> encode_as_model(const Options& options, const tessera::Tokenizer& tokenizer,
                                                          const std::string& text);
