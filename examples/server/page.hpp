// The files of the page, built into the program.
#pragma once

#include <string_view>

namespace server {

struct PageFile {
  std::string_view path;  // "/page/app.js"
  std::string_view type;
  std::string_view content;
};

[[nodiscard]] const PageFile* find_page(std::string_view path) noexcept;

}  // namespace server
