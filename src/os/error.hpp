// Errors of the operating system. Functions of os/ that fail return the system's number of the error (errno, GetLastError()), and 0
// if they succeed.
#pragma once

#include <string>

#include <tessera/core/result.hpp>

namespace tessera::os {

// Makes an Error from a number of the system. `doing` completes the sentence "cannot ...".
[[nodiscard]] Error system_error_at(std::string place, const char* doing, int number);

// Returns the system's message for a number, in UTF-8.
[[nodiscard]] std::string words_of(int number);

// Returns whether the number says that the file exists already.
[[nodiscard]] bool says_exists(int number) noexcept;

// Returns the number that stands for an error of a device.
[[nodiscard]] int device_error_number() noexcept;

}  // namespace tessera::os
