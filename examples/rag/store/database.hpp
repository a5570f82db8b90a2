// SQLite as objects: a connection, a statement, a transaction. Errors are thrown as Failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace rag {

class Database;

// A prepared statement. bind() sets the parameters one after the other. row() goes to the next row, whose columns are read by index.
class Statement {
 public:
  Statement(Database& database, std::string_view sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  Statement& bind(std::int64_t value);
  Statement& bind(std::string_view text);
  Statement& bind_bytes(std::span<const std::byte> bytes);

  // Goes to the next row. Returns false after the last row; then the statement can be bound and run again.
  bool row();
  // Runs a statement that has no rows.
  void run();

  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::span<const std::byte> bytes(int column) const;  // valid until the next row()

 private:
  void check(int status) const;
  void rewind();
  Database& database_;
  sqlite3_stmt* statement_ = nullptr;
  int next_ = 1;  // the next parameter
};

enum class OpenMode : std::uint8_t { read_write, create };

class Database {
 public:
  // Errors: not_found, no such file (read_write); corrupt_file, the file is no database of SQLite; io.
  Database(const std::filesystem::path& file, OpenMode mode);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  void execute(const char* sql);
  [[nodiscard]] std::int64_t last_row_id() const noexcept;
  [[nodiscard]] std::int64_t number(std::string_view sql);  // the first column of the first row; 0 without a row
  [[noreturn]] void fail(int status) const;

 private:
  friend class Statement;
  std::string name_;
  sqlite3* handle_ = nullptr;
};

// All changes between the constructor and commit() happen, or none of them.
class Transaction {
 public:
  explicit Transaction(Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace rag
