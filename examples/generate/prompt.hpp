// From the command line to the tokens of the prompt.
#pragma once

#include <string>
#include <vector>

#include "options.hpp"

// A file byte for byte; "-" is standard input.
[[nodiscard]] std::string read_file(const std::string& path);

// The prompt's bytes, from -p or -f; empty with neither. Read before anything else, while Ctrl-C still simply ends the
// program.
[[nodiscard]] std::string read_prompt(const Options& options);

// What the model is given: BOS where it wants one, and before nothing at all; never an EOS behind, the text goes on.
[[nodiscard]] std::vector<tessera::Token> prompt_tokens(const Options& options, const tessera::Tokenizer& tokenizer,
                                                        const std::string& text);
// What is appended to a session that has tokens: no BOS, and it may be nothing.
[[nodiscard]] std::vector<tessera::Token> appended_tokens(const Options& options, const tessera::Tokenizer& tokenizer,
                                                          const std::string& text);

// --tokenize's ids: the same with BOS and EOS just where the model's metadata says.
[[nodiscard]] std::vector<tessera::Token> encode_as_model(const Options& options, const tessera::Tokenizer& tokenizer,
                                                          const std::string& text);
