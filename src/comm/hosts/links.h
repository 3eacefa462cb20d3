// Moeyard. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/sha256.h"
#include "base/status.h"

namespace moeyard::comm {

// Streams of bytes to the other hosts of a communicator, in order. Used by one thread.
class Links {
 public:
  // What comes in, while progress() runs.
  class Handler {
   public:
    virtual void bytes(int host, std::span<const std::byte> bytes) = 0;
    // The host can't be reached any more; nothing comes from it after this.
    virtual void lost(int host, const std::string& why) = 0;

   protected:
    ~Handler() = default;
  };
  virtual ~Links() = default;

  // Where others connect to; the port. HCCL_E_NETWORK.
  virtual Result<int> listen(std::string_view function, const std::string& address,
                             const std::vector<std::pair<int, int>>& ports) = 0;
  struct Peer {
    std::string address;
    int port;
    Digest proof;  // that whoever connects to the other is who it says; both know it
  };
  // Waits until there is a stream to every other host. peers: of all hosts; this one has the number `own`. Of two
  // hosts the later one connects to the earlier one.
  virtual Status connect(std::string_view function, const std::vector<Peer>& peers, int own,
                         const Deadline& deadline) = 0;

  // Both parts, one after the other; `body` must stay until done() has been called, in progress() or here. Thrown
  // away if the host is lost.
  virtual void send(int host, std::string head, std::span<const std::byte> body,
                    std::function<void()> done) = 0;
  // Moves what can be moved; true if something did.
  virtual bool progress(Handler& handler) = 0;
  // Before a sleep on descriptor(), which becomes readable when progress() has something to do. False: it has now.
  virtual bool arm() = 0;
  virtual int descriptor() const = 0;
  // Waits, for some seconds at most, until what was sent has left.
  virtual void flush() = 0;
};

// The streams of UCX. It is loaded when this is first called: programs on one host do without it. HCCL_E_NETWORK: it
// is not there.
Result<std::unique_ptr<Links>> make_links(std::string_view function);

}  // namespace moeyard::comm
