#include <nlohmann/json.hpp>

#include "kv_report.hpp"

namespace tessera::inspect {
namespace {

using Json = nlohmann::ordered_json;

Json cell_json(const KvCell& cell) {
  Json out = {{"context", cell.context}, {"user_bytes", cell.user_bytes}, {"need_bytes", cell.need_bytes}};
  if (cell.fits) out["fits"] = *cell.fits;
  if (cell.largest_users) out["largest_users"] = *cell.largest_users;
  return out;
}

Json row_json(const KvRow& row) {
  Json out = {{"type", to_string(row.type)}, {"token_bytes", row.token_bytes}, {"contexts", Json::array()}};
  for (const KvCell& cell : row.cells) out["contexts"].push_back(cell_json(cell));
  if (row.largest_context) {
    out["largest_context"] = *row.largest_context == kAnyContext ? Json(nullptr) : Json(*row.largest_context);
  }
  return out;
}

}  // namespace

std::string kv_json(const KvReport& report) {
  const KvQuestion& question = report.question;
  Json out;
  if (!report.file.empty()) out = {{"file", report.file}, {"architecture", report.architecture}};
  for (const KvLayers& group : question.groups) {
    out["layers"].push_back({{"layers", group.layers},
                             {"kv_heads", group.kv_heads},
                             {"key_dim", group.key_dim},
                             {"value_dim", group.value_dim},
                             {"values_in_keys", group.latent},
                             {"window", group.window},
                             {"type", group.type == DType::automatic ? Json(nullptr) : Json(to_string(group.type))}});
  }
  out["page_tokens"] = question.page_tokens;
  out["devices"] = question.tp;
  out["weights_bytes"] = device_weights(question);
  if (question.states.has_state()) out["state_bytes"] = question.states.state_bytes();
  if (question.memory) out["memory_bytes"] = *question.memory;
  if (question.context_limit != 0) out["context_limit"] = question.context_limit;
  out["users"] = question.users.value_or(1);
  out["types"] = Json::array();
  for (const KvRow& row : report.rows) out["types"].push_back(row_json(row));
  out["notes"] = report.notes;
  // Replaces bytes of the file's strings that are not UTF-8, since JSON must be UTF-8.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tessera::inspect
