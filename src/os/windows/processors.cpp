#include "os/processors.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "os/windows/windows.hpp"

namespace tessera::os {
namespace {

constexpr DWORD64 kTileData = DWORD64{1} << 18;  // XSTATE_MASK_AMX_TILE_DATA

// Returns the address of a function of the system; nullptr if this version of Windows does not have it.
template <class Function>
Function system_function(const char* name) noexcept {
  const HMODULE library = ::GetModuleHandleW(L"kernelbase.dll");
  return library == nullptr ? nullptr : reinterpret_cast<Function>(reinterpret_cast<void*>(::GetProcAddress(library, name)));
}

}  // namespace

std::size_t affine_processors() noexcept {
  DWORD_PTR process = 0, system = 0;
  if (::GetProcessAffinityMask(::GetCurrentProcess(), &process, &system) && process != 0) {
    return static_cast<std::size_t>(std::popcount(process));
  }
  // Counts the processors of all groups (Windows divides them into groups of up to 64), because the process may have threads in several
  // groups.
  return std::max<std::size_t>(1, ::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
}

double processor_quota() noexcept {
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate{};
  constexpr DWORD kHard = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  // If the process is in no job object, it has no quota, and this call fails.
  if (!::QueryInformationJobObject(nullptr, JobObjectCpuRateControlInformation, &rate, sizeof rate, nullptr)) return kNoLimit;
  if ((rate.ControlFlags & kHard) != kHard || rate.CpuRate == 0) return kNoLimit;
  // CpuRate 10000 is the whole time of all processors.
  return static_cast<double>(rate.CpuRate) / 10000.0 * static_cast<double>(::GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
}

bool knows_tiles() noexcept { return system_function<BOOL(WINAPI*)(DWORD64)>("EnableProcessOptionalXStateFeatures") != nullptr; }

bool ask_for_tiles() noexcept {
  const auto enable = system_function<BOOL(WINAPI*)(DWORD64)>("EnableProcessOptionalXStateFeatures");
  return enable != nullptr && enable(kTileData);
}

bool has_dot_products() noexcept {
  constexpr DWORD kDotProducts = 43;  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE
  return ::IsProcessorFeaturePresent(kDotProducts) != 0;
}

}  // namespace tessera::os
