#include <tessera/version.hpp>

namespace tessera {

std::string_view version() noexcept { return TESSERA_VERSION; }

}  // namespace tessera
