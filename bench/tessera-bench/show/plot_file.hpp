// The file that --plot names. It is opened before anything is measured, so that a wrong name is found at once.
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "failure.hpp"
#include "model_files.hpp"

namespace tessera::bench {

class PlotFile {
 public:
  explicit PlotFile(const std::filesystem::path& path) : path_(path) {
    if (path_.empty()) return;
    file_.open(path_, std::ios::binary | std::ios::app);  // an older file stays as it is until write()
    if (!file_) throw Failure(fmt::format("{}: cannot write: {}", path_.string(), std::strerror(errno)));
  }
  [[nodiscard]] bool wanted() const noexcept { return !path_.empty(); }
  void check_against(const std::filesystem::path& model) const {
    if (wanted() && !model.empty() && tool::is_part_of(path_, model)) throw UsageError("--plot would overwrite the model");
  }
  void write(const std::string& svg) {
    file_.close();
    file_.open(path_, std::ios::binary | std::ios::trunc);
    file_ << svg;
    file_.close();
    if (!file_) throw Failure(fmt::format("{}: cannot write", path_.string()));
  }

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace tessera::bench
