# Moeyard. SPDX-License-Identifier: Apache-2.0
"""An expert placement in the manner of EPLB: hot experts get replicas, ranks get like shares of the load."""


def replicate(load, instances, max_replicas):
    """How many instances each expert has. The next goes to the expert with the largest load per instance."""
    count = [1] * len(load)
    for _ in range(instances - len(load)):
        open_experts = [e for e in range(len(load)) if count[e] < max_replicas]
        count[max(open_experts, key=lambda e: (load[e] / count[e], -e))] += 1
    return count


def place(load, instances, ranks):
    """Returns phy2log, the logical expert of each instance; p lies on rank p // (instances / ranks)."""
    count = replicate(load, instances, max_replicas=ranks)
    pieces = sorted(
        ((load[e] / count[e], e) for e in range(len(load)) for _ in range(count[e])), reverse=True
    )
    experts_of_rank = [[] for _ in range(ranks)]
    load_of_rank = [0.0] * ranks
    for share, expert in pieces:  # the largest piece first, to the least loaded rank that has room
        room = [r for r in range(ranks) if len(experts_of_rank[r]) < instances // ranks]
        rank = min(room, key=lambda r: (expert in experts_of_rank[r], load_of_rank[r], r))
        experts_of_rank[rank].append(expert)
        load_of_rank[rank] += share
    return [expert for experts in experts_of_rank for expert in experts]
