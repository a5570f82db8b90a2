// Standard input, read as bytes come or until Ctrl-C.
#pragma once

#include <cstddef>
#include <span>

#include "interrupts.hpp"

enum class Input { byte, interrupted, end };

// Waits for bytes of standard input or for Ctrl-C, and returns which came first. `n` gets the number of bytes read. Throws Failure.
[[nodiscard]] Input read_input(Interrupts& interrupts, std::span<char> bytes, std::size_t& n);
