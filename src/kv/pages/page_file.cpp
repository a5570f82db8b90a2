#include "kv/pages/page_file.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace tessera::detail {
namespace {

constexpr std::uint64_t kUnit = 4096;  // in bytes: extents begin and end at multiples of the file system's usual block size
constexpr std::size_t kBounceBytes = std::size_t{256} << 10;

std::uint64_t round_up(std::uint64_t bytes) noexcept { return (bytes + kUnit - 1) / kUnit * kUnit; }

}  // namespace

Result<std::unique_ptr<PageFile>> PageFile::create(const std::filesystem::path& path, std::uint64_t bytes,
                                                   Memory& memory) {
  const std::string place = os::text_of(path);
  if (bytes < kUnit || bytes > static_cast<std::uint64_t>(INT64_MAX)) {
    return error_at(ErrorCode::invalid_argument, place, "a file of {} bytes for KV pages; expected at least {}", bytes, kUnit);
  }
  Buffer bounce;
  if (!memory.addressable()) {
    TESSERA_TRY(bounce, Buffer::allocate(system_memory(), kBounceBytes, "the file for KV pages"));
  }
  os::File file;
  if (const int error = os::make_unnamed(path, file); error != 0) {
    if (os::says_exists(error)) {
      return error_at(ErrorCode::invalid_argument, place, "exists: the file for KV pages is made anew, and overwrites nothing");
    }
    return os::system_error_at(place, "make the file for KV pages", error);
  }
  if (const int error = os::take_room(file, bytes); error != 0) {
    return os::system_error_at(place, fmt::format("take {} bytes of disk for KV pages", bytes).c_str(), error);
  }
  return std::unique_ptr<PageFile>(new PageFile(std::move(file), bytes, memory, std::move(bounce)));
}

PageFile::PageFile(os::File file, std::uint64_t bytes, Memory& memory, Buffer bounce)
    : file_(std::move(file)), memory_(memory), bounce_(std::move(bounce)), size_(bytes / kUnit * kUnit) {
  thread_ = std::thread([this] { work(); });
}

void PageFile::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Drops the jobs that are left. Each job is destroyed after the lock is released, because a job may destroy an extent, and the extent's
  // destructor locks mutex_. (Swapping jobs_ with an empty deque would be shorter, but a deque's constructor may allocate.)
  for (;;) {
    Job dropped;
    const std::lock_guard lock(mutex_);
    if (jobs_.empty()) return;
    dropped = std::move(jobs_.front());
    jobs_.pop_front();
  }
}

std::uint64_t PageFile::find_gap(std::uint64_t from, std::uint64_t bytes) const noexcept {
  auto next = taken_.upper_bound(from);
  std::uint64_t offset = from;
  if (next != taken_.begin()) {
    const auto before = std::prev(next);
    offset = std::max(from, before->first + before->second);
  }
  for (; next != taken_.end(); ++next) {
    if (next->first - offset >= bytes) return offset;
    offset = next->first + next->second;
  }
  return size_ - offset >= bytes ? offset : size_;
}

std::shared_ptr<PageFile::Extent> PageFile::allocate(std::uint64_t bytes) {
  const std::uint64_t need = round_up(bytes);
  std::uint64_t offset = 0;
  {
    const std::lock_guard lock(mutex_);
    offset = find_gap(next_, need);
    if (offset == size_) offset = find_gap(0, need);
    if (offset == size_) return nullptr;
    taken_.emplace(offset, need);
    used_ += need;
    next_ = offset + need;
  }
  try {
    return std::make_shared<Extent>(*this, offset, need);
  } catch (...) {
    give_back(offset, need);
    throw;
  }
}

void PageFile::give_back(std::uint64_t offset, std::uint64_t bytes) noexcept {
  const std::lock_guard lock(mutex_);
  taken_.erase(offset);
  used_ -= bytes;
}

std::uint64_t PageFile::used() const noexcept {
  const std::lock_guard lock(mutex_);
  return used_;
}

void PageFile::submit(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

int PageFile::transfer_bytes(Direction direction, std::byte* data, std::size_t bytes, std::uint64_t offset) const noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    const std::span part(data + done, bytes - done);
    std::size_t n = 0;
    const int error = direction == Direction::write ? os::write_at(file_, part, offset + done, n)
                                                    : os::read_at(file_, part, offset + done, n);
    if (error != 0) return error;
    if (n == 0) return os::device_error_number();  // the file is shorter than it was
    done += n;
  }
  return 0;
}

int PageFile::transfer_by_bounce(const Job& job) noexcept {
  for (std::size_t done = 0; done < job.bytes; done += bounce_.size()) {
    const std::size_t n = std::min(bounce_.size(), job.bytes - done);
    const Transfer out{.to = bounce_.data(), .from = job.data + done, .bytes = n};
    const Transfer in{.to = job.data + done, .from = bounce_.data(), .bytes = n};
    if (job.direction == Direction::write && !memory_.read({&out, 1})) return os::device_error_number();
    if (const int error = transfer_bytes(job.direction, bounce_.data(), n, job.extent->offset() + done); error != 0) {
      return error;
    }
    if (job.direction == Direction::read && !memory_.write({&in, 1})) return os::device_error_number();
  }
  return 0;
}

int PageFile::transfer(const Job& job) noexcept {
  if (bounce_.size() > 0) return transfer_by_bounce(job);
  return transfer_bytes(job.direction, job.data, job.bytes, job.extent->offset());
}

void PageFile::work() noexcept {
  for (;;) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const int error = transfer(job);
    job.done(error, std::move(job.extent));
  }
}

}  // namespace tessera::detail
