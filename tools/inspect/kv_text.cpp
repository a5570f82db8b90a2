#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "kv_report.hpp"
#include "show.hpp"

namespace tessera::inspect {
namespace {

using TableLines = std::vector<std::vector<std::string>>;  // the first is the header

// Returns the table as a text, with the first column aligned to the left and numbers to the right.
std::string aligned(const TableLines& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      out += i == 0 ? fmt::format("  {:<{}}", line[i], widths[i]) : fmt::format("  {:>{}}", line[i], widths[i]);
    }
    out += '\n';
  }
  return out;
}

std::string tokens_text(std::uint64_t tokens) {
  return tokens % 1024 == 0 ? fmt::format("{}k", tokens / 1024) : fmt::format("{}", tokens);
}

std::string users_text(std::uint64_t users) { return users == 1 ? "1 user" : fmt::format("{} users", users); }

std::string context_text(std::uint64_t tokens) { return tokens == kAnyContext ? "any" : fmt::format("{}", tokens); }

std::string layers_text(const KvLayers& group) {
  std::string out = fmt::format("{} layer{} of {} KV head{}", group.layers, group.layers == 1 ? "" : "s",
                                group.kv_heads, group.kv_heads == 1 ? "" : "s");
  if (group.latent) out += fmt::format(", keys of {} elements, of which {} are the value", group.key_dim, group.value_dim);
  else if (group.key_dim == group.value_dim) out += fmt::format(", {} elements each", group.key_dim);
  else out += fmt::format(", keys of {} elements, values of {}", group.key_dim, group.value_dim);
  if (group.type != DType::automatic) out += fmt::format(", in {} whatever the others are in", to_string(group.type));
  if (group.window != 0) out += fmt::format(", window of {} tokens", group.window);
  return out;
}

std::string heading(const KvReport& report) {
  const KvQuestion& question = report.question;
  std::string out;
  if (!report.file.empty()) out += fmt::format("{}: {}\n", shown(report.file), shown(report.architecture));
  for (const KvLayers& group : question.groups) out += layers_text(group) + "\n";
  out += fmt::format("pages of {} tokens", question.page_tokens);
  if (question.tp > 1) out += fmt::format("; {} devices, of which each has", question.tp);
  else out += ";";
  out += question.weights == 0 ? " no weights" : fmt::format(" weights of {}", size_text(device_weights(question)));
  if (question.memory) out += fmt::format(", memory of {}", size_text(*question.memory));
  return out + "\n";
}

// Returns the table for one context, with all figures of a type in its line.
std::string one_context(const KvReport& report) {
  const KvQuestion& question = report.question;
  const std::string users = users_text(question.users.value_or(1));
  TableLines lines = {{"type", "bytes a token", "a user"}};
  const auto column = [&](bool wanted, const std::string& name) {
    if (wanted) lines.front().push_back(name);
  };
  column(true, users + " and weights");
  column(question.memory.has_value(), "fits");
  column(question.memory.has_value(), "users at most");
  column(question.memory.has_value(), "context at most for " + users);
  for (const KvRow& row : report.rows) {
    const KvCell& cell = row.cells.front();
    auto& line = lines.emplace_back();
    line = {std::string(to_string(row.type)), fmt::format("{}", row.token_bytes), size_text(cell.user_bytes),
            size_text(cell.need_bytes)};
    if (cell.fits) line.emplace_back(*cell.fits ? "yes" : "no");
    if (cell.largest_users) line.push_back(fmt::format("{}", *cell.largest_users));
    if (row.largest_context) line.push_back(context_text(*row.largest_context));
  }
  return fmt::format("\n{} at {} tokens\n", users, question.contexts.front()) + aligned(lines);
}

// Returns a table with a column for each context.
template <class Text>
TableLines by_context(const KvReport& report, Text text) {
  TableLines lines = {{"type"}};
  for (const std::uint64_t context : report.question.contexts) lines.front().push_back(tokens_text(context));
  for (const KvRow& row : report.rows) {
    auto& line = lines.emplace_back();
    line.emplace_back(to_string(row.type));
    for (const KvCell& cell : row.cells) line.push_back(text(cell));
  }
  return lines;
}

std::string many_contexts(const KvReport& report) {
  const KvQuestion& question = report.question;
  const std::string users = users_text(question.users.value_or(1));
  TableLines bytes = by_context(report, [](const KvCell& cell) { return size_text(cell.user_bytes); });
  bytes.front().insert(bytes.front().begin() + 1, "bytes a token");
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    bytes[i + 1].insert(bytes[i + 1].begin() + 1, fmt::format("{}", report.rows[i].token_bytes));
  }
  std::string out = "\nKV cache of a user, by context\n" + aligned(bytes);
  if (question.users) {
    out += fmt::format("\n{} and the weights{}\n", users, question.memory ? ": ok if they fit" : "");
    out += aligned(by_context(report, [](const KvCell& cell) {
      return size_text(cell.need_bytes) + (!cell.fits ? "" : *cell.fits ? " ok" : " no");
    }));
  }
  if (question.memory) {
    TableLines fitting = by_context(report, [](const KvCell& cell) { return fmt::format("{}", *cell.largest_users); });
    fitting.front().push_back("context at most for " + users);
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
      fitting[i + 1].push_back(context_text(*report.rows[i].largest_context));
    }
    out += "\nusers that fit, by context\n" + aligned(fitting);
  }
  return out;
}

}  // namespace

std::string kv_text(const KvReport& report) {
  std::string out = heading(report);
  out += report.question.contexts.size() == 1 ? one_context(report) : many_contexts(report);
  for (const std::string& note : report.notes) out += fmt::format("\nnote: {}", note);
  return report.notes.empty() ? out : out + "\n";
}

}  // namespace tessera::inspect
