#include <emulator/control.hpp>

#include <emulator/launch.hpp>

#include "driver.hpp"

using namespace tessera::emulator;  // NOLINT: a file of C functions

namespace {

template <class Body>
auto locked(Body&& body) {
  Driver& driver = Driver::get();
  const std::lock_guard lock(driver.mutex);
  return body(driver);
}

void fail_at(std::uint64_t k, int code, bool loses_device) {
  locked([&](Driver& driver) {
    driver.fail_at = k == 0 ? 0 : driver.calls + k;
    driver.fail_code = static_cast<CUresult>(code);
    driver.fail_loses_device = loses_device;
  });
}

}  // namespace

extern "C" {

void tessera_emulator_reset() {
  locked([](Driver& driver) {
    const Driver usual;
    driver.total_memory = usual.total_memory;
    driver.device_count = usual.device_count;
    driver.multiprocessors = usual.multiprocessors;
    driver.capability[0] = usual.capability[0];
    driver.capability[1] = usual.capability[1];
    driver.context.lost = CUDA_SUCCESS;
    driver.calls = driver.fail_at = driver.mistakes = driver.matmuls = driver.uploads = 0;
    driver.last_mistake.clear();
    driver.launches.clear();
  });
  set_order(0);
}

std::uint64_t tessera_emulator_calls() {
  return locked([](Driver& driver) { return driver.calls; });
}
void tessera_emulator_fail_call(std::uint64_t k, int code) { fail_at(k, code, false); }
void tessera_emulator_lose_device(std::uint64_t k, int code) { fail_at(k, code, true); }
std::uint64_t tessera_emulator_mistakes() {
  return locked([](Driver& driver) { return driver.mistakes; });
}
const char* tessera_emulator_last_mistake() {
  return locked([](Driver& driver) { return driver.last_mistake.c_str(); });
}

std::uint64_t tessera_emulator_launches(const char* kernel) {
  return locked([&](Driver& driver) {
    std::uint64_t n = 0;
    for (const auto& [name, count] : driver.launches) n += kernel == nullptr || name == kernel ? count : 0;
    return n;
  });
}
std::uint64_t tessera_emulator_uploads() {
  return locked([](Driver& driver) { return driver.uploads; });
}
std::uint64_t tessera_emulator_matmuls() {
  return locked([](Driver& driver) { return driver.matmuls; });
}

tessera_emulator_live_objects tessera_emulator_live() {
  return locked([](Driver& driver) {
    return tessera_emulator_live_objects{driver.device.count(),   driver.device.bytes(), driver.pinned.count(),
                                         driver.streams.size(),   driver.events.size(),  driver.modules.size(),
                                         driver.context.retained, driver.blas.size()};
  });
}
std::size_t tessera_emulator_live_count() {
  const tessera_emulator_live_objects live = tessera_emulator_live();
  return live.device_buffers + live.pinned_buffers + live.streams + live.events + live.modules + live.contexts +
         live.blas;
}
std::size_t tessera_emulator_context_depth() { return current_contexts().size(); }

void tessera_emulator_set_total_memory(std::size_t bytes) {
  locked([&](Driver& driver) { driver.total_memory = bytes; });
}
void tessera_emulator_set_device_count(int count) {
  locked([&](Driver& driver) { driver.device_count = count; });
}
void tessera_emulator_set_multiprocessors(int count) {
  locked([&](Driver& driver) { driver.multiprocessors = count; });
}
void tessera_emulator_set_compute_capability(int major, int minor) {
  locked([&](Driver& driver) {
    driver.capability[0] = major;
    driver.capability[1] = minor;
  });
}
void tessera_emulator_set_order(std::uint64_t seed) { set_order(seed); }
}
