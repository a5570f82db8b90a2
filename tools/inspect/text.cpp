#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <tessera/extend/formats/rows.hpp>

#include "kv_types.hpp"
#include "report.hpp"
#include "show.hpp"

namespace tessera::inspect {

constexpr std::size_t kShownText = 100;

// Shortens the text; cuts only between characters.
std::string cut(std::string_view text) {
  if (text.size() <= kShownText) return shown(text);
  std::size_t end = kShownText;
  while (end > kShownText - 4 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", shown(text.substr(0, end)), text.size());
}

std::string block(std::string_view text) {
  std::string out;
  std::string all = shown(text, Lines::kept);
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    out += fmt::format("\n    | {}", std::string_view(all).substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string type_text(DType type) {
  return formats::block_of(type) ? std::string(to_string(type)) : fmt::format("({})", static_cast<unsigned>(type));
}

std::string totals_text(const ModelSource& model) {
  std::string out = "totals\n";
  for (const auto& [type, total] : totals_of(model)) {
    if (!type.empty()) {
      out += fmt::format("  {:<5} {:>7} tensors {:>16} values {:>16} bytes  {}\n", type, total.tensors, total.values,
                         total.bytes, size_text(total.bytes));
    }
  }
  const Total all = totals_of(model)[""];
  out += fmt::format("  {:<5} {:>7} tensors {:>16} values {:>16} bytes  {} ({:.2f} bits a value)\n", "all", all.tensors,
                     all.values, all.bytes, size_text(all.bytes),
                     8.0 * static_cast<double>(all.bytes) / static_cast<double>(all.values));
  return out;
}

std::string plan_text(const Plan& plan) {
  std::string out = fmt::format("memory for one session of {} tokens, KV in {}\n", plan.context,
                                tool::kv_types_text(plan.kv_dtype, plan.kv_wide));
  const auto line = [&](const char* name, std::uint64_t bytes, const std::string& note = {}) {
    out += fmt::format("  {:<10} {:>16} bytes  {}{}\n", name, bytes, size_text(bytes), note);
  };
  line("weights", plan.weights);
  line("KV cache", plan.kv, fmt::format(" ({} bytes a token)", plan.kv_per_token));
  line("workspace", plan.workspace);
  line("host", plan.host);
  line("loading", plan.loading, " (in passing)");
  line("peak", plan.peak);
  return out;
}

namespace {

constexpr std::uint64_t kShownElements = 6;

std::string_view text_of(const GgufEntry& entry) {
  return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
}

std::string element(const GgufArray& array, std::uint64_t i) {
  if (array.type() == GgufType::boolean) return array.integer(i) != 0 ? "true" : "false";
  if (array.type() == GgufType::u64) return fmt::format("{}", static_cast<std::uint64_t>(array.integer(i)));
  if (array.is_integer()) return fmt::format("{}", array.integer(i));
  if (array.type() == GgufType::f32) return fmt::format("{}", static_cast<float>(array.number(i)));
  return fmt::format("{}", array.number(i));
}

// Returns the first `most` elements.
std::vector<std::string> elements(const GgufEntry& entry, std::uint64_t most) {
  const GgufArray array(entry.element_type, entry.count, entry.bytes);
  std::vector<std::string> out;
  if (array.type() == GgufType::string) {
    for (const std::string_view text : array.strings()) {
      if (out.size() >= most) break;
      out.emplace_back(text);
    }
  } else {
    for (std::uint64_t i = 0; i < std::min(most, array.size()); ++i) out.push_back(element(array, i));
  }
  return out;
}

std::string array_summary(const GgufEntry& entry) {
  std::string out = "[";
  for (const std::string& text : elements(entry, kShownElements)) {
    if (out.size() > 1) out += ", ";
    out += entry.element_type == GgufType::string ? fmt::format("\"{}\"", cut(text)) : text;
  }
  return out + (entry.count > kShownElements ? fmt::format(", ... {} in all]", entry.count) : "]");
}

std::string type_of(const GgufEntry& entry) {
  return entry.type == GgufType::array ? fmt::format("{}[]", to_string(entry.element_type))
                                       : std::string(to_string(entry.type));
}

std::string metadata_text(const GgufFile& file) {
  std::size_t width = 0;
  for (const GgufEntry& entry : file.entries()) width = std::max(width, std::min<std::size_t>(entry.key.size(), 48));
  std::string out = fmt::format("metadata: {} keys\n", file.entries().size());
  for (const GgufEntry& entry : file.entries()) {
    std::string value;
    if (entry.type == GgufType::array) value = array_summary(entry);
    else if (entry.type != GgufType::string) value = element(GgufArray(entry.type, 1, entry.bytes), 0);
    else if (entry.key.find("chat_template") != std::string_view::npos) value = block(text_of(entry));
    else value = cut(text_of(entry));
    out += fmt::format("  {:<{}}  {:<8} {}\n", shown(entry.key), width, type_of(entry), value);
  }
  return out;
}

std::string tensors_text(const ModelFile& file) {
  std::size_t width = 4;
  for (const GgufTensor& tensor : file.tensors()) width = std::max(width, tensor.name.size());
  const bool split = file.parts().size() > 1;
  std::string out = fmt::format("tensors: {} (shape: innermost dimension first)\n", file.tensors().size());
  if (file.tensors().empty()) return out;
  out += fmt::format("  {:<{}}  {:<5} {:<24} {:>14} {:>14}{}\n", "name", width, "type", "shape", "bytes", "offset",
                     split ? "  part" : "");
  for (const GgufTensor& tensor : file.tensors()) {
    const std::string shape = fmt::format("{}", fmt::join(tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims, " x "));
    out += fmt::format("  {:<{}}  {:<5} {:<24} {:>14} {:>14}", shown(tensor.name), width, type_text(tensor.dtype), shape,
                       tensor.bytes, tensor.offset);
    out += split ? fmt::format("  {:>4}\n", tensor.part + 1) : "\n";
  }
  return out + totals_text(file);
}

}  // namespace

std::string text_report(const ModelFile& file, const Sections& sections) {
  std::string out;
  for (const GgufFile& part : file.parts()) {
    out += fmt::format("{}: GGUF v{}, {}, header {}, alignment {}, {} tensors\n", shown(part.source().name()),
                       part.version(), size_text(part.source().size()), size_text(part.header_bytes()), part.alignment(),
                       part.tensors().size());
  }
  const auto section = [&](const std::string& text) { out += '\n', out += text; };
  if (sections.metadata) section(metadata_text(file.metadata()));
  if (sections.tensors) section(tensors_text(file));
  if (sections.plan) section(plan_text(*sections.plan));
  return out;
}

std::string raw_value(const GgufEntry& entry) {
  if (entry.type == GgufType::string) return std::string(text_of(entry)) + "\n";
  if (entry.type != GgufType::array) return element(GgufArray(entry.type, 1, entry.bytes), 0) + "\n";
  std::string out;
  for (const std::string& text : elements(entry, entry.count)) out += text + "\n";
  return out;
}

}  // namespace tessera::inspect
