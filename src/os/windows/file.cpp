// os/file.hpp on Windows. Files are opened for overlapped (asynchronous) reads and writes, because on other handles Windows lets threads
// that read the same file wait for each other.
#include "os/file.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "os/windows/windows.hpp"

namespace tessera::os {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 30;  // a DWORD counts the bytes of a call, so they must fit 32 bits
constexpr DWORD kShareAll = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

int last_error() noexcept { return static_cast<int>(::GetLastError()); }

HANDLE handle_of(const File& file) noexcept { return reinterpret_cast<HANDLE>(file.get()); }

int open_file(const std::filesystem::path& path, DWORD access, DWORD share, DWORD how, DWORD flags, File& file) {
  const HANDLE handle = ::CreateFileW(system_path(path).c_str(), access, share, nullptr, how, flags | FILE_FLAG_OVERLAPPED, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return last_error();
  file = File(reinterpret_cast<File::Handle>(handle));
  return 0;
}

FileFacts facts_from(DWORD attributes, DWORD high, DWORD low) noexcept {
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return {.kind = FileKind::folder};
  if ((attributes & FILE_ATTRIBUTE_DEVICE) != 0) return {.kind = FileKind::other};
  return {.kind = FileKind::regular, .bytes = std::uint64_t{high} << 32 | low};
}

// One read or write at an offset: starts it and waits until it has ended.
class Overlapped {
 public:
  explicit Overlapped(std::uint64_t offset) noexcept {
    state_.Offset = static_cast<DWORD>(offset);
    state_.OffsetHigh = static_cast<DWORD>(offset >> 32);
    state_.hEvent = ::CreateEventW(nullptr, TRUE, FALSE, nullptr);
  }
  Overlapped(const Overlapped&) = delete;
  Overlapped& operator=(const Overlapped&) = delete;
  ~Overlapped() {
    if (state_.hEvent != nullptr) ::CloseHandle(state_.hEvent);
  }

  // start(state) calls ReadFile() or WriteFile() with this OVERLAPPED. Returns 0 or the number of an error, and sets `bytes` to the number
  // of bytes that were moved.
  template <class Start>
  int run(HANDLE file, std::size_t& bytes, Start start) noexcept {
    if (state_.hEvent == nullptr) return last_error();
    DWORD moved = 0;
    if (!start(&state_) && ::GetLastError() != ERROR_IO_PENDING) return last_error();
    if (!::GetOverlappedResult(file, &state_, &moved, TRUE)) return last_error();
    bytes = moved;
    return 0;
  }

 private:
  OVERLAPPED state_{};
};

}  // namespace

void File::close() noexcept {
  if (handle_ != kNone) ::CloseHandle(reinterpret_cast<HANDLE>(std::exchange(handle_, kNone)));
}

int open_to_read(const std::filesystem::path& path, File& file) {
  // FILE_FLAG_BACKUP_SEMANTICS: opens folders too, so that the caller can report that the path is a folder.
  return open_file(path, GENERIC_READ, kShareAll, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL | FILE_FLAG_BACKUP_SEMANTICS, file);
}

int make_new(const std::filesystem::path& path, File& file) {
  return open_file(path, GENERIC_WRITE | DELETE, FILE_SHARE_READ | FILE_SHARE_DELETE, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, file);
}

int make_unnamed(const std::filesystem::path& path, File& file) {
  // The file has a name as long as it is open. But the share mode is 0, so nobody can open it again.
  return open_file(path, GENERIC_READ | GENERIC_WRITE | DELETE, 0, CREATE_NEW,
                   FILE_ATTRIBUTE_NORMAL | FILE_ATTRIBUTE_NOT_CONTENT_INDEXED | FILE_FLAG_DELETE_ON_CLOSE, file);
}

int facts_of(const File& file, FileFacts& facts) noexcept {
  if (::GetFileType(handle_of(file)) != FILE_TYPE_DISK) {
    facts = {.kind = FileKind::other};
    return 0;
  }
  BY_HANDLE_FILE_INFORMATION known{};
  if (!::GetFileInformationByHandle(handle_of(file), &known)) return last_error();
  facts = facts_from(known.dwFileAttributes, known.nFileSizeHigh, known.nFileSizeLow);
  return 0;
}

int facts_at(const std::filesystem::path& path, FileFacts& facts) {
  WIN32_FILE_ATTRIBUTE_DATA known{};
  if (!::GetFileAttributesExW(system_path(path).c_str(), GetFileExInfoStandard, &known)) return last_error();
  facts = facts_from(known.dwFileAttributes, known.nFileSizeHigh, known.nFileSizeLow);
  return 0;
}

int names_in_folder(const std::filesystem::path& folder, std::size_t most, std::vector<std::string>& names) {
  WIN32_FIND_DATAW found{};
  const HANDLE search = ::FindFirstFileExW(system_path(folder / L"*").c_str(), FindExInfoBasic, &found, FindExSearchNameMatch, nullptr, 0);
  if (search == INVALID_HANDLE_VALUE) return last_error();
  struct Close {
    HANDLE search;
    ~Close() { ::FindClose(search); }
  } const close{search};
  while (names.size() < most) {
    const std::wstring_view name = found.cFileName;
    if (name != L"." && name != L"..") names.push_back(text_of(std::filesystem::path(name)));
    if (::FindNextFileW(search, &found)) continue;
    const int error = last_error();
    return error == ERROR_NO_MORE_FILES ? 0 : error;
  }
  return 0;
}

int read_at(const File& file, std::span<std::byte> out, std::uint64_t offset, std::size_t& got) noexcept {
  const auto bytes = static_cast<DWORD>(std::min(out.size(), kMost));
  const int error = Overlapped(offset).run(handle_of(file), got, [&](OVERLAPPED* state) {
    return ::ReadFile(handle_of(file), out.data(), bytes, nullptr, state);
  });
  if (error == ERROR_HANDLE_EOF) {
    got = 0;
    return 0;
  }
  return error;
}

int write_at(const File& file, std::span<const std::byte> bytes, std::uint64_t offset, std::size_t& done) noexcept {
  const auto n = static_cast<DWORD>(std::min(bytes.size(), kMost));
  return Overlapped(offset).run(handle_of(file), done, [&](OVERLAPPED* state) {
    return ::WriteFile(handle_of(file), bytes.data(), n, nullptr, state);
  });
}

int take_room(const File& file, std::uint64_t bytes) noexcept {
  FILE_ALLOCATION_INFO room{};
  room.AllocationSize.QuadPart = static_cast<LONGLONG>(bytes);
  // Some file systems (and Wine) cannot allocate space. This is no error, because the file gets its length in any case; only a full disk is
  // one.
  if (!::SetFileInformationByHandle(handle_of(file), FileAllocationInfo, &room, sizeof room) && ::GetLastError() == ERROR_DISK_FULL) {
    return ERROR_DISK_FULL;
  }
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(bytes);
  return ::SetFileInformationByHandle(handle_of(file), FileEndOfFileInfo, &end, sizeof end) ? 0 : last_error();
}

int sync(const File& file) noexcept { return ::FlushFileBuffers(handle_of(file)) ? 0 : last_error(); }

int replace(const File& file, const std::filesystem::path& from, const std::filesystem::path& to) {
  // Renames as POSIX does (Windows 10 of 2017, NTFS): this works even while another process has the old file open, which then goes on
  // reading the old file.
  constexpr auto kRenameEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx, which older headers do not name
  constexpr DWORD kReplace = 1, kAsPosix = 2;
  struct RenameInfo {  // FILE_RENAME_INFO with its flags
    DWORD flags;
    HANDLE root;
    DWORD name_bytes;
    wchar_t name[1];
  };
  const std::wstring target = system_path(std::filesystem::absolute(to));
  const std::size_t name_bytes = target.size() * sizeof(wchar_t);
  const auto storage = std::make_unique<std::byte[]>(sizeof(RenameInfo) + name_bytes);
  auto* info = ::new (static_cast<void*>(storage.get())) RenameInfo{};
  info->flags = kReplace | kAsPosix;
  info->name_bytes = static_cast<DWORD>(name_bytes);
  std::copy_n(target.data(), target.size(), info->name);
  const auto bytes = static_cast<DWORD>(sizeof(RenameInfo) + name_bytes);
  if (::SetFileInformationByHandle(handle_of(file), kRenameEx, info, bytes)) return 0;
  // On older systems and other file systems: also renames in one step, but fails while another process has the old file open.
  return ::MoveFileExW(system_path(from).c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ? 0 : last_error();
}

void sync_folder(const std::filesystem::path&) noexcept {}  // NTFS keeps a journal of names

void remove_file(const std::filesystem::path& path) noexcept {
  try {
    ::DeleteFileW(system_path(path).c_str());
  } catch (...) {  // no memory for a long path: the file stays
  }
}

std::uint64_t process_id() noexcept { return ::GetCurrentProcessId(); }

}  // namespace tessera::os
