#include <algorithm>
#include <utility>

#include <tessera/chat/output_format.hpp>

#include "support/printable.hpp"
#include "support/error.hpp"

namespace tessera {
namespace {

OutputRegion reasoning(std::string open, std::string close) {
  return {.kind = RegionKind::reasoning, .open = {std::move(open)}, .close = {std::move(close)}};
}
OutputRegion calls(std::vector<std::string> open, std::vector<std::string> close, CallForm form) {
  return {.kind = RegionKind::calls, .open = std::move(open), .close = std::move(close), .call = std::move(form)};
}

std::vector<OutputFormat> make_formats() {
  const OutputRegion think = reasoning("<think>", "</think>");
  const std::vector<std::string> chatml{"<|im_end|>"};
  const std::string dsml = "｜DSML｜";
  const CallList lines{.separator = "\n"}, brackets{.open = "[", .separator = ",", .close = "]"};
  const CallForm xml{.syntax = CallSyntax::parameters, .open = "<invoke name=\"", .after_name = "\">", .close = "</invoke>",
                     .key_open = "<parameter name=\"", .key_close = "\">", .value_close = "</parameter>", .list = lines};
  const auto call_of = [](std::string open, std::string close) {
    return CallForm{.syntax = CallSyntax::parameters, .open = std::move(open), .after_name = "\">", .close = std::move(close)};
  };
  CallForm dsml_call = call_of("<" + dsml + "invoke name=\"", "</" + dsml + "invoke>");
  dsml_call.key_open = "<" + dsml + "parameter name=\"";
  dsml_call.key_close = "\"";
  dsml_call.value_open = ">";
  dsml_call.value_close = "</" + dsml + "parameter>";
  dsml_call.list = lines;
  dsml_call.marks_strings = true;

  OutputRegion llama = calls({"{\"name\"", "{\"type\""}, {"<|eom_id|>", "<|eot_id|>"},
                             {.arguments_key = "parameters", .list = CallList{.separator = ";"}});
  llama.at_start = llama.keeps_open = true;
  OutputRegion python = calls({"["}, {"<|eom_id|>", "<|eot_id|>", "<|eot|>"},
                              {.syntax = CallSyntax::pythonic, .list = brackets});
  python.at_start = python.keeps_open = true;
  OutputRegion harmony_text{.kind = RegionKind::text, .open = {"<|channel|>final<|message|>", "<|channel|>commentary<|message|>"},
                            .close = {"<|return|>", "<|end|>"}};

  return {
      {"hermes", {think, calls({"<tool_call>"}, {"</tool_call>"}, {})}, chatml},
      {"qwen-xml",
       {think, calls({"<tool_call>"}, {"</tool_call>"},
                     {.syntax = CallSyntax::parameters, .open = "<function=", .after_name = ">", .close = "</function>",
                      .key_open = "<parameter=", .key_close = ">", .value_close = "</parameter>"})},
       chatml},
      {"llama-json",
       {calls({"<|python_tag|>"}, {"<|eom_id|>", "<|eot_id|>"}, {.arguments_key = "parameters"}), llama},
       {"<|eot_id|>", "<|eom_id|>"}},
      {"pythonic", {calls({"<|python_start|>"}, {"<|python_end|>"}, {.syntax = CallSyntax::pythonic, .list = brackets}), python},
       {"<|eot_id|>", "<|eom_id|>", "<|eot|>"}},
      {"mistral", {reasoning("[THINK]", "[/THINK]"), calls({"[TOOL_CALLS]"}, {"</s>"}, {.list = brackets})}, {"</s>"}},
      {"mistral-args",
       {reasoning("[THINK]", "[/THINK]"),
        calls({"[TOOL_CALLS]"}, {"</s>"},
              {.syntax = CallSyntax::named_json, .open = "", .after_name = "[ARGS]", .close = "", .name_end = "["})},
       {"</s>"}},
      {"harmony",
       {reasoning("<|channel|>analysis<|message|>", "<|end|>"), harmony_text,
        calls({"<|channel|>commentary to=functions.", "<|start|>assistant to=functions.", "<|channel|>analysis to=functions."},
              {"<|call|>"}, {.syntax = CallSyntax::named_json, .after_name = "<|message|>", .name_end = " <",
                             .name_tails = {" <|constrain|>json", " json", "<|channel|>commentary json",
                                            "<|channel|>commentary <|constrain|>json"}})},
       {"<|start|>assistant", "<|return|>", "<|end|>", "<|call|>"}, "<|start|>assistant"},
      {"deepseek-v3",
       {think, calls({"<｜tool▁calls▁begin｜>"}, {"<｜tool▁calls▁end｜>"},
                     {.syntax = CallSyntax::named_json, .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
                      .after_name = "\n```json\n", .close = "\n```<｜tool▁call▁end｜>", .list = lines})},
       {"<｜end▁of▁sentence｜>"}},
      {"deepseek-v3.1",
       {think, calls({"<｜tool▁calls▁begin｜>"}, {"<｜tool▁calls▁end｜>"},
                     {.syntax = CallSyntax::named_json, .open = "<｜tool▁call▁begin｜>", .after_name = "<｜tool▁sep｜>",
                      .close = "<｜tool▁call▁end｜>", .list = lines})},
       {"<｜end▁of▁sentence｜>"}},
      {"deepseek-dsml",
       {think, calls({"<" + dsml + "function_calls>", "<" + dsml + "tool_calls>"},
                     {"</" + dsml + "function_calls>", "</" + dsml + "tool_calls>"}, dsml_call)},
       {"<｜end▁of▁sentence｜>"}},
      {"glm",
       {think, calls({"<tool_call>"}, {"</tool_call>"},
                     {.syntax = CallSyntax::parameters, .key_open = "<arg_key>", .key_close = "</arg_key>",
                      .value_open = "<arg_value>", .value_close = "</arg_value>"})},
       {"<|user|>", "<|observation|>", "<|endoftext|>"}},
      {"kimi",
       {think, calls({"<|tool_calls_section_begin|>"}, {"<|tool_calls_section_end|>"},
                     {.syntax = CallSyntax::named_json, .open = "<|tool_call_begin|>",
                      .after_name = "<|tool_call_argument_begin|>", .close = "<|tool_call_end|>", .name_prefix = "functions.",
                      .id_mark = ":", .list = CallList{}})},
       chatml},
      {"minimax", {think, calls({"<minimax:tool_call>"}, {"</minimax:tool_call>"}, xml)}, {"[e~["}},
      {"gemma",
       {reasoning("<|channel>thought\n", "<channel|>"),
        calls({"<|tool_call>"}, {"<tool_call|>"}, {.syntax = CallSyntax::braces, .open = "call:"})},
       {"<turn|>", "<|tool_response>"}},
      {"granite", {think, calls({"<|tool_call|>"}, {"<|end_of_text|>"}, {.list = brackets})}, {"<|end_of_text|>"}},
      {"cohere",
       {reasoning("<|START_THINKING|>", "<|END_THINKING|>"),
        calls({"<|START_ACTION|>"}, {"<|END_ACTION|>"},
              {.name_key = "tool_name", .arguments_key = "parameters", .id_key = "tool_call_id", .list = brackets,
               .has_id = true}),
        {.kind = RegionKind::text, .open = {"<|START_RESPONSE|>", "<|START_TEXT|>"},
         .close = {"<|END_RESPONSE|>", "<|END_TEXT|>"}}},
       {"<|END_OF_TURN_TOKEN|>"}},
      {"lfm", {think, calls({"<|tool_call_start|>"}, {"<|tool_call_end|>"}, {.syntax = CallSyntax::pythonic, .list = brackets})}, chatml},
      {"think", {think}, {"<|im_end|>", "<|eot_id|>", "</s>"}},
  };
}

// What a template writes where its models write that format; the first rule whose texts all stand in it counts.
struct Rule {
  std::string_view format;
  std::string_view first, second;
};
constexpr Rule kRules[] = {
    {"harmony", "<|channel|>", "<|message|>"},
    {"gemma", "<|tool_call>", "call:"},
    {"kimi", "<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
    {"minimax", "minimax:tool_call", "<invoke"},
    {"deepseek-dsml", "｜DSML｜", "invoke"},
    {"deepseek-v3", "<｜tool▁calls▁begin｜>", "```json"},
    {"deepseek-v3.1", "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"},
    {"cohere", "<|START_ACTION|>", "tool_name"},
    {"lfm", "<|tool_call_start|>", ""},
    {"mistral-args", "[TOOL_CALLS]", "[ARGS]"},
    {"mistral", "[TOOL_CALLS]", ""},
    {"glm", "<arg_key>", "<arg_value>"},
    {"qwen-xml", "<function=", "<parameter="},
    {"granite", "<|tool_call|>", ""},
    {"hermes", "<tool_call>", ""},
    {"llama-json", "<|python_tag|>", "parameters"},
    {"llama-json", "<|start_header_id|>", "\"parameters\""},
};

}  // namespace

Result<std::vector<OutputFormat>> output_formats() noexcept {
  return detail::guard([]() -> Result<std::vector<OutputFormat>> { return make_formats(); });
}

Result<OutputFormat> find_output_format(std::string_view name) noexcept {
  return detail::guard([&]() -> Result<OutputFormat> {
    std::string names;
    for (OutputFormat& format : make_formats()) {
      if (format.name == name) return std::move(format);
      names.append(names.empty() ? "" : ", ").append(format.name);
    }
    return detail::make_error(ErrorCode::not_found, "no output format is called '{}'; those that are: {}",
                              detail::printable(name), names);
  });
}

Result<OutputFormat> choose_output_format(const ChatTemplate& chat_template) noexcept {
  TESSERA_TRY_STATUS(chat_template.status());
  const std::string_view source = chat_template.source();
  for (const Rule& rule : kRules) {
    if (source.find(rule.first) != source.npos && source.find(rule.second) != source.npos) {
      return find_output_format(rule.format);
    }
  }
  return find_output_format("think");
}

bool OutputFormat::closes_with(std::string_view text) const noexcept {
  const auto among = [&](const std::vector<std::string>& markers) { return std::ranges::find(markers, text) != markers.end(); };
  return among(dropped) || std::ranges::any_of(regions, [&](const OutputRegion& region) { return among(region.close); });
}

bool OutputFormat::ends_in_reasoning(std::string_view prompt) const noexcept {
  const std::size_t end = prompt.find_last_not_of(" \n\t");
  if (end == prompt.npos) return false;
  prompt = prompt.substr(0, end + 1);
  for (const OutputRegion& region : regions) {
    if (region.kind != RegionKind::reasoning) continue;
    for (std::string_view open : region.open) {
      while (!open.empty() && open.back() == '\n') open.remove_suffix(1);
      if (prompt.ends_with(open)) return true;
    }
  }
  return false;
}

}  // namespace tessera
