// The state of the core that runs now, shared by the model's own source files; kernel text never
// sees it.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "abi.h"
#include "ascendc/core.h"

namespace emu {

// A pipe of one of the subcores.
constexpr int UNITS = SUBCORES * PIPES;
inline int unit_of(int subcore, Pipe pipe) { return subcore * PIPES + pipe; }
inline int unit(Pipe pipe) { return unit_of(running, pipe); }

struct Clock {
    uint32_t at[UNITS] = {};
    void join(const Clock& other) {
        for (int p = 0; p < UNITS; ++p)
            if (other.at[p] > at[p]) at[p] = other.at[p];
    }
};

struct Operation {
    const char* name;
    Deferred* body;
    int line;
    uint32_t block;
    uint32_t sequence;  // counts the operations of its unit in its block, from 1
    Pipe pipe;
    uint8_t subcore;
    bool small;  // the next operation of its pipe may start before it ends
    Atomic atomic;
    Clock needs;
    int unit() const { return unit_of(subcore, pipe); }
};

enum Owner : uint8_t { UNOWNED, OWNED_BY_QUEUE, OWNED_BY_TEXT };

struct Flag {
    bool set = false;
    Owner owner = UNOWNED;
    int line = 0;
    Clock clock;
};

// What an Origin stands for: a read of bytes of `from` that nothing wrote, or, without `from`,
// padding.
struct Source {
    const char* name;
    int line;
    const char* from;
    uint64_t byte;
};

constexpr int FLAG_IDS = 8;

// A flag between cores: what each CrossCoreSetFlag knew, until a wait takes it.
struct CrossFlag {
    std::deque<Clock> arrived[SUBCORES];  // set by that core, not by all that have to
    std::deque<Clock> raised;  // as many waits may pass
    int line = 0;  // of the last set
};
constexpr int CROSS_IDS = 16;

struct Core {
    std::vector<Operation> operations{1};  // index 0 stands for "none"
    std::vector<uint32_t> queue[UNITS];
    uint32_t issued[UNITS] = {};
    uint32_t performed[UNITS] = {};
    Clock clock[UNITS];
    Flag flags[SUBCORES][PIPES][PIPES][FLAG_IDS];
    CrossFlag cross[SUBCORES][CROSS_IDS];  // as the subcore that waits sees them
    int checks = 0;
    EmuReport* report = nullptr;
    const EmuTensor* tensors = nullptr;
    int tensor_count = 0;
    std::vector<Source> origins{1};  // by Origin
};
extern Core core;

struct Stop {};

// shadow.cpp: who touched which bytes last
void shadow_touch(uint32_t op, Space space, uint64_t begin, uint64_t end, bool write);
void shadow_forget(bool global);

// core.cpp
void perform(int unit, uint32_t sequence);
void drain();
inline Flag& flag_of(Pipe from, Pipe to, int id) { return core.flags[running][from][to][id]; }
void raise_flag(Pipe from, Pipe to, int id, int line);
void take_down_flag(Pipe from, Pipe to, int id, int line);
void block_begins(uint32_t block);
void subcore_begins(int subcore);
void subcore_ends();
void block_ends();
const EmuTensor* tensor_at(uint64_t begin, uint64_t bytes);
void say(char* out, size_t room, const char* format, ...) __attribute__((format(printf, 3, 4)));

// launch.cpp
void let_others_run(int waits_for, int line);

// pipe.cpp
void buffers_begin();
void buffers_end();

}  // namespace emu
