#include "safetensors_report.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report.hpp"
#include "show.hpp"

namespace tessera::inspect {
namespace {

std::uint64_t values_of(const SafetensorsListing::Tensor& tensor) {
  std::uint64_t values = 1;
  for (const std::uint64_t dim : tensor.dims) values *= dim;
  return values;
}

// Returns the totals of each type; the key "" has the total of all types.
std::map<std::string, Total> totals_of(const SafetensorsListing& listing) {
  std::map<std::string, Total> totals;
  for (const auto& tensor : listing.tensors) {
    for (const std::string& key : {std::string(tensor.type), std::string()}) {
      Total& total = totals[key];
      ++total.tensors;
      total.values += values_of(tensor);
      total.bytes += tensor.bytes;
    }
  }
  return totals;
}

}  // namespace

bool is_safetensors(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return !std::filesystem::exists(path / "config.json", ignored);
  return path.extension() == ".safetensors";
}

std::string safetensors_text(const SafetensorsListing& listing) {
  const bool several = listing.files.size() > 1;
  std::string out;
  for (std::size_t i = 0; i < listing.files.size(); ++i) {
    out += several ? fmt::format("file {}: {}\n", i + 1, shown(listing.files[i])) : fmt::format("file: {}\n", shown(listing.files[i]));
  }
  std::size_t width = 4;
  for (const auto& tensor : listing.tensors) width = std::max(width, tensor.name.size());
  out += fmt::format("tensors: {} (shape: outermost dimension first)\n", listing.tensors.size());
  if (listing.tensors.empty()) return out;
  out += fmt::format("  {:<{}}  {:<8} {:<24} {:>14} {:>14}{}\n", "name", width, "type", "shape", "bytes", "offset", several ? "  file" : "");
  for (const auto& tensor : listing.tensors) {
    const std::string shape = tensor.dims.empty() ? "one value" : fmt::format("{}", fmt::join(tensor.dims, " x "));
    out += fmt::format("  {:<{}}  {:<8} {:<24} {:>14} {:>14}", shown(tensor.name), width, tensor.type, shape, tensor.bytes, tensor.offset);
    out += several ? fmt::format("  {:>4}\n", tensor.part + 1) : "\n";
  }
  out += "totals\n";
  auto totals = totals_of(listing);
  const Total all = totals.extract("").mapped();
  for (const auto& [type, total] : totals) {
    out += fmt::format("  {:<8} {:>7} tensors {:>16} values {:>16} bytes  {}\n", type, total.tensors, total.values, total.bytes,
                       size_text(total.bytes));
  }
  return out + fmt::format("  {:<8} {:>7} tensors {:>16} values {:>16} bytes  {}\n", "all", all.tensors, all.values, all.bytes,
                           size_text(all.bytes));
}

std::string safetensors_json(const SafetensorsListing& listing) {
  nlohmann::ordered_json out;
  for (const std::string& file : listing.files) out["files"].push_back({{"name", file}});
  out["tensors"] = nlohmann::ordered_json::array();
  for (const auto& tensor : listing.tensors) {
    out["tensors"].push_back({{"name", tensor.name},
                              {"type", tensor.type},
                              {"shape", tensor.dims},
                              {"bytes", tensor.bytes},
                              {"offset", tensor.offset},
                              {"part", tensor.part}});
  }
  for (const auto& [type, total] : totals_of(listing)) {
    out["totals"][type.empty() ? "all" : type] = {{"tensors", total.tensors}, {"values", total.values}, {"bytes", total.bytes}};
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::inspect
