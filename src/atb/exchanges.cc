// Moeyard. SPDX-License-Identifier: Apache-2.0
// Operations in which ranks have parts of their own: sends, receives, and exchanges of pieces of different sizes.
#include <algorithm>

#include "atb/collective.h"

namespace moeyard::atb_layer {
namespace {

// Pieces must lie inside of `elements`.
atb::Status read_pieces(const char* name, const char* counts_name, const char* places_name,
                        const std::int64_t* counts, const std::int64_t* places, int ranks,
                        std::int64_t elements, std::vector<std::uint64_t>& kept_counts,
                        std::vector<std::uint64_t>& kept_places) {
  for (int i = 0; i < ranks; ++i)
    if (counts[i] < 0 || places[i] < 0 || counts[i] > elements || places[i] > elements - counts[i])
      return fail(atb::ERROR_INVALID_PARAM,
                  "%s: %s[%d] is %lld and %s[%d] %lld but the piece must lie inside of %lld elements", name,
                  counts_name, i, static_cast<long long>(counts[i]), places_name, i,
                  static_cast<long long>(places[i]), static_cast<long long>(elements));
  kept_counts.assign(counts, counts + ranks);
  kept_places.assign(places, places + ranks);
  return atb::NO_ERROR;
}

std::int64_t elements_of(const atb::Tensor& tensor) {
  return static_cast<std::int64_t>(atb::Utils::GetTensorNumel(tensor));
}

HcclResult exchange(const CollectiveCall& call) {
  const Counts& c = call.counts;
  return HcclAlltoAllV(call.x, c.send.data(), c.send_from.data(), call.type, call.y, c.receive.data(),
                       c.receive_at.data(), call.type, call.comm, call.stream);
}

}  // namespace

template <>
struct Kind<atb::infer::AllToAllVParam> : CollectiveKind<atb::infer::AllToAllVParam> {
  using Param = atb::infer::AllToAllVParam;
  static constexpr const char* kName = "AllToAllVOperation";
  static auto fields(const Param& p) {
    return std::tuple_cat(fields_of_ranks(p), std::tie(p.sendCounts, p.sdispls, p.recvCounts, p.rdispls));
  }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(CollectiveKind::check(p));
    for (const auto* values : {&p.sendCounts, &p.sdispls, &p.recvCounts, &p.rdispls}) {
      const bool negative = std::any_of(values->begin(), values->end(), [](auto v) { return v < 0; });
      if (values->size() != static_cast<std::size_t>(p.rankSize) || negative)
        return fail(
            atb::ERROR_INVALID_PARAM,
            "%s: sendCounts, sdispls, recvCounts and rdispls must have a value of at least 0 for each "
            "of the %d ranks, but one of them has %zu%s",
            kName, p.rankSize, values->size(), negative ? " with negative ones" : "");
    }
    return atb::NO_ERROR;
  }
  static atb::Status infer(const Param& p, const Descs&, Descs& outputs) {
    outputs[0].shape.dimNum = 1;
    outputs[0].shape.dims[0] = 0;
    for (std::size_t i = 0; i < p.recvCounts.size(); ++i)
      outputs[0].shape.dims[0] = std::max(outputs[0].shape.dims[0], p.rdispls[i] + p.recvCounts[i]);
    return atb::NO_ERROR;
  }
  static atb::Status read_counts(const Param& p, const atb::VariantPack& pack, Counts& counts) {
    MOEYARD_ATB_TRY(read_pieces(kName, "sendCounts", "sdispls", p.sendCounts.data(), p.sdispls.data(),
                                p.rankSize, elements_of(pack.inTensors.data()[0]), counts.send,
                                counts.send_from));
    return read_pieces(kName, "recvCounts", "rdispls", p.recvCounts.data(), p.rdispls.data(), p.rankSize,
                       elements_of(pack.outTensors.data()[0]), counts.receive, counts.receive_at);
  }
  static HcclResult run(const Param&, const CollectiveCall& call) { return exchange(call); }
};

template <>
struct Kind<atb::infer::AllToAllVV2Param> : CollectiveKind<atb::infer::AllToAllVV2Param> {
  using Param = atb::infer::AllToAllVV2Param;
  static constexpr const char* kName = "AllToAllVV2Operation";
  static Signature signature(const Param&) {
    return {.inputs = 6, .types = "hllllh>h bllllb>b fllllf>f cllllc>c slllls>s illlli>i llllll>l"};
  }
  static atb::Status infer(const Param& p, const Descs& inputs, Descs& outputs) {
    for (std::size_t i = 1; i < 5; ++i)
      if (inputs[i].shape.dimNum != 1 || inputs[i].shape.dims[0] != p.rankSize)
        return fail(atb::ERROR_INVALID_TENSOR_DIM,
                    "%s: inTensors[%zu] is %s but must have one element for each of the %d ranks", kName, i,
                    text_of(inputs[i]).c_str(), p.rankSize);
    outputs[0].shape = inputs[5].shape;
    return atb::NO_ERROR;
  }
  static atb::Status read_counts(const Param& p, const atb::VariantPack& pack, Counts& counts) {
    const std::int64_t* values[5] = {};
    for (std::size_t i = 1; i < 5; ++i) {
      values[i] = static_cast<const std::int64_t*>(pack.inTensors.data()[i].hostData);
      if (values[i] == nullptr)
        return fail(atb::ERROR_INVALID_PARAM,
                    "%s: hostData of inTensors[%zu] is null in Setup but must have the values", kName, i);
    }
    MOEYARD_ATB_TRY(read_pieces(kName, "sendCounts", "sdispls", values[1], values[2], p.rankSize,
                                elements_of(pack.inTensors.data()[0]), counts.send, counts.send_from));
    return read_pieces(kName, "recvCounts", "rdispls", values[3], values[4], p.rankSize,
                       elements_of(pack.outTensors.data()[0]), counts.receive, counts.receive_at);
  }
  static HcclResult run(const Param&, const CollectiveCall& call) { return exchange(call); }
};

template <>
struct Kind<atb::infer::SendParam> : CollectiveKind<atb::infer::SendParam> {
  using Param = atb::infer::SendParam;
  static constexpr const char* kName = "SendOperation";
  static auto fields(const Param& p) { return std::tuple_cat(fields_of_ranks(p), std::tie(p.destRank)); }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(CollectiveKind::check(p));
    if (p.destRank < static_cast<std::uint32_t>(p.rankSize) &&
        p.destRank != static_cast<std::uint32_t>(p.rank))
      return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: destRank is %u but must be another one of the %d ranks", kName,
                p.destRank, p.rankSize);
  }
  static Signature signature(const Param&) { return {.outputs = 0, .types = "h> b> f> c> s> i> l>"}; }
  static atb::Status infer(const Param&, const Descs&, Descs&) { return atb::NO_ERROR; }
  static HcclResult run(const Param& p, const CollectiveCall& call) {
    return HcclSend(call.x, call.elements, call.type, p.destRank, call.comm, call.stream);
  }
};

template <>
struct Kind<atb::infer::RecvParam> : CollectiveKind<atb::infer::RecvParam> {
  using Param = atb::infer::RecvParam;
  static constexpr const char* kName = "RecvOperation";
  static auto fields(const Param& p) { return std::tuple_cat(fields_of_ranks(p), std::tie(p.srcRank)); }
  static atb::Status check(const Param& p) {
    MOEYARD_ATB_TRY(CollectiveKind::check(p));
    if (p.srcRank < static_cast<std::uint32_t>(p.rankSize) && p.srcRank != static_cast<std::uint32_t>(p.rank))
      return atb::NO_ERROR;
    return fail(atb::ERROR_INVALID_PARAM, "%s: srcRank is %u but must be another one of the %d ranks", kName,
                p.srcRank, p.rankSize);
  }
  static Signature signature(const Param&) { return {.types = kTypes, .in_place = true}; }
  static HcclResult run(const Param& p, const CollectiveCall& call) {
    return HcclRecv(call.y, call.elements, call.type, p.srcRank, call.comm, call.stream);
  }
};

template struct Exported<atb::infer::AllToAllVParam, atb::infer::AllToAllVV2Param, atb::infer::SendParam,
                         atb::infer::RecvParam>;

}  // namespace moeyard::atb_layer
