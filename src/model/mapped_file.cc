// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "model/errors.h"

namespace moeyard::model {
namespace {

std::string reason() { return std::generic_category().message(errno); }

// Closes on every way out.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    return bad_input("{} cannot be read: {}.", path.string(), reason());
  if (!S_ISREG(status.st_mode)) return bad_input("{} is not a file.", path.string());
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile({});  // an empty range cannot be mapped
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (bytes == MAP_FAILED) return bad_input("{} cannot be mapped: {}.", path.string(), reason());
  return MappedFile({static_cast<const std::byte*>(bytes), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace moeyard::model
