#include <nlohmann/json.hpp>

#include "kv_types.hpp"
#include "report.hpp"

namespace tessera::inspect {
namespace {

using Json = nlohmann::ordered_json;

Json number(const GgufArray& array, std::uint64_t i) {
  if (array.type() == GgufType::boolean) return array.integer(i) != 0;
  if (array.type() == GgufType::u64) return static_cast<std::uint64_t>(array.integer(i));
  if (array.is_integer()) return array.integer(i);
  return array.number(i);
}

Json value_of(const GgufEntry& entry) {
  if (entry.type == GgufType::string) {
    return std::string(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  }
  if (entry.type != GgufType::array) return number(GgufArray(entry.type, 1, entry.bytes), 0);
  const GgufArray array(entry.element_type, entry.count, entry.bytes);
  Json out = Json::array();
  if (array.type() == GgufType::string) {
    for (const std::string_view text : array.strings()) out.push_back(std::string(text));
  } else {
    for (std::uint64_t i = 0; i < array.size(); ++i) out.push_back(number(array, i));
  }
  return out;
}

Json total(const Total& of) { return {{"tensors", of.tensors}, {"values", of.values}, {"bytes", of.bytes}}; }

Json json_of(const Plan& plan) {
  return {{"context", plan.context},     {"kv_dtype", to_string(plan.kv_dtype)},
          {"kv_wide", tool::wide_json<Json>(plan.kv_wide)},
          {"weights", plan.weights},     {"kv", plan.kv},
          {"kv_per_token", plan.kv_per_token}, {"workspace", plan.workspace},
          {"host", plan.host},           {"loading", plan.loading},
          {"peak", plan.peak}};
}

// Returns the JSON's text. Bytes of the file's strings that are not UTF-8 are replaced, since JSON must be UTF-8.
std::string text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string json_value(const GgufEntry& entry) { return text(value_of(entry)); }

std::string plan_json(const Plan& plan) { return text(json_of(plan)); }

std::string json_report(const ModelFile& file, const Sections& sections) {
  Json out;
  for (const GgufFile& part : file.parts()) {
    out["files"].push_back({{"name", part.source().name()},
                            {"bytes", part.source().size()},
                            {"version", part.version()},
                            {"alignment", part.alignment()},
                            {"header_bytes", part.header_bytes()},
                            {"tensors", part.tensors().size()}});
  }
  if (sections.metadata) {
    Json& metadata = out["metadata"] = Json::object();
    for (const GgufEntry& entry : file.metadata().entries()) metadata[std::string(entry.key)] = value_of(entry);
  }
  if (sections.tensors) {
    Json& tensors = out["tensors"] = Json::array();
    for (const GgufTensor& tensor : file.tensors()) {
      tensors.push_back({{"name", tensor.name},
                         {"type", to_string(tensor.dtype)},
                         {"shape", std::vector<std::uint64_t>(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims)},
                         {"bytes", tensor.bytes},
                         {"offset", tensor.offset},
                         {"part", tensor.part}});
    }
    Json& totals = out["totals"] = Json::object();
    for (const auto& [type, of] : totals_of(file)) totals[type.empty() ? "all" : type] = total(of);
  }
  if (sections.plan) {
    out["plan"] = json_of(*sections.plan);
  }
  return text(out);
}

}  // namespace tessera::inspect
