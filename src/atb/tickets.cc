// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/tickets.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "atb/failure.h"

namespace moeyard::atb_layer {
namespace {

struct Ticket {
  HcclRootInfo info;
  std::int32_t missing;  // ranks that have not taken it
  std::int32_t maker;    // process
};

bool same(const HcclRootInfo& a, const HcclRootInfo& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

HcclResult make(std::int32_t size, Ticket& ticket) {
  ticket.missing = size;
  ticket.maker = static_cast<std::int32_t>(::getpid());
  return HcclGetRootInfo(&ticket.info);
}

// ---- Among the threads of this process ----

class Shelf {
 public:
  HcclResult take(const std::string& words, std::int32_t size, HcclRootInfo& info) {
    const std::lock_guard lock(mutex_);
    const auto [found, is_first] = open_.try_emplace(words);
    if (is_first) {
      if (const HcclResult code = make(size, found->second); code != HCCL_SUCCESS) {
        open_.erase(found);
        return code;
      }
    }
    info = found->second.info;
    if (--found->second.missing == 0) open_.erase(found);
    return HCCL_SUCCESS;
  }
  void give_up(const std::string& words, const HcclRootInfo& info) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(words);
    if (found != open_.end() && same(found->second.info, info)) open_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Ticket> open_;
};

Shelf& shelf() {
  static auto* made = new Shelf;  // threads may outlive static objects
  return *made;
}

// ---- Among processes ----

std::mutex& file_mutex() {
  static auto* made = new std::mutex;
  return *made;
}

// A file with a ticket, or an empty one; others are locked out of it as long as this object lives. The kernel's lock is one of
// the process, so that a child which is forked meanwhile does not hold it, too.
class TicketFile {
 public:
  explicit TicketFile(const std::string& words) : threads_(file_mutex()), path_(path_of(words)) {
    constexpr int kTries = 100;  // each one lost to a process that took the file away
    for (int i = 0; i < kTries && file_ < 0; ++i)
      if (!open()) return;
  }
  ~TicketFile() {
    if (file_ >= 0) ::close(file_);
  }
  TicketFile(const TicketFile&) = delete;
  TicketFile& operator=(const TicketFile&) = delete;

  bool is_open() const { return file_ >= 0; }
  const std::string& path() const { return path_; }

  // False: there is none, or the process that made it has ended.
  bool read(Ticket& ticket) const {
    return ::pread(file_, &ticket, sizeof ticket, 0) == static_cast<ssize_t>(sizeof ticket) &&
           (::kill(ticket.maker, 0) == 0 || errno != ESRCH);
  }
  bool write(const Ticket& ticket) const {
    return ::pwrite(file_, &ticket, sizeof ticket, 0) == static_cast<ssize_t>(sizeof ticket);
  }
  void remove() const { ::unlink(path_.c_str()); }

 private:
  static std::string path_of(const std::string& words) {
    const char* folder = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    const std::size_t number = std::hash<std::string>()(words);
    return std::string(folder) + "/moeyard-atb-" + std::to_string(::geteuid()) + "-" + std::to_string(number);
  }
  // False: it cannot be opened. The file that was opened may have been taken away before it was locked.
  bool open() {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return false;
    struct stat opened, found;
    struct flock whole = {};
    whole.l_type = F_WRLCK;
    const bool locked = ::fcntl(file, F_SETLKW, &whole) == 0 && ::fstat(file, &opened) == 0;
    if (locked && opened.st_uid == ::geteuid() && ::stat(path_.c_str(), &found) == 0 &&
        found.st_ino == opened.st_ino) {
      file_ = file;
      return true;
    }
    ::close(file);
    return locked && opened.st_uid == ::geteuid();
  }

  const std::lock_guard<std::mutex> threads_;
  const std::string path_;
  int file_ = -1;
};

HcclResult refuse(const TicketFile& file) {
  fail(atb::ERROR_HCCL_FAIL,
       "ranks of several processes meet by the file %s, which cannot be opened or written: %s",
       file.path().c_str(), std::strerror(errno));
  return HCCL_E_OPEN_FILE_FAILURE;
}

HcclResult take_from_file(const std::string& words, std::int32_t size, HcclRootInfo& info) {
  const TicketFile file(words);
  if (!file.is_open()) return refuse(file);
  Ticket ticket;
  if (!file.read(ticket)) {
    if (const HcclResult code = make(size, ticket); code != HCCL_SUCCESS) {
      file.remove();
      return code;
    }
  }
  info = ticket.info;
  if (--ticket.missing == 0)
    file.remove();
  else if (!file.write(ticket))
    return refuse(file);
  return HCCL_SUCCESS;
}

void give_up_file(const std::string& words, const HcclRootInfo& info) {
  const TicketFile file(words);
  Ticket ticket;
  if (file.is_open() && (!file.read(ticket) || same(ticket.info, info))) file.remove();
}

}  // namespace

HcclResult meet(const std::string& words, std::int32_t rank, std::int32_t size, ::HcclComm& comm) {
  const char* suffix = std::getenv("ATB_SHARE_MEMORY_NAME_SUFFIX");
  const bool among_processes = suffix != nullptr && *suffix != '\0';
  const std::string shared_words = among_processes ? suffix + ('\n' + words) : "";
  HcclRootInfo info;
  HcclResult code =
      among_processes ? take_from_file(shared_words, size, info) : shelf().take(words, size, info);
  if (code != HCCL_SUCCESS) return code;
  code =
      HcclCommInitRootInfo(static_cast<std::uint32_t>(size), &info, static_cast<std::uint32_t>(rank), &comm);
  if (code == HCCL_SUCCESS) return code;
  // Who comes again begins another meeting.
  if (among_processes)
    give_up_file(shared_words, info);
  else
    shelf().give_up(words, info);
  return code;
}

}  // namespace moeyard::atb_layer
