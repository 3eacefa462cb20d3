// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "comm/hosts/bridge.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/errors.h"
#include "comm/hosts/frames.h"

namespace moeyard::comm {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLookEvery{20};
constexpr std::chrono::milliseconds kBeatEvery{1000};
constexpr std::chrono::seconds kSilence{10};  // of a host that is taken for lost
constexpr std::chrono::seconds kFarewell{5};  // for the other hosts to say bye, too
constexpr std::chrono::seconds kExit{3};      // for the same when the process ends
constexpr std::size_t kMostHeadBytes = 256 << 20;

// Memory for what is sent, used again.
class Buffers {
 public:
  struct Buffer {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
  };
  std::shared_ptr<Buffer> take(std::size_t bytes) {
    Buffer buffer;
    const auto fits = std::ranges::find_if(idle_, [&](const Buffer& one) { return one.bytes >= bytes; });
    if (fits != idle_.end()) {
      buffer = std::move(*fits);
      idle_.erase(fits);
    } else {
      buffer = {std::make_unique_for_overwrite<std::byte[]>(bytes), bytes};
    }
    return {new Buffer(std::move(buffer)), [this](Buffer* done) {
              constexpr std::size_t kMostKept = 8;
              if (idle_.size() < kMostKept) idle_.push_back(std::move(*done));
              delete done;
            }};
  }

 private:
  std::vector<Buffer> idle_;
};

// A board that ranks of this host and others share.
struct Channel {
  std::uint64_t id = 0;
  std::shared_ptr<World> world;
  std::vector<int> hosts;  // the others
  struct Message {         // of a rank of another host, in memory of this one
    std::byte* data = nullptr;
    std::int64_t bytes = 0;
  };
  std::vector<std::array<Message, 2>> messages;
  std::deque<World::Arrival> early;     // those who come to the meeting after the one that is held here
  std::vector<std::int32_t> departing;  // of other hosts, once they have come where they said before
  std::vector<bool> departed;           // ranks of this host whose departure the others know
  bool fault_told = false;
};

// Where the body of a frame goes.
struct Sink {
  struct Part {
    std::uint64_t at;
    std::byte* to;
    std::uint64_t bytes;
  };
  std::vector<Part> parts;  // in the order of `at`; some may have the same
  World* owner = nullptr;   // of memory that its ranks have posted
  std::size_t first = 0;    // that is not complete
  std::uint64_t position = 0;

  void copy(std::span<const std::byte> bytes) {
    if (owner == nullptr || parts.empty()) {
      write(bytes);
    } else {
      std::atomic<std::int32_t>& copies = owner->shared().bridge_copies;
      copies.fetch_add(1, std::memory_order_seq_cst);
      if (!owner->shared().in_fault.load(std::memory_order_seq_cst)) write(bytes);
      copies.fetch_sub(1, std::memory_order_seq_cst);
    }
    position += bytes.size();
  }

 private:
  void write(std::span<const std::byte> bytes) {
    const std::uint64_t end = position + bytes.size();
    while (first < parts.size() && parts[first].at + parts[first].bytes <= position) ++first;
    for (std::size_t i = first; i < parts.size() && parts[i].at < end; ++i) {
      const Part& part = parts[i];
      const std::uint64_t from = std::max(part.at, position), to = std::min(part.at + part.bytes, end);
      if (from >= to) continue;
      std::byte* const place = part.to + (from - part.at);
      const std::byte* const source = bytes.data() + (from - position);
      // A flag of a window must not be seen before what it stands for.
      if (part.bytes == sizeof(std::int32_t) && to - from == part.bytes &&
          reinterpret_cast<std::uintptr_t>(place) % sizeof(std::int32_t) == 0) {
        std::int32_t value;
        std::memcpy(&value, source, sizeof value);
        std::atomic_ref(*reinterpret_cast<std::int32_t*>(place)).store(value, std::memory_order_release);
      } else {
        std::memcpy(place, source, to - from);
      }
    }
  }
};

class Bridge final : public Links::Handler {
 public:
  Bridge(std::shared_ptr<World> world, std::unique_ptr<Links> links, int hosts)
      : links_(std::move(links)),
        spaces_(world->spaces()),
        outbox_(*spaces_.at<Outbox>(world->shared().outbox)),
        own_(world->shared().host),
        incoming_(static_cast<std::size_t>(hosts)),
        heard_(static_cast<std::size_t>(hosts), Clock::now()),
        gone_(static_cast<std::size_t>(hosts)),
        bye_(static_cast<std::size_t>(hosts)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    gone_[static_cast<std::size_t>(own_)] = true;
    outbox_.open(spaces_.own());
    root_ = &add_channel(0, std::move(world));
  }
  ~Bridge() {
    links_.reset();
    close(wake_);
  }

  void run() {
    std::thread watcher([this] { watch(); });
    Clock::time_point next_look = Clock::now();
    while (!is_done()) {
      bool moved = false;
      while (const auto note = outbox_.pop()) {
        handle(*note);
        moved = true;
      }
      moved |= links_->progress(*this);
      if (moved) let_in_early();
      tell_faults();
      if (const auto now = Clock::now(); now >= next_look) {
        next_look = now + kLookEvery;
        look(now);
      }
      if (!moved && links_->arm()) sleep();
    }
    links_->flush();
    watching_ = false;
    outbox_.ring();
    watcher.join();
    drop_everything();
  }
  // The process is about to end.
  void stop() {
    stop_ = true;
    wake();
  }

 private:
  struct Incoming {
    std::string bytes;  // of a start, then of a head
    FrameStart start{};
    bool has_start = false, has_head = false;
    std::uint64_t left = 0;  // of the body
    Sink sink;
    std::function<void()> finish;
  };
  struct Asked {
    Channel* channel;
    Parcel* parcel;
    bool being_filled = false;
  };
  struct Proxy {  // of a send on another host
    std::uint64_t id;
    int host;
    std::uint64_t channel;
    std::byte* memory;
    std::int64_t bytes;
  };

  // ---- Waiting ----

  // Notes come by a futex and the network by a descriptor: this makes one of both.
  void watch() {
    std::uint32_t seen = outbox_.bell().changes();
    while (watching_) {
      outbox_.bell().wait(seen, Clock::now() + std::chrono::milliseconds(200));
      const std::uint32_t now = outbox_.bell().changes();
      if (now == seen) continue;
      seen = now;
      wake();
    }
  }
  void wake() {
    constexpr std::uint64_t kOne = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &kOne, sizeof kOne);
  }
  void sleep() {
    pollfd waiting[] = {{links_->descriptor(), POLLIN, 0}, {wake_, POLLIN, 0}};
    poll(waiting, 2, static_cast<int>(kLookEvery.count()));
    std::uint64_t count;
    [[maybe_unused]] const ssize_t read_bytes = read(wake_, &count, sizeof count);
  }

  // ---- Channels ----

  Channel& add_channel(std::uint64_t id, std::shared_ptr<World> world) {
    auto channel = std::make_unique<Channel>();
    channel->id = id;
    const auto size = static_cast<std::size_t>(world->size());
    channel->messages.resize(size);
    channel->departed.resize(size);
    for (int rank = 0; rank < world->size(); ++rank) {
      const int host = world->host_of(rank);
      if (host != own_ && std::ranges::find(channel->hosts, host) == channel->hosts.end())
        channel->hosts.push_back(host);
    }
    channel->world = std::move(world);
    for (const int host : channel->hosts)
      if (gone_[static_cast<std::size_t>(host)]) channel->world->lose_host(host, "before");
    return *(channels_[id] = std::move(channel));
  }
  Channel* find_channel(std::uint64_t id) {
    const auto found = channels_.find(id);
    return found == channels_.end() ? nullptr : found->second.get();
  }
  // That of a board, which a rank of this host may just have made.
  Channel* find_channel(Ref board) {
    for (const auto& [id, channel] : channels_)
      if (channel->world->board() == board) return channel.get();
    struct Found {
      World* parent = nullptr;
      std::string name;
      std::vector<std::int32_t> members;
      std::int32_t generation;
      std::int64_t window_bytes;
      std::uint64_t id;
    } found;
    for (const auto& [id, channel] : channels_)
      channel->world->visit_children([&](Child& child) {
        if (child.board == board)
          found = {channel->world.get(),
                   std::string(child.name.view()),
                   {child.members(), child.members() + child.size},
                   child.generation,
                   child.window_bytes,
                   child.channel};
      });
    if (found.parent == nullptr) return nullptr;
    auto world = open(*found.parent, found.name, found.members, found.generation, found.window_bytes);
    if (!world) return nullptr;
    Channel& made = add_channel(found.id, *world);
    PacketWriter head;
    head.text(found.name).add(found.generation).add(found.window_bytes);
    head.add(static_cast<std::uint32_t>(found.members.size()));
    for (const std::int32_t member : found.members) head.add(member);
    send_to_all(made, FrameKind::open, found.parent->shared().channel, head);
    return &made;
  }
  static Result<std::shared_ptr<World>> open(World& parent, const std::string& name,
                                             std::span<const std::int32_t> members, int generation,
                                             std::int64_t window_bytes) {
    if (name.empty()) return parent.among(members);
    return parent.sub("HcclCreateSubCommConfig", name, members, generation, window_bytes);
  }

  // ---- Sending ----

  void send(int host, std::string frame, std::span<const std::byte> body = {},
            std::function<void()> done = {}) {
    links_->send(host, std::move(frame), body, std::move(done));
  }
  void send(int host, std::string frame, std::shared_ptr<Buffers::Buffer> body, std::size_t bytes) {
    const std::span<const std::byte> span{body->data.get(), bytes};
    send(host, std::move(frame), span, [body = std::move(body)] {});
  }
  void send_to_all(const Channel& channel, FrameKind kind, const PacketWriter& head) {
    send_to_all(channel, kind, channel.id, head);
  }
  void send_to_all(const Channel& channel, FrameKind kind, std::uint64_t id, const PacketWriter& head) {
    for (const int host : channel.hosts) send(host, make_frame(kind, id, head));
  }

  void handle(const Note& note) {
    Channel* const channel = find_channel(note.board);
    if (channel == nullptr) {
      if (note.kind == Note::Kind::parcel) finish(*spaces_.at<Parcel>(note.data), true);
      return;
    }
    World& world = *channel->world;
    const std::int32_t rank = note.rank;
    switch (note.kind) {
      case Note::Kind::join:
        return send_to_all(*channel, FrameKind::join,
                           PacketWriter().add(rank).add(world.shared().seat(rank).device));
      case Note::Kind::come:
        return tell_come(*channel, rank, note.number);
      case Note::Kind::retract:
        return send_to_all(*channel, FrameKind::retract, PacketWriter().add(rank).add(note.number));
      case Note::Kind::refuse:
        return tell_refusal(*channel, rank);
      case Note::Kind::withdraw:
        return send_to_all(*channel, FrameKind::withdraw, PacketWriter().add(rank));
      case Note::Kind::depart:
        tell_fault(*channel);  // which may be why
        channel->departed[static_cast<std::size_t>(rank)] = true;
        return send_to_all(*channel, FrameKind::depart, PacketWriter().add(rank));
      case Note::Kind::parcel:
        return tell_parcel(*channel, *spaces_.at<Parcel>(note.data));
      case Note::Kind::received:
        return tell_received(note.data);
    }
  }

  void tell_come(Channel& channel, std::int32_t rank, std::uint64_t number) {
    World& world = *channel.world;
    std::atomic<std::int32_t>& copies = world.shared().bridge_copies;
    copies.fetch_add(1, std::memory_order_seq_cst);
    if (!world.shared().in_fault.load(std::memory_order_seq_cst)) {
      const SharedVisit& visit = world.visit(rank, number);
      PacketWriter head;
      head.add(rank).add(number).text(world.operator_at(visit.operator_name)).add(visit.round);
      head.add(visit.error.code).text(visit.error.code == 0 ? "" : visit.error.message.view());
      head.add(static_cast<std::uint32_t>(visit.fact_count));
      for (int i = 0; i < visit.fact_count; ++i) head.add(visit.facts[i]);
      head.text(visit.fact_count == 0 ? "" : visit.fact_names.view());
      head.add(static_cast<std::uint32_t>(visit.block_count));
      for (int i = 0; i < visit.block_count; ++i) head.add(visit.blocks[i].bytes);
      head.add(visit.bytes_per_peer).add(visit.message_bytes);
      const std::byte* const message = spaces_.at(visit.message);
      const auto bytes = message == nullptr ? 0 : static_cast<std::size_t>(visit.message_bytes);
      std::shared_ptr<Buffers::Buffer> whole;
      for (const int host : channel.hosts) {
        if (visit.bytes_per_peer == 0) {
          if (whole == nullptr) {
            whole = buffers_.take(bytes);
            if (bytes > 0) std::memcpy(whole->data.get(), message, bytes);
          }
          send(host, make_frame(FrameKind::come, channel.id, head, static_cast<std::int64_t>(bytes)), whole,
               bytes);
          continue;
        }
        const auto n = static_cast<std::size_t>(visit.bytes_per_peer);
        auto slices = buffers_.take(n * static_cast<std::size_t>(world.size()));
        std::size_t used = 0;
        for (int peer = 0; peer < world.size() && message != nullptr; ++peer) {
          if (world.host_of(peer) != host) continue;
          std::memcpy(slices->data.get() + used, message + static_cast<std::size_t>(peer) * n, n);
          used += n;
        }
        send(host, make_frame(FrameKind::come, channel.id, head, static_cast<std::int64_t>(used)), slices,
             used);
      }
    }
    copies.fetch_sub(1, std::memory_order_seq_cst);
  }

  void tell_refusal(const Channel& channel, std::int32_t rank) {
    World& world = *channel.world;
    std::string operator_name, message;
    {
      const std::lock_guard lock(world.shared().mutex);
      const Seat& seat = world.shared().seat(rank);
      if (!seat.refused) return;
      operator_name = world.operator_at(seat.refused_name);
      message = seat.refusal.view();
    }
    send_to_all(channel, FrameKind::refuse, PacketWriter().add(rank).text(operator_name).text(message));
  }

  static void add_parts(PacketWriter& head, Parcel& parcel) {
    head.add(static_cast<std::uint32_t>(parcel.count));
    for (std::int64_t i = 0; i < parcel.count; ++i) head.add(parcel.parts()[i]);
  }
  void tell_parcel(Channel& channel, Parcel& parcel) {
    if (gone_[static_cast<std::size_t>(parcel.host)] || channel.world->in_fault())
      return finish(parcel, true);
    const std::span<const std::byte> body{parcel.body(), static_cast<std::size_t>(parcel.body_bytes)};
    PacketWriter head;
    switch (parcel.kind) {
      case Parcel::Kind::put:
        head.add(parcel.number);
        add_parts(head, parcel);
        return send(parcel.host, make_frame(FrameKind::put, channel.id, head, parcel.body_bytes), body,
                    [&parcel] { finish(parcel, false); });
      case Parcel::Kind::get:
        asked_[++last_id_] = {&channel, &parcel};
        head.add(last_id_).add(parcel.number);
        add_parts(head, parcel);
        return send(parcel.host, make_frame(FrameKind::get, channel.id, head));
      case Parcel::Kind::send: {
        asked_[++last_id_] = {&channel, &parcel};
        head.add(last_id_).add(parcel.rank).add(parcel.parts()[0].peer).text(parcel.sent.type);
        // The answer may come, and the parcel be used again, only when all of it has left.
        auto copy = buffers_.take(body.size());
        if (!body.empty()) std::memcpy(copy->data.get(), body.data(), body.size());
        return send(parcel.host, make_frame(FrameKind::send, channel.id, head, parcel.body_bytes), copy,
                    body.size());
      }
    }
  }
  static void finish(Parcel& parcel, bool failed) {
    parcel.failed = failed;
    parcel.state.store(Parcel::State::done, std::memory_order_release);
  }
  void finish(const Asked& asked, bool failed) {
    const std::int32_t rank = asked.parcel->rank;
    finish(*asked.parcel, failed);
    asked.channel->world->shared().seat(rank).bell.ring();
  }

  void tell_received(Ref node) {
    const auto found = std::ranges::find_if(
        proxies_, [&](const Proxy& proxy) { return spaces_.at<PairNode>(node) == node_of(proxy); });
    if (found == proxies_.end()) return;
    const PairNode::Item& taken = node_of(*found)->partners;
    send(found->host, make_frame(FrameKind::received, found->channel,
                                 PacketWriter().add(found->id).add(taken.bytes).text(taken.type)));
    spaces_.release(found->memory, found->bytes);
    proxies_.erase(found);
  }
  static PairNode* node_of(const Proxy& proxy) { return reinterpret_cast<PairNode*>(proxy.memory); }

  // ---- Receiving ----

  void bytes(int host, std::span<const std::byte> bytes) override {
    Incoming& in = incoming_[static_cast<std::size_t>(host)];
    heard_[static_cast<std::size_t>(host)] = Clock::now();
    const auto fill = [&](std::size_t wanted) {
      const std::size_t taken = std::min(wanted - in.bytes.size(), bytes.size());
      in.bytes.append(reinterpret_cast<const char*>(bytes.data()), taken);
      bytes = bytes.subspan(taken);
      return in.bytes.size() == wanted;
    };
    for (;;) {
      if (!in.has_start) {
        if (!fill(sizeof(FrameStart))) return;
        std::memcpy(&in.start, in.bytes.data(), sizeof(FrameStart));
        in.bytes.clear();
        in.has_start = true;
        if (in.start.head_bytes > kMostHeadBytes) return give_up(host, "it sends what is no frame");
      }
      if (!in.has_head) {
        if (!fill(in.start.head_bytes)) return;
        in.has_head = true;
        in.left = in.start.body_bytes;
        in.sink = {};
        in.finish = {};
        begin(host, in);
      }
      const std::size_t taken = std::min<std::uint64_t>(in.left, bytes.size());
      if (taken > 0) in.sink.copy(bytes.first(taken));
      bytes = bytes.subspan(taken);
      in.left -= taken;
      if (in.left > 0) return;
      if (in.finish) in.finish();
      in.bytes.clear();
      in.has_start = in.has_head = false;
    }
  }

  void give_up(int host, const std::string& why) {
    if (gone_[static_cast<std::size_t>(host)]) return;
    gone_[static_cast<std::size_t>(host)] = true;
    for (const auto& [id, channel] : channels_)
      if (std::ranges::find(channel->hosts, host) != channel->hosts.end())
        channel->world->lose_host(host, why);
    drop_asked([&](const Asked& asked) { return asked.parcel->host == host; });
  }
  void lost(int host, const std::string& why) override { give_up(host, why); }

  // A head has come: does what it says, or finds out where its body goes.
  void begin(int host, Incoming& in) {
    PacketReader head(in.bytes);
    if (in.start.kind == FrameKind::bye) bye_[static_cast<std::size_t>(host)] = true;
    Channel* const channel = find_channel(in.start.channel);
    if (in.start.kind <= FrameKind::bye || channel == nullptr) return;
    World& world = *channel->world;
    switch (in.start.kind) {
      case FrameKind::open:
        return begin_open(host, world, head);
      case FrameKind::come:
        return begin_come(*channel, head, in);
      case FrameKind::put:
        return begin_put(world, head, in);
      case FrameKind::get:
        return answer(host, *channel, head);
      case FrameKind::got:
        return begin_got(head, in);
      case FrameKind::send:
        return begin_send(host, *channel, head, in);
      case FrameKind::received:
        return take_received(head);
      case FrameKind::fault: {
        const std::string operator_name = head.text(), story = head.text();
        return world.fail_from_afar(operator_name, story);
      }
      default:
        break;
    }
    const auto rank = head.take<std::int32_t>();
    if (!is_afar(world, rank)) return;
    switch (in.start.kind) {
      case FrameKind::join:
        return world.join_from_afar(rank, head.take<std::int32_t>());
      case FrameKind::retract:
        return world.retract_from_afar(rank, head.take<std::uint64_t>());
      case FrameKind::refuse: {
        const std::string operator_name = head.text(), message = head.text();
        return world.post_refusal(rank, intern_operator(operator_name), message);
      }
      case FrameKind::withdraw:
        return world.withdraw_refusal(rank);
      case FrameKind::depart:
        channel->departing.push_back(rank);
        return let_in_early();
      default:
        return;
    }
  }
  bool is_afar(const World& world, std::int32_t rank) const {
    return rank >= 0 && rank < world.size() && world.host_of(rank) != own_;
  }
  bool is_ours(const World& world, std::int32_t rank) const {
    return rank >= 0 && rank < world.size() && world.host_of(rank) == own_;
  }

  void begin_open(int host, World& parent, PacketReader& head) {
    const std::string name = head.text();
    const auto generation = head.take<std::int32_t>();
    const auto window_bytes = head.take<std::int64_t>();
    std::vector<std::int32_t> members(head.count(sizeof(std::int32_t)));
    for (std::int32_t& member : members) member = head.take<std::int32_t>();
    if (!head.ok() ||
        std::ranges::any_of(members, [&](int rank) { return rank < 0 || rank >= parent.size(); }))
      return;
    const std::uint64_t id = World::channel_of(parent.shared().channel, name, members, generation);
    if (find_channel(id) != nullptr) return;
    auto world = open(parent, name, members, generation, window_bytes);
    if (world) {
      add_channel(id, *std::move(world));
    } else {
      send(host, make_frame(FrameKind::fault, id, PacketWriter().text("").text(world.error().message())));
    }
  }

  void begin_come(Channel& channel, PacketReader& head, Incoming& in) {
    World& world = *channel.world;
    World::Arrival arrival;
    arrival.rank = head.take<std::int32_t>();
    arrival.number = head.take<std::uint64_t>();
    arrival.operator_name = head.text();
    arrival.round = head.take<std::int32_t>();
    if (!is_afar(world, arrival.rank) || world.in_fault()) return;
    if (arrival.number != world.shared().seat(arrival.rank).arrived.load())
      return fall_out(world, arrival.rank);
    SharedVisit& visit = world.visit(arrival.rank, arrival.number);
    visit.error.code = head.take<std::int32_t>();
    visit.error.message.set(head.text());
    visit.fact_count =
        static_cast<std::int32_t>(std::min<std::size_t>(head.count(8), SharedVisit::kMostFacts));
    for (int i = 0; i < visit.fact_count; ++i) visit.facts[i] = head.take<std::int64_t>();
    visit.fact_names.set(head.text());
    visit.block_count =
        static_cast<std::int32_t>(std::min<std::size_t>(head.count(8), SharedVisit::kMostBlocks));
    for (int i = 0; i < visit.block_count; ++i) visit.blocks[i] = {{}, head.take<std::int64_t>()};
    visit.bytes_per_peer = head.take<std::int64_t>();
    visit.message_bytes = head.take<std::int64_t>();
    if (!head.ok()) return fall_out(world, arrival.rank);
    if (!place_message(channel, arrival, visit, in)) return;
    in.finish = [this, &channel, arrival] {
      if (channel.world->can_come(arrival.number))
        channel.world->come_from_afar(arrival);
      else
        channel.early.push_back(arrival);
    };
  }
  bool place_message(Channel& channel, const World::Arrival& arrival, SharedVisit& visit, Incoming& in) {
    World& world = *channel.world;
    auto& kept = channel.messages[static_cast<std::size_t>(arrival.rank)][arrival.number & 1];
    if (kept.bytes < visit.message_bytes) {
      if (kept.data != nullptr) spaces_.release(kept.data, kept.bytes);
      kept = {spaces_.allocate(visit.message_bytes), visit.message_bytes};
      if (kept.data == nullptr) {
        kept.bytes = 0;
        world.fail_from_afar(arrival.operator_name, "there is no memory for what ranks of other hosts say");
        return false;
      }
    }
    visit.message = visit.message_bytes == 0 ? Ref() : spaces_.find(kept.data, visit.message_bytes);
    const auto n = static_cast<std::uint64_t>(visit.bytes_per_peer);
    if (n == 0) {
      in.sink.parts = {{0, kept.data, static_cast<std::uint64_t>(visit.message_bytes)}};
      return true;
    }
    std::uint64_t at = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
      if (world.host_of(rank) != own_) continue;
      const std::uint64_t offset = static_cast<std::uint64_t>(rank) * n;
      if (offset + n > static_cast<std::uint64_t>(visit.message_bytes)) break;
      in.sink.parts.push_back({at, kept.data + offset, n});
      at += n;
    }
    return true;
  }
  static void fall_out(World& world, int rank) {
    world.fail_from_afar("", fmt::format("rank {} is out of step with this host", rank));
  }
  void let_in_early() {
    for (const auto& [id, channel] : channels_) {
      World& world = *channel->world;
      for (std::size_t i = 0; i < channel->early.size();) {
        if (!world.can_come(channel->early[i].number)) {
          ++i;
          continue;
        }
        const World::Arrival arrival = channel->early[i];
        channel->early.erase(channel->early.begin() + static_cast<std::ptrdiff_t>(i));
        world.come_from_afar(arrival);
        i = 0;
      }
      std::erase_if(channel->departing, [&](std::int32_t rank) {
        if (std::ranges::find(channel->early, rank, &World::Arrival::rank) != channel->early.end())
          return false;
        world.depart(rank);
        return true;
      });
    }
  }

  // Where a part is on this host; null: nowhere.
  std::byte* place_of(World& world, const Parcel::Part& part, std::uint64_t number) {
    if (!is_ours(world, part.peer) || part.offset < 0 || part.bytes < 0) return nullptr;
    std::byte* begin = nullptr;
    std::int64_t bytes = 0;
    if (part.block == Parcel::kWindow) {
      const auto window = world.window(part.peer);
      if (!window) return nullptr;
      begin = window->data;
      bytes = window->bytes;
    } else {
      const SharedVisit& visit = world.visit(part.peer, number);
      if (part.block < 0 || part.block >= visit.block_count) return nullptr;
      begin = spaces_.at(visit.blocks[part.block].at);
      bytes = visit.blocks[part.block].bytes;
    }
    if (begin == nullptr || part.offset > bytes || part.bytes > bytes - part.offset) return nullptr;
    return begin + part.offset;
  }
  void begin_put(World& world, PacketReader& head, Incoming& in) {
    const auto number = head.take<std::uint64_t>();
    const std::size_t count = head.count(sizeof(Parcel::Part));
    in.sink.owner = &world;
    if (world.in_fault()) return;
    in.sink.parts.reserve(count);
    bool in_order = true;
    for (std::size_t i = 0; i < count; ++i) {
      const auto part = head.take<Parcel::Part>();
      std::byte* const to = place_of(world, part, number);
      if (!head.ok() || to == nullptr || part.at < 0) {
        in.sink.parts.clear();
        return world.fail_from_afar(
            "", fmt::format("another host has written where rank {} has nothing", part.peer));
      }
      if (!in.sink.parts.empty() && in.sink.parts.back().at > static_cast<std::uint64_t>(part.at))
        in_order = false;
      in.sink.parts.push_back(
          {static_cast<std::uint64_t>(part.at), to, static_cast<std::uint64_t>(part.bytes)});
    }
    if (!in_order) std::ranges::stable_sort(in.sink.parts, {}, &Sink::Part::at);
  }

  void answer(int host, Channel& channel, PacketReader& head) {
    World& world = *channel.world;
    const auto id = head.take<std::uint64_t>();
    const auto number = head.take<std::uint64_t>();
    std::vector<Parcel::Part> parts(head.count(sizeof(Parcel::Part)));
    std::int64_t bytes = 0;
    for (Parcel::Part& part : parts) {
      part = head.take<Parcel::Part>();
      bytes += std::max<std::int64_t>(part.bytes, 0);
    }
    std::shared_ptr<Buffers::Buffer> body;
    std::atomic<std::int32_t>& copies = world.shared().bridge_copies;
    copies.fetch_add(1, std::memory_order_seq_cst);
    if (head.ok() && !world.shared().in_fault.load(std::memory_order_seq_cst)) {
      body = buffers_.take(static_cast<std::size_t>(bytes));
      std::byte* to = body->data.get();
      for (const Parcel::Part& part : parts) {
        const std::byte* const from = place_of(world, part, number);
        if (from == nullptr) {
          body = nullptr;
          break;
        }
        if (part.bytes == sizeof(std::int32_t) &&
            reinterpret_cast<std::uintptr_t>(from) % sizeof(std::int32_t) == 0) {
          auto* const flag = reinterpret_cast<std::int32_t*>(const_cast<std::byte*>(from));
          const std::int32_t value = std::atomic_ref(*flag).load(std::memory_order_acquire);
          std::memcpy(to, &value, sizeof value);
        } else {
          std::memcpy(to, from, static_cast<std::size_t>(part.bytes));
        }
        to += part.bytes;
      }
    }
    copies.fetch_sub(1, std::memory_order_seq_cst);
    const PacketWriter reply = PacketWriter().add(id).add(std::int32_t{body == nullptr});
    if (body == nullptr) return send(host, make_frame(FrameKind::got, channel.id, reply));
    send(host, make_frame(FrameKind::got, channel.id, reply, bytes), body, static_cast<std::size_t>(bytes));
  }
  void begin_got(PacketReader& head, Incoming& in) {
    const auto id = head.take<std::uint64_t>();
    const bool failed = head.take<std::int32_t>() != 0;
    const auto found = asked_.find(id);
    if (found == asked_.end()) return;
    Asked& asked = found->second;
    if (failed || static_cast<std::int64_t>(in.start.body_bytes) != asked.parcel->body_bytes) {
      finish(asked, true);
      asked_.erase(found);
      return;
    }
    asked.being_filled = true;
    in.sink.parts = {{0, asked.parcel->body(), in.start.body_bytes}};
    in.finish = [this, id] {
      finish(asked_.at(id), false);
      asked_.erase(id);
    };
  }

  void begin_send(int host, Channel& channel, PacketReader& head, Incoming& in) {
    World& world = *channel.world;
    const auto id = head.take<std::uint64_t>();
    const auto from = head.take<std::int32_t>(), to = head.take<std::int32_t>();
    const std::string type = head.text();
    if (!head.ok() || !is_afar(world, from) || !is_ours(world, to) || world.in_fault()) return;
    const auto data_bytes = static_cast<std::int64_t>(in.start.body_bytes);
    const std::int64_t bytes = static_cast<std::int64_t>(sizeof(PairNode)) + data_bytes;
    std::byte* const memory = spaces_.allocate(bytes);
    if (memory == nullptr)
      return world.fail_from_afar(
          "", fmt::format("there is no memory for what rank {} sends to rank {}", from, to));
    std::byte* const data = memory + sizeof(PairNode);
    in.sink.parts = {{0, data, in.start.body_bytes}};
    in.finish = [this, host, &channel, id, from, to, type, memory, bytes, data, data_bytes] {
      const Transfer transfer{Transfer::Kind::send, to, data, data_bytes, type};
      auto* const node = new (memory)
          PairNode(transfer, from, spaces_.find(memory, sizeof(PairNode)), spaces_.find(data, data_bytes));
      proxies_.push_back({id, host, channel.id, memory, bytes});
      Seat& seat = channel.world->shared().seat(to);
      if (seat.mailbox.post(spaces_, *node)) seat.bell.ring();
    };
  }
  void take_received(PacketReader& head) {
    const auto id = head.take<std::uint64_t>();
    const auto bytes = head.take<std::int64_t>();
    const std::string type = head.text();
    const auto found = asked_.find(id);
    if (found == asked_.end()) return;
    PairNode::Item& received = found->second.parcel->received;
    received = {{}, bytes, {}};
    type.copy(received.type, sizeof received.type - 1);
    finish(found->second, false);
    asked_.erase(found);
  }

  // ---- From time to time ----

  void tell_faults() {
    for (const auto& [id, channel] : channels_) tell_fault(*channel);
  }
  void tell_fault(Channel& channel) {
    if (channel.fault_told || !channel.world->in_fault()) return;
    channel.fault_told = true;
    const auto story = channel.world->story();
    send_to_all(channel, FrameKind::fault, PacketWriter().text(story->operator_name).text(story->text));
    drop_asked([&](const Asked& asked) { return asked.channel == &channel && !asked.being_filled; });
    channel.early.clear();
  }
  template <class Condition>
  void drop_asked(Condition&& holds) {
    for (auto at = asked_.begin(); at != asked_.end();) {
      if (!holds(at->second)) {
        ++at;
        continue;
      }
      finish(at->second, true);
      at = asked_.erase(at);
    }
  }

  void look(Clock::time_point now) {
    for (const auto& [id, channel] : channels_) channel->world->look();
    if (now - last_beat_ >= kBeatEvery) {
      last_beat_ = now;
      for (int host = 0; host < static_cast<int>(gone_.size()); ++host)
        if (!gone_[static_cast<std::size_t>(host)]) send(host, make_frame(FrameKind::beat, 0, {}));
    }
    for (int host = 0; host < static_cast<int>(gone_.size()); ++host)
      if (!gone_[static_cast<std::size_t>(host)] && now - heard_[static_cast<std::size_t>(host)] > kSilence)
        give_up(host, fmt::format("nothing was heard of it for {} s", kSilence.count()));
    std::erase_if(channels_, [&](const auto& entry) {
      const Channel& channel = *entry.second;
      if (&channel == root_ || !all_departed(channel)) return false;
      forget(channel);
      return true;
    });
  }
  // Of the ranks of this host, those that have a handle.
  bool left_here(const Channel& channel) const {
    const World& world = *channel.world;
    for (int rank = 0; rank < world.size(); ++rank) {
      const Seat& seat = world.shared().seat(rank);
      if (!is_ours(world, rank)) continue;
      const bool joined = seat.joined.load(std::memory_order_acquire);
      if (&channel == root_ ? channel.departed[static_cast<std::size_t>(rank)]
                            : !joined || seat.departed.load(std::memory_order_acquire))
        continue;
      if (!joined || spaces_.alive(seat.space.load(std::memory_order_relaxed))) return false;
    }
    return true;
  }
  static bool all_departed(const Channel& channel) {
    Board& board = channel.world->shared();
    for (int rank = 0; rank < board.size; ++rank)
      if (!board.seat(rank).departed.load(std::memory_order_acquire)) return false;
    return true;
  }
  // No rank of this host has a handle any more, and so it is on the others, or they have had their time.
  bool is_done() {
    const auto now = Clock::now();
    if (stop_ && !ends_at_) ends_at_ = now + kExit;
    if (!said_bye_ &&
        std::ranges::all_of(channels_, [&](const auto& entry) { return left_here(*entry.second); })) {
      said_bye_ = true;
      ends_at_ = std::min(ends_at_.value_or(now + kFarewell), now + kFarewell);
      for (int host = 0; host < static_cast<int>(gone_.size()); ++host)
        if (!gone_[static_cast<std::size_t>(host)]) send(host, make_frame(FrameKind::bye, 0, {}));
    }
    if (ends_at_ && now >= *ends_at_) return true;
    if (!said_bye_) return false;
    for (std::size_t host = 0; host < gone_.size(); ++host)
      if (!gone_[host] && !bye_[host]) return false;
    return true;
  }

  void forget(const Channel& channel) {
    for (const auto& places : channel.messages)
      for (const auto& message : places)
        if (message.data != nullptr) spaces_.release(message.data, message.bytes);
    std::erase_if(proxies_, [&](const Proxy& proxy) {
      if (proxy.channel != channel.id) return false;
      spaces_.release(proxy.memory, proxy.bytes);
      return true;
    });
    drop_asked([&](const Asked& asked) { return asked.channel == &channel; });
    channel.world->visit_children([&](Child& child) { let_go(*spaces_.at<Board>(child.board)); });
    let_go(channel.world->shared());
  }
  static void let_go(Board& board) { board.bridge_space.store(Ref::kNowhere, std::memory_order_release); }
  void drop_everything() {
    outbox_.close();
    while (const auto note = outbox_.pop())
      if (note->kind == Note::Kind::parcel) finish(*spaces_.at<Parcel>(note->data), true);
    links_.reset();
    for (const auto& [id, channel] : channels_) forget(*channel);
    channels_.clear();
  }

  std::unique_ptr<Links> links_;
  const Spaces spaces_;
  Outbox& outbox_;
  const int own_;
  Buffers buffers_;
  std::map<std::uint64_t, std::unique_ptr<Channel>> channels_;
  Channel* root_;
  std::vector<Incoming> incoming_;
  std::vector<Clock::time_point> heard_;
  std::vector<bool> gone_, bye_;
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t last_id_ = 0;
  std::vector<Proxy> proxies_;
  Clock::time_point last_beat_ = Clock::now();
  bool said_bye_ = false;
  std::optional<Clock::time_point> ends_at_;
  const int wake_;
  std::atomic<bool> stop_{false}, watching_{true};
};

// The bridges of this process, which end with it.
struct Bridges {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Bridge*> running;

  static Bridges& instance() {
    static auto* all = new Bridges;
    return *all;
  }
  void run(std::unique_ptr<Bridge> bridge) {
    {
      const std::lock_guard lock(mutex);
      static const int registered = std::atexit([] { instance().stop(); });
      static_cast<void>(registered);
      running.push_back(bridge.get());
    }
    std::thread([this, owned = std::move(bridge)]() mutable {
      owned->run();
      const std::lock_guard lock(mutex);
      std::erase(running, owned.get());
      owned.reset();
      changed.notify_all();
    }).detach();
  }
  void stop() {
    constexpr std::chrono::seconds kPatience = 2 * kExit;  // and for what flush() takes
    std::unique_lock lock(mutex);
    for (Bridge* bridge : running) bridge->stop();
    changed.wait_for(lock, kPatience, [&] { return running.empty(); });
  }
};

}  // namespace

void start_bridge(std::shared_ptr<World> world, std::unique_ptr<Links> links, int hosts) {
  Bridges::instance().run(std::make_unique<Bridge>(std::move(world), std::move(links), hosts));
}

}  // namespace moeyard::comm
