// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/sha256.h"

namespace moeyard::comm {
namespace {

constexpr std::size_t kProofBytes = sizeof(Digest);
constexpr std::size_t kHeadBytes = 4 + 1 + 1;  // size of the body, kind, whether there is a proof
constexpr std::uint32_t kMostBodyBytes = 64 << 20;
constexpr int kSliceMs = 20;

Digest proof_of(std::string_view head_and_body, const Key& key) {
  std::string text(reinterpret_cast<const char*>(&key.number), sizeof key.number);
  return hmac_sha256(key.secret, text.append(head_and_body));
}

}  // namespace

std::string pack(Frame frame, std::string_view body, const std::optional<Key>& key) {
  std::string packed;
  const auto size = static_cast<std::uint32_t>(body.size());
  packed.append(reinterpret_cast<const char*>(&size), sizeof size);
  packed += static_cast<char>(frame);
  packed += key ? '\1' : '\0';
  packed.append(body);
  if (key) {
    const Digest proof = proof_of(packed, *key);
    packed.append(reinterpret_cast<const char*>(proof.data()), proof.size());
  }
  return packed;
}

std::optional<Unpacked> unpack(std::string& bytes, bool& broken) {
  if (bytes.size() < kHeadBytes) return std::nullopt;
  std::uint32_t size;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > kMostBodyBytes || static_cast<unsigned char>(bytes[4]) > static_cast<unsigned char>(Frame::go)) {
    broken = true;
    return std::nullopt;
  }
  const std::size_t all = kHeadBytes + size + (bytes[5] != '\0' ? kProofBytes : 0);
  if (bytes.size() < all) return std::nullopt;
  Unpacked frame{static_cast<Frame>(bytes[4]), bytes.substr(kHeadBytes, size),
                 bytes.substr(kHeadBytes + size, all - kHeadBytes - size)};
  bytes.erase(0, all);
  return frame;
}

bool proves(const Unpacked& frame, const Key& key) {
  Digest shown;
  if (frame.proof.size() != shown.size()) return false;
  std::copy(frame.proof.begin(), frame.proof.end(), shown.begin());
  const std::string expected = pack(frame.frame, frame.body, key);
  Digest proof;
  std::copy(expected.end() - static_cast<std::ptrdiff_t>(proof.size()), expected.end(), proof.begin());
  return same_digest(shown, proof);
}

std::optional<Unpacked> Channel::receive(const std::function<bool()>& go_on) {
  for (;;) {
    bool broken = false;
    if (auto frame = unpack(bytes_, broken)) return frame;
    if (broken || !go_on()) return std::nullopt;
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (poll(&waiting, 1, kSliceMs) <= 0) continue;
    char part[16384];
    const ssize_t size = recv(socket_.get(), part, sizeof part, 0);
    if (size > 0)
      bytes_.append(part, static_cast<std::size_t>(size));
    else if (size == 0 || (errno != EAGAIN && errno != EINTR))
      return std::nullopt;
  }
}

bool Channel::send(const std::string& frame) {
  for (std::size_t sent = 0; sent < frame.size();) {
    const ssize_t size = ::send(socket_.get(), frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (size > 0) {
      sent += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN) {
      pollfd waiting{socket_.get(), POLLOUT, 0};
      poll(&waiting, 1, kSliceMs);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace moeyard::comm
