// Moeyard. SPDX-License-Identifier: Apache-2.0
#include "atb/linear_parallel_graph.h"

#include "atb/failure.h"

// Without atb/kind.h, with which a file can create operations of its own Kinds only.
namespace moeyard::atb_layer {
namespace {

using Param = atb::infer::LinearParallelParam;

template <class Collective>
Collective collective_of(const Param& p) {
  Collective made;
  made.rank = p.rank;
  made.rankSize = p.rankSize;
  made.rankRoot = p.rankRoot;
  made.hcclComm = p.hcclComm;
  made.commMode = p.commMode;
  made.rankTableFile = p.rankTableFile;
  made.commDomain = p.commDomain;
  return made;
}

// [ranks, rows, k] as [ranks * rows, k]
void join_ranks(const atb::Dims& from, atb::Dims& to) {
  to.dimNum = from.dimNum - 1;
  to.dims[0] = from.dims[0] * from.dims[1];
  for (std::uint64_t i = 1; i < to.dimNum; ++i) to.dims[i] = from.dims[i + 1];
}

// Puts the steps one behind the other; the tensors between them are internal ones.
class Chain {
 public:
  explicit Chain(const Param& p) {
    graph_.inTensorNum = p.hasResidual ? 3 : 2;
    graph_.outTensorNum = 1;
    next_internal_ = graph_.inTensorNum + 1;
  }
  ~Chain() {
    for (const atb::Node& node : graph_.nodes) atb::DestroyOperation(node.operation);
  }

  // A step that takes what the one before has made, or x; then `other`, if it is an input of the graph.
  template <class StepParam>
  atb::Status add(const StepParam& param, std::uint32_t other = kNone,
                  const atb::ReshapeFunc& reshape = nullptr) {
    atb::Node node;
    MOEYARD_ATB_TRY(atb::CreateOperation(param, &node.operation));
    node.inTensorIds.push_back(last_);
    if (other != kNone) node.inTensorIds.push_back(other);
    if (reshape) node.inTensorReshapeFuncs.push_back(reshape);
    last_ = next_internal_++;
    node.outTensorIds.push_back(last_);
    graph_.nodes.push_back(std::move(node));
    return atb::NO_ERROR;
  }
  atb::Status build(atb::Operation** made) {
    graph_.nodes.back().outTensorIds[0] = graph_.inTensorNum;
    graph_.internalTensorNum = static_cast<std::uint32_t>(graph_.nodes.size()) - 1;
    MOEYARD_ATB_TRY(atb::CreateOperation(graph_, made));
    graph_.nodes.clear();  // the graph's now
    return atb::NO_ERROR;
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  atb::GraphParam graph_;
  std::uint32_t last_ = 0, next_internal_;
};

}  // namespace

atb::Status make_parallel_linear(const Param& p, atb::Operation** made) {
  atb::infer::LinearParam product;
  product.transposeB = p.transWeight;
  product.hasBias = false;
  atb::infer::ElewiseParam sum;
  sum.elewiseType = atb::infer::ElewiseParam::ELEWISE_ADD;
  Chain chain(p);
  const bool gathers = p.type == Param::ALL_GATHER_LINEAR;
  if (gathers) MOEYARD_ATB_TRY(chain.add(collective_of<atb::infer::AllGatherParam>(p)));
  MOEYARD_ATB_TRY(chain.add(product, 1, gathers ? atb::ReshapeFunc(join_ranks) : nullptr));
  if (p.type == Param::LINEAR_ALL_REDUCE)
    MOEYARD_ATB_TRY(chain.add(collective_of<atb::infer::AllReduceParam>(p)));
  if (p.type == Param::LINEAR_REDUCE_SCATTER)
    MOEYARD_ATB_TRY(chain.add(collective_of<atb::infer::ReduceScatterParam>(p)));
  if (p.hasResidual) MOEYARD_ATB_TRY(chain.add(sum, 2));
  return chain.build(made);
}

}  // namespace moeyard::atb_layer
