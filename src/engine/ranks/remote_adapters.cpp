#include "engine/ranks/remote_adapters.hpp"

#include "core/error.hpp"
#include "engine/ranks/adapter_message.hpp"

namespace tessera::detail {

Status RemoteAdapters::add(const AdapterFile& adapter, const std::stop_token& stop) {
  const std::lock_guard lock(mutex_);  // the ranks must not get two adapters of one content at once
  std::size_t& uses = uses_[adapter.content];
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; uses == 0 && i < adapter.tensors.size(); ++i) {
    bytes.clear();
    ByteWriter writer(bytes);
    const bool is_first = i == 0;
    each_number(writer, adapter.content, is_first, adapter.tensors[i]);
    const Turn turn(queue_, stop);
    const Status given = turn.mine() ? ranks_.give_adapter(bytes) : Status(make_error(ErrorCode::cancelled, "stopped while the adapter was loaded"));
    if (given) continue;
    ranks_.forget_adapter(adapter.content);
    uses_.erase(adapter.content);
    return given;
  }
  ++uses;
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
