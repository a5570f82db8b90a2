#include "core/guard.hpp"

#include "core/callback.hpp"

namespace tessera::detail {

Error current_exception_error(ErrorCode code) noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return out_of_memory_error();
    } catch (const std::length_error&) {
      return out_of_memory_error();  // a container asked for more than it can ever hold
    } catch (const CallbackFailed& failed) {
      return {ErrorCode::callback_failed, failed.what()};
    } catch (const std::exception& error) {
      return {code, error.what()};
    } catch (...) {
      return {code, "an exception of an unknown type"};
    }
  } catch (...) {
    return out_of_memory_error();
  }
}

}  // namespace tessera::detail
