#include "os/error.hpp"

#include <cerrno>
#include <system_error>

#include "core/error.hpp"

namespace tessera::os {

std::string words_of(int number) { return std::generic_category().message(number); }

Error system_error_at(std::string place, const char* doing, int number) {
  const ErrorCode code = number == ENOENT || number == ENOTDIR ? ErrorCode::not_found
                         : number == ENOMEM                    ? ErrorCode::out_of_memory
                                                               : ErrorCode::io;
  return detail::error_at(code, std::move(place), "cannot {}: {}", doing, words_of(number));
}

bool says_exists(int number) noexcept { return number == EEXIST; }

int device_error_number() noexcept { return EIO; }

}  // namespace tessera::os
