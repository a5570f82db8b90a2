#include "files/safetensors/json_window.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {

Result<std::string_view> JsonWindow::more() {
  if (next_ == end_) return std::string_view();
  if (stop_.stop_requested()) return error(ErrorCode::cancelled, next_ - begin_, "reading was cancelled");
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(window_.size(), end_ - next_));
  TESSERA_TRY_STATUS(source_.read(next_, std::as_writable_bytes(window_.first(count))));
  next_ += count;
  return std::string_view(window_.data(), count);
}

Error JsonWindow::error(ErrorCode code, std::uint64_t offset, std::string_view what) const {
  return error_at(code, fmt::format("{}: offset {}{}{}", name_of(source_), begin_ + offset, subject_.empty() ? "" : ": ", subject_), "{}", what);
}

}  // namespace tessera::detail
