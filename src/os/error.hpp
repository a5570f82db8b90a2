// Errors of the operating system. A function of os/ that returns an int returns 0 if it succeeds, and otherwise the system's number of the
// error (errno on POSIX, GetLastError() on Windows).
#pragma once

#include <string>

#include <tessera/core/result.hpp>

namespace tessera::os {

// Makes an Error from the system's number of an error. `place`: the file or address. `doing`: what failed; it completes the sentence
// "cannot ...".
[[nodiscard]] Error system_error_at(std::string place, const char* doing, int number);

// Returns the system's message for such a number, in UTF-8.
[[nodiscard]] std::string words_of(int number);

// Returns whether the number means that the file exists already.
[[nodiscard]] bool says_exists(int number) noexcept;

// Returns the system's number for a failure of a device (a disk, for example).
[[nodiscard]] int device_error_number() noexcept;

}  // namespace tessera::os
