// What a host's callback throws, with the callback's name. Code that has no place for an error calls it by call_host();
// the next guard() makes an error of it that does not look like a defect of the library.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/core/result.hpp>

namespace tessera::detail {

class CallbackFailed : public std::exception {
 public:
  CallbackFailed(std::string_view name, std::string_view what)
      : text_(std::string(name) + " threw: " + std::string(what)) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

// Runs a callback of the host's. `name`: as the host knows it, "SchedulerOptions::clock".
template <class Fn>
decltype(auto) call_host(std::string_view name, Fn&& fn) {
  try {
    return std::forward<Fn>(fn)();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw CallbackFailed(name, error.what());
  } catch (...) {
    throw CallbackFailed(name, "an exception of an unknown type");
  }
}

}  // namespace tessera::detail
