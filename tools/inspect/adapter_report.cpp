#include "adapter_report.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "show.hpp"

namespace tessera::inspect {
namespace {

std::uint64_t bytes_of(const AdapterListing& listing) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : listing.tensors) bytes += tensor.bytes;
  return bytes;
}

std::string line_of(std::string_view name, std::string_view value) { return value.empty() ? std::string() : fmt::format("{:<20} {}\n", name, value); }

// Returns the formula by which alpha and the rank give the factor of B A.
std::string scale_text(const AdapterListing& listing) {
  if (listing.alpha == 0.0) return "1 (the file has no alpha)";
  return fmt::format("{} / {}", listing.alpha, listing.is_rank_stabilised ? "sqrt(rank)" : "rank");
}

}  // namespace

std::string adapter_text(const AdapterListing& listing) {
  std::string out = line_of("adapter:", fmt::format("LoRA ({}){}", listing.kind, listing.has_lengths ? ", with lengths (DoRA)" : ""));
  out += line_of("name:", shown(listing.name));
  out += line_of("base model:", shown(listing.base));
  out += line_of("architecture:", shown(listing.architecture));
  out += line_of("ranks:", fmt::format("{}", fmt::join(listing.ranks, ", ")));
  out += line_of("scale:", scale_text(listing));
  if (!listing.invocation.empty()) {
    out += line_of("invocation tokens:", fmt::format("{} (aLoRA: it is active from the first of them on)", fmt::join(listing.invocation, " ")));
  }
  out += line_of("bytes:", fmt::format("{} ({})", bytes_of(listing), size_text(bytes_of(listing))));
  out += fmt::format("tensors: {} (shape: outermost dimension first)\n", listing.tensors.size());
  std::size_t width = 4;
  for (const auto& tensor : listing.tensors) width = std::max(width, tensor.name.size());
  if (!listing.tensors.empty()) out += fmt::format("  {:<{}}  {:<8} {:<20} {:>12}\n", "name", width, "type", "shape", "bytes");
  for (const auto& tensor : listing.tensors) {
    out += fmt::format("  {:<{}}  {:<8} {:<20} {:>12}\n", shown(tensor.name), width, tensor.type, fmt::format("{}", fmt::join(tensor.dims, " x ")),
                       tensor.bytes);
  }
  return out;
}

std::string adapter_json(const AdapterListing& listing) {
  nlohmann::ordered_json adapter = {{"kind", listing.kind},
                                    {"name", listing.name},
                                    {"base", listing.base},
                                    {"architecture", listing.architecture},
                                    {"ranks", listing.ranks},
                                    {"alpha", listing.alpha},
                                    {"rslora", listing.is_rank_stabilised},
                                    {"dora", listing.has_lengths},
                                    {"invocation_tokens", listing.invocation},
                                    {"bytes", bytes_of(listing)}};
  nlohmann::ordered_json out;
  out["adapter"] = std::move(adapter);
  out["tensors"] = nlohmann::ordered_json::array();
  for (const auto& tensor : listing.tensors) {
    out["tensors"].push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.dims}, {"bytes", tensor.bytes}});
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::inspect
