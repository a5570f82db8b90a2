#include "files/safetensors/foreign_file.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "files/source_name.hpp"

namespace tessera::detail {
namespace {

// Returns the size that a Git LFS pointer states ("size 4976698672"), or an empty text.
std::string_view size_in_pointer(std::string_view pointer) noexcept {
  constexpr std::string_view kSizeKey = "\nsize ";
  const auto at = pointer.find(kSizeKey);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = pointer.substr(at + kSizeKey.size());
  return rest.substr(0, rest.find_first_not_of("0123456789"));
}

bool begins_with_tag(std::string_view text, std::string_view tag) noexcept {
  return text.size() >= tag.size() && std::equal(tag.begin(), tag.end(), text.begin(), [](char wanted, char c) {
           return wanted == (c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c);
         });
}

}  // namespace

std::optional<Error> foreign_file_error(ByteSource& source, const char* wanted) {
  std::array<char, 512> bytes;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source.size()));
  if (auto done = source.read(0, std::as_writable_bytes(std::span(bytes).first(size))); !done)
    return std::move(done).error();
  const std::string_view text(bytes.data(), size);
  const std::string name = name_of(source);
  const auto is = [&](ErrorCode code, std::string_view kind, std::string_view what_to_do) {
    return error_at(code, name, "this is {}, not {}: {}", kind, wanted, what_to_do);
  };

  if (text.empty()) return error_at(ErrorCode::corrupt_file, name, "the file is empty: download it again");
  if (text.starts_with("version https://git-lfs")) {
    const std::string_view stated = size_in_pointer(text);
    return error_at(ErrorCode::corrupt_file, name,
                    "this is a Git LFS pointer of {} bytes, not {}: run \"git lfs pull\" in the folder, or download "
                    "the file itself{}{}{}",
                    source.size(), wanted, stated.empty() ? "" : " (", stated, stated.empty() ? "" : " bytes)");
  }
  const std::string_view shown = text.substr(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
  if (begins_with_tag(shown, "<!doctype") || begins_with_tag(shown, "<html") || begins_with_tag(shown, "<?xml")) {
    return is(ErrorCode::corrupt_file,
              "a web page (perhaps a login or an error of the site that the download came from)",
              "download the file itself");
  }
  if (text.starts_with("GGUF")) return is(ErrorCode::unsupported, "a GGUF file", "open it by its own path");
  if (text.starts_with("PK\x03\x04") || text.starts_with("\x80\x02")) {
    return is(ErrorCode::unsupported, "a PyTorch checkpoint", "convert it with the safetensors package of Python");
  }
  if (shown.starts_with("{\"error")) {
    return is(ErrorCode::corrupt_file, "an error message of the site that the download came from",
              "download the file again");
  }
  return std::nullopt;
}

}  // namespace tessera::detail
