// Standard input, read as bytes come or until Ctrl-C.
#pragma once

#include <cstddef>
#include <span>

#include "interrupts.hpp"

enum class Input { byte, interrupted, end };

// Waits for bytes of standard input or for Ctrl-C, and says which came first. `n` is how many bytes were read. Throws Failure.
[[nodiscard]] Input read_input(Interrupts& interrupts, std::span<char> bytes, std::size_t& n);
