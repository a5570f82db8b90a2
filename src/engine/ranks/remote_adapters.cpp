#include "engine/ranks/remote_adapters.hpp"

#include "core/error.hpp"
#include "engine/ranks/adapter_message.hpp"

namespace tessera::detail {

Status RemoteAdapters::add(const AdapterFile& adapter, const std::stop_token& stop) {
  const std::lock_guard adding(adding_);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = uses_.find(adapter.content); known != uses_.end()) {
      ++known->second;
      return {};
    }
  }
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < adapter.tensors.size(); ++i) {
    bytes.clear();
    ByteWriter writer(bytes);
    const bool is_first = i == 0;
    each_number(writer, adapter.content, is_first, adapter.tensors[i]);
    const Turn turn(queue_, stop);
    const Status given = turn.mine() ? ranks_.give_adapter(bytes) : Status(make_error(ErrorCode::cancelled, "stopped while the adapter was loaded"));
    if (given) continue;
    ranks_.forget_adapter(adapter.content);
    return given;
  }
  const std::lock_guard lock(mutex_);
  ++uses_[adapter.content];
  return {};
}

void RemoteAdapters::remove(const Hash128& content) noexcept {
  const std::lock_guard lock(mutex_);
  const auto of = uses_.find(content);
  if (of == uses_.end() || --of->second != 0) return;
  uses_.erase(of);
  ranks_.forget_adapter(content);
}

}  // namespace tessera::detail
