// Moeyard. SPDX-License-Identifier: Apache-2.0
// comm/hosts/links.h over the streams of UCX: a library of its own, libmoeyard_ucx, which comm/hosts/load_links.cc loads.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <list>
#include <thread>

#include "base/errors.h"
#include "comm/hosts/links.h"
#include "hccl/hccl_types.h"

namespace moeyard::comm {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  ucs_sock_addr_t get() const { return {reinterpret_cast<const sockaddr*>(&storage), bytes}; }
};

Address parse(const std::string& text, int port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<std::uint16_t>(port));
    address.bytes = sizeof(sockaddr_in);
    return address;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  inet_pton(AF_INET6, text.substr(0, text.find('%')).c_str(), &v6->sin6_addr);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<std::uint16_t>(port));
  address.bytes = sizeof(sockaddr_in6);
  return address;
}

// The first bytes in each direction of a stream.
struct Hello {
  std::int32_t host;
  Digest proof;
};

class UcxLinks final : public Links {
 public:
  ~UcxLinks() override {
    for (const auto& peer : peers_) close(*peer);
    for (ucp_conn_request_h request : requests_) ucp_listener_reject(listener_, request);
    if (listener_ != nullptr) ucp_listener_destroy(listener_);
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  Status open(std::string_view function) {
    ucp_config_t* config = nullptr;
    ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
    if (status == UCS_OK) {
      ucp_params_t params{};
      params.field_mask = UCP_PARAM_FIELD_FEATURES;
      params.features = UCP_FEATURE_STREAM | UCP_FEATURE_WAKEUP;
      status = ucp_init(&params, config, &context_);
      ucp_config_release(config);
    }
    if (status == UCS_OK) {
      ucp_worker_params_t params{};
      params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
      params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
      status = ucp_worker_create(context_, &params, &worker_);
    }
    if (status == UCS_OK) status = ucp_worker_get_efd(worker_, &descriptor_);
    return status == UCS_OK ? Status() : failed(function, "starting UCX", status);
  }

  Result<int> listen(std::string_view function, const std::string& address,
                     const std::vector<std::pair<int, int>>& ports) override {
    ucs_status_t status = UCS_ERR_BUSY;
    const std::vector<std::pair<int, int>> any{{0, 0}};
    for (const auto& [first, last] : ports.empty() ? any : ports)
      for (int port = first; port <= last && status != UCS_OK; ++port) {
        const Address at = parse(address, port);
        ucp_listener_params_t params{};
        params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
        params.sockaddr = at.get();
        params.conn_handler.cb = [](ucp_conn_request_h request, void* self) {
          static_cast<UcxLinks*>(self)->requests_.push_back(request);
        };
        params.conn_handler.arg = this;
        status = ucp_listener_create(worker_, &params, &listener_);
      }
    if (status != UCS_OK)
      return failed(function, fmt::format("waiting for other hosts at {}", address), status);
    ucp_listener_attr_t attributes{};
    attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    ucp_listener_query(listener_, &attributes);
    const auto* v4 =
        reinterpret_cast<const sockaddr_in*>(&attributes.sockaddr);  // the port lies alike in both
    return ntohs(v4->sin_port);
  }

  // Both ends say who they are, and nothing else before that has arrived: while UCX is still setting up a connection,
  // what is sent first need not come first.
  Status connect(std::string_view function, const std::vector<Peer>& peers, int own,
                 const Deadline& deadline) override {
    by_host_.assign(peers.size(), nullptr);
    const auto number_of = [&](int host) -> const Peer& { return peers[static_cast<std::size_t>(host)]; };
    const Hello hello{own, number_of(own).proof};
    for (int host = 0; host < own; ++host) {
      UcxPeer& made = add_peer();
      made.host = host;
      const Address at = parse(number_of(host).address, number_of(host).port);
      ucp_ep_params_t params = parameters(made);
      params.field_mask |= UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_FLAGS;
      params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
      params.sockaddr = at.get();
      const ucs_status_t status = ucp_ep_create(worker_, &params, &made.endpoint);
      if (status != UCS_OK)
        return failed(function, fmt::format("connecting to {}", number_of(host).address), status);
      send(made, {reinterpret_cast<const char*>(&hello), sizeof hello}, {}, {});
    }
    const auto all_there = [&] {
      for (int host = 0; host < static_cast<int>(peers.size()); ++host)
        if (host != own && by_host_[static_cast<std::size_t>(host)] == nullptr) return false;
      return under_way_ == 0;
    };
    while (!all_there()) {
      if (deadline.expired())
        return fail(HCCL_E_TIMEOUT, TextCode::hccl_connection,
                    "{}: not all hosts of the communicator connected in time; see that their addresses reach "
                    "each other, or raise HCCL_CONNECT_TIMEOUT",
                    function);
      if (ucp_worker_progress(worker_) == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
      for (; !requests_.empty(); requests_.pop_front()) {
        UcxPeer& made = add_peer();
        ucp_ep_params_t params = parameters(made);
        params.field_mask |= UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = requests_.front();
        if (ucp_ep_create(worker_, &params, &made.endpoint) != UCS_OK) made.failed = true;
      }
      for (const auto& peer : peers_) {
        if (!peer->failed && !peer->welcome && greet(*peer, peers, own) && peer->host > own)
          send(*peer, {reinterpret_cast<const char*>(&hello), sizeof hello}, {}, {});
        if (peer->failed && peer->host >= 0 && peer->host < own)
          return fail(HCCL_E_NETWORK, TextCode::hccl_connection, "{}: connecting to {}, port {}: {}",
                      function, number_of(peer->host).address, number_of(peer->host).port, peer->why);
      }
    }
    return {};
  }

  void send(int host, std::string head, std::span<const std::byte> body,
            std::function<void()> done) override {
    send(*by_host_[static_cast<std::size_t>(host)], std::move(head), body, std::move(done));
  }

  bool progress(Handler& handler) override {
    bool moved = ucp_worker_progress(worker_) != 0;
    for (std::size_t host = 0; host < by_host_.size(); ++host) {
      UcxPeer* peer = by_host_[host];
      if (peer == nullptr || peer->told) continue;
      if (!peer->rest.empty()) {
        handler.bytes(static_cast<int>(host), std::as_bytes(std::span(peer->rest)));
        peer->rest.clear();
        moved = true;
      }
      while (!peer->failed) {
        std::size_t bytes = 0;
        const ucs_status_ptr_t data = ucp_stream_recv_data_nb(peer->endpoint, &bytes);
        if (data == nullptr) break;
        if (UCS_PTR_IS_ERR(data)) {
          peer->failed = true;
          peer->why = ucs_status_string(UCS_PTR_STATUS(data));
          break;
        }
        handler.bytes(static_cast<int>(host), {static_cast<const std::byte*>(data), bytes});
        ucp_stream_data_release(peer->endpoint, data);
        moved = true;
      }
      if (peer->failed) {
        peer->told = moved = true;
        handler.lost(static_cast<int>(host), peer->why);
      }
    }
    return moved;
  }

  bool arm() override { return ucp_worker_arm(worker_) == UCS_OK; }
  int descriptor() const override { return descriptor_; }
  void flush() override {
    constexpr std::chrono::seconds kPatience{3};
    const Deadline deadline = Deadline::after(kPatience);
    while (under_way_ > 0 && !deadline.expired())
      if (ucp_worker_progress(worker_) == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  struct UcxPeer {
    ucp_ep_h endpoint = nullptr;
    int host = -1;         // not known yet
    bool welcome = false;  // has said who it is
    bool failed = false;
    bool told = false;
    std::string why;
    std::string hello;
    std::string rest;  // that came with it
  };
  struct Sending {
    UcxLinks* links;
    std::string head;
    std::function<void()> done;
    int left;
  };

  static Status failed(std::string_view function, std::string_view what, ucs_status_t status) {
    return fail(HCCL_E_NETWORK, TextCode::hccl_connection, "{}: {}: {}", function, what,
                ucs_status_string(status));
  }

  UcxPeer& add_peer() { return *peers_.emplace_back(std::make_unique<UcxPeer>()); }
  static ucp_ep_params_t parameters(UcxPeer& peer) {
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = [](void* at, ucp_ep_h, ucs_status_t status) {
      auto& failed_peer = *static_cast<UcxPeer*>(at);
      failed_peer.failed = true;
      failed_peer.why = ucs_status_string(status);
    };
    params.err_handler.arg = &peer;
    return params;
  }

  // Reads who is at the other end; true once it has proved that. Whoever can't is left alone.
  bool greet(UcxPeer& peer, const std::vector<Peer>& peers, int own) {
    while (peer.hello.size() < sizeof(Hello)) {
      std::size_t bytes = 0;
      const ucs_status_ptr_t data = ucp_stream_recv_data_nb(peer.endpoint, &bytes);
      if (data == nullptr) return false;
      if (UCS_PTR_IS_ERR(data)) {
        peer.failed = true;
        peer.why = ucs_status_string(UCS_PTR_STATUS(data));
        return false;
      }
      peer.hello.append(static_cast<const char*>(data), bytes);
      ucp_stream_data_release(peer.endpoint, data);
    }
    Hello hello;
    std::memcpy(&hello, peer.hello.data(), sizeof hello);
    peer.rest = peer.hello.substr(sizeof hello);
    const bool expected = peer.host >= 0 ? hello.host == peer.host
                                         : hello.host > own && hello.host < static_cast<int>(peers.size());
    peer.welcome = expected && by_host_[static_cast<std::size_t>(hello.host)] == nullptr &&
                   same_digest(hello.proof, peers[static_cast<std::size_t>(hello.host)].proof);
    if (!peer.welcome) {
      peer.failed = true;
      peer.why = "somebody else listens there";
      return false;
    }
    peer.host = hello.host;
    by_host_[static_cast<std::size_t>(hello.host)] = &peer;
    return true;
  }

  void send(UcxPeer& peer, std::string head, std::span<const std::byte> body, std::function<void()> done) {
    if (peer.failed) {
      if (done) done();
      return;
    }
    auto* sending = new Sending{this, std::move(head), std::move(done), 1};
    ++under_way_;
    post(peer, *sending, sending->head.data(), sending->head.size());
    if (!body.empty()) post(peer, *sending, body.data(), body.size());
    finish(*sending);
  }
  void post(UcxPeer& peer, Sending& sending, const void* data, std::size_t bytes) {
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    params.cb.send = [](void* request, ucs_status_t, void* at) {
      ucp_request_free(request);
      finish(*static_cast<Sending*>(at));
    };
    params.user_data = &sending;
    ++sending.left;
    const ucs_status_ptr_t request = ucp_stream_send_nbx(peer.endpoint, data, bytes, &params);
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) return;
    if (UCS_PTR_IS_ERR(request)) {
      peer.failed = true;
      peer.why = ucs_status_string(UCS_PTR_STATUS(request));
    }
    --sending.left;
  }
  static void finish(Sending& sending) {
    if (--sending.left > 0) return;
    --sending.links->under_way_;
    if (sending.done) sending.done();
    delete &sending;
  }

  void close(UcxPeer& peer) {
    if (peer.endpoint == nullptr) return;
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &params);
    if (request == nullptr || UCS_PTR_IS_ERR(request)) return;
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_listener_h listener_ = nullptr;
  int descriptor_ = -1;
  std::deque<ucp_conn_request_h> requests_;
  std::list<std::unique_ptr<UcxPeer>> peers_;
  std::vector<UcxPeer*> by_host_;
  std::int64_t under_way_ = 0;
};

}  // namespace
}  // namespace moeyard::comm

extern "C" __attribute__((visibility("default"))) moeyard::Status* moeyard_make_ucx_links(
    const char* function, moeyard::comm::Links** made) {
  auto links = std::make_unique<moeyard::comm::UcxLinks>();
  moeyard::Status status = links->open(function);
  if (!status.ok()) return new moeyard::Status(std::move(status));
  *made = links.release();
  return nullptr;
}
