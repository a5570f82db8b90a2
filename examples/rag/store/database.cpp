#include "store/database.hpp"

#include <exception>

#include <sqlite3.h>

#include <fmt/format.h>

#include "failure.hpp"
#include "system/program.hpp"

namespace rag {

using tessera::ErrorCode;

namespace {
constexpr int kBusyMilliseconds = 10000;  // how long to wait for another process that writes
}

Database::Database(const std::filesystem::path& file, OpenMode mode) : name_(tessera::tool::text_of(file)) {
  const int flags = SQLITE_OPEN_READWRITE | (mode == OpenMode::create ? SQLITE_OPEN_CREATE : 0);
  const int status = sqlite3_open_v2(name_.c_str(), &handle_, flags, nullptr);
  try {
    if (status != SQLITE_OK) fail(status);
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_timeout(handle_, kBusyMilliseconds);
    // A file may come from a stranger. These settings make a damaged or forged schema fail, and do no other harm.
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    execute("PRAGMA foreign_keys = ON");
    execute("PRAGMA synchronous = NORMAL");
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Database::~Database() { sqlite3_close(handle_); }

void Database::fail(int status) const {
  const char* const message = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(status);
  switch (status & 0xff) {
    case SQLITE_NOTADB: throw Failure(ErrorCode::corrupt_file, fmt::format("{} is no index of tessera-rag: name another file with --index", name_));
    case SQLITE_CORRUPT: throw Failure(ErrorCode::corrupt_file, fmt::format("{} is damaged ({}): make it anew with index --rebuild", name_, message));
    case SQLITE_BUSY:
    case SQLITE_LOCKED: throw Failure(ErrorCode::busy, fmt::format("{} is being written by another program: try again when it is done", name_));
    case SQLITE_CANTOPEN: throw Failure(ErrorCode::not_found, fmt::format("{} cannot be opened: make it with tessera-rag index FOLDER, or name it with --index", name_));
    case SQLITE_FULL: throw Failure(ErrorCode::io, fmt::format("{}: the disk is full", name_));
    case SQLITE_READONLY: throw Failure(ErrorCode::io, fmt::format("{} cannot be written: the file or its folder is read-only", name_));
    case SQLITE_NOMEM: throw std::bad_alloc();
    default: throw Failure(ErrorCode::io, fmt::format("{}: {}", name_, message));
  }
}

void Database::execute(const char* sql) {
  const int status = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (status != SQLITE_OK) fail(status);
}

std::int64_t Database::last_row_id() const noexcept { return sqlite3_last_insert_rowid(handle_); }

std::int64_t Database::number(std::string_view sql) {
  Statement statement(*this, sql);
  return statement.row() ? statement.number(0) : 0;
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  check(sqlite3_prepare_v2(database_.handle_, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::check(int status) const {
  if (status != SQLITE_OK) database_.fail(status);
}

void Statement::rewind() {
  sqlite3_reset(statement_);
  next_ = 1;
}

Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_, next_++, value));
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  check(sqlite3_bind_text64(statement_, next_++, text.data() != nullptr ? text.data() : "", text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_bytes(std::span<const std::byte> bytes) {
  check(sqlite3_bind_blob64(statement_, next_++, bytes.data(), bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

bool Statement::row() {
  const int status = sqlite3_step(statement_);
  if (status == SQLITE_ROW) return true;
  if (status != SQLITE_DONE) {
    rewind();
    database_.fail(status);
  }
  rewind();
  return false;
}

void Statement::run() {
  while (row()) {
  }
}

std::int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }

double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }

std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
}

std::span<const std::byte> Statement::bytes(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_, column));
  return {data, data == nullptr ? 0 : static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const std::exception&) {  // SQLite also rolls back when the connection ends
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  is_open_ = false;
}

}  // namespace rag
