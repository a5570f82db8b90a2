// --kv-table as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "kv_table.hpp"

namespace tessera::inspect {

struct KvReport {
  std::string file, architecture;  // empty: all numbers come from the command line
  KvQuestion question;
  std::vector<KvRow> rows;         // kv_table(question)
  std::vector<std::string> notes;
};

std::string kv_text(const KvReport& report);
std::string kv_json(const KvReport& report);

}  // namespace tessera::inspect
