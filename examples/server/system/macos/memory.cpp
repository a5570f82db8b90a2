#include "system/memory.hpp"

#include <mach/mach.h>
#include <unistd.h>

namespace server {

std::uint64_t available_memory() {
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t numbers = HOST_VM_INFO64_COUNT;
  if (::host_statistics64(::mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &numbers) !=
      KERN_SUCCESS) {
    return std::uint64_t{4} << 30;
  }
  // Inactive pages are mostly contents of files, which the system drops when programs need memory.
  const std::uint64_t available = std::uint64_t{pages.free_count} + pages.inactive_count;
  return available * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void give_back_memory() noexcept {}  // nothing to do: free() returns large blocks to the system

}  // namespace server
