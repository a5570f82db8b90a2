// The modes of the program, one function each, which returns the exit status. Errors are thrown.
#pragma once

#include "options.hpp"

[[nodiscard]] int generate_text(const Options& options);
[[nodiscard]] int tokenize(const Options& options);
[[nodiscard]] int detokenize(const Options& options);
[[nodiscard]] int write_logits(const Options& options);
[[nodiscard]] int show_plan(const Options& options);
[[nodiscard]] int show_kernels(const Options& options);
[[nodiscard]] int render_conversation(const Options& options);
[[nodiscard]] int converse(const Options& options);
