// Warp operations: lanes deposit their operands, the last to arrive computes for all.
#pragma once
#include "context.h"

namespace emu {

// Meets the other lanes of `mask`; `run` finds each lane's `mine` in slot[lane] (nullptr: lane did
// not take part).
void collective(const char* name, LaneSet mask, void* mine, Run run, void* pc,
                Meet how = Meet::MASK);
// The same with every lane of a full warp: a missing one is an error of the kernel.
void collective_of_all(const char* name, void* mine, Run run, void* pc);

// Runs groups that can be completed now because a lane left the warp.
void lane_left(Warp& warp);
// Runs partial groups of a team in which nothing else can run; true if one ran.
bool run_partial(Team& team);

// Orders memory among the lanes of a group: each knows what all did so far.
void order_lanes(Group& group);

}  // namespace emu
