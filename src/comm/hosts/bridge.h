// Moeyard. SPDX-License-Identifier: Apache-2.0
//
// Ranks of other hosts, as the ranks of this one see them. Every host has a board of its own for a communicator, with a
// seat for every rank; a thread in one process of each host, the bridge, tells the bridges of the others what its ranks
// do, and does on its board what theirs do. So ranks of other hosts come to meetings, are missed, refuse and depart like
// any other, and each host judges a meeting by itself from the same postings.
//
// Data goes from a rank to its bridge in parcels, and from there to the bridge of the other host, which copies it
// straight to its place. What a rank has put arrives before it comes to its next meeting, as both go the same way.
#pragma once
#include <memory>

#include "comm/host/world.h"
#include "comm/hosts/links.h"

namespace moeyard::comm {

// Serves the communicator and all that is made of it, until no rank of this host has a handle any more.
void start_bridge(std::shared_ptr<World> world, std::unique_ptr<Links> links, int hosts);

}  // namespace moeyard::comm
