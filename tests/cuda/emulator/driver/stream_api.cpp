// Streams and events.
#include <cuda.h>
#include <fmt/format.h>

#include "driver.hpp"

#undef cuEventElapsedTime  // cuda.h of 12.8 and later means a newer one of the same form

using namespace tessera::emulator;  // NOLINT: a file of C functions

namespace {

CUresult bad_handle(Driver& driver, const char* name) {
  return driver.mistake(CUDA_ERROR_INVALID_HANDLE, fmt::format("{} of a stream or event that is none", name));
}

Event* event_of(Driver& driver, CUevent handle) {
  const auto found = driver.events.find(handle);
  return found == driver.events.end() ? nullptr : found->second.get();
}

}  // namespace

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int) {
  return call("cuStreamCreateWithPriority", Needs::context, [&](Driver& driver) {
    if (handle == nullptr || (flags != CU_STREAM_DEFAULT && flags != CU_STREAM_NON_BLOCKING)) {
      return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuStreamCreateWithPriority");
    }
    auto stream = std::make_unique<Stream>(Stream{std::make_shared<Queue>()});
    *handle = reinterpret_cast<CUstream>(stream.get());
    driver.streams.emplace(*handle, std::move(stream));
    return CUDA_SUCCESS;
  });
}

// Its work goes on without it.
CUresult cuStreamDestroy_v2(CUstream handle) {
  return release("cuStreamDestroy", Needs::context, [&](Driver& driver) {
    return driver.streams.erase(handle) == 1 ? CUDA_SUCCESS : bad_handle(driver, "cuStreamDestroy");
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return call("cuStreamSynchronize", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(handle);
    if (stream == nullptr) return bad_handle(driver, "cuStreamSynchronize");
    return driver.drain(*stream->queue, nullptr);
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  return call("cuStreamWaitEvent", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(handle);
    const Event* const event = event_of(driver, event_handle);
    if (stream == nullptr || event == nullptr) return bad_handle(driver, "cuStreamWaitEvent");
    if (flags != 0) return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuStreamWaitEvent with flags");
    if (event->marker != nullptr && !event->marker->done) driver.push(*stream, {{}, {}, event->marker});
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return call("cuStreamGetCtx", Needs::context, [&](Driver& driver) {
    if (driver.stream(handle) == nullptr) return bad_handle(driver, "cuStreamGetCtx");
    *context = primary_context();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  return call("cuEventCreate", Needs::context, [&](Driver& driver) {
    if (handle == nullptr || (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) != 0) {
      return driver.mistake(CUDA_ERROR_INVALID_VALUE, "cuEventCreate");
    }
    auto event = std::make_unique<Event>(Event{flags, nullptr});
    *handle = reinterpret_cast<CUevent>(event.get());
    driver.events.emplace(*handle, std::move(event));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return release("cuEventDestroy", Needs::context, [&](Driver& driver) {
    return driver.events.erase(handle) == 1 ? CUDA_SUCCESS : bad_handle(driver, "cuEventDestroy");
  });
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  return call("cuEventRecord", Needs::context, [&](Driver& driver) {
    Stream* const stream = driver.stream(stream_handle);
    Event* const event = event_of(driver, handle);
    if (stream == nullptr || event == nullptr) return bad_handle(driver, "cuEventRecord");
    event->marker = std::make_shared<Marker>(Marker{stream->queue, false, {}});
    driver.push(*stream, {{}, event->marker, {}});
    return CUDA_SUCCESS;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return call("cuEventSynchronize", Needs::context, [&](Driver& driver) {
    const Event* const event = event_of(driver, handle);
    if (event == nullptr) return bad_handle(driver, "cuEventSynchronize");
    const std::shared_ptr<Marker> marker = event->marker;
    if (marker == nullptr || marker->done) return CUDA_SUCCESS;
    return driver.drain(*marker->queue, marker.get());
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return call("cuEventElapsedTime", Needs::context, [&](Driver& driver) {
    const Event* const first = event_of(driver, start);
    const Event* const last = event_of(driver, end);
    if (first == nullptr || last == nullptr || first->marker == nullptr || last->marker == nullptr ||
        ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) != 0) {
      return bad_handle(driver, "cuEventElapsedTime");
    }
    if (!first->marker->done || !last->marker->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(last->marker->when - first->marker->when).count();
    return CUDA_SUCCESS;
  });
}
}
