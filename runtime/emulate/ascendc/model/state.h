// The state of the core that runs now, shared by the model's own source files; kernel text never
// sees it.
#pragma once

#include <map>
#include <vector>

#include "abi.h"
#include "ascendc/core.h"

namespace emu {

struct Clock {
    uint32_t at[PIPES] = {};
    void join(const Clock& other) {
        for (int p = 0; p < PIPES; ++p)
            if (other.at[p] > at[p]) at[p] = other.at[p];
    }
};

struct Operation {
    const char* name;
    Deferred* body;
    int line;
    uint32_t block;
    uint32_t sequence;  // counts the operations of its pipe in its block, from 1
    Pipe pipe;
    Atomic atomic;
    Clock needs;
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

struct Core {
    std::vector<Operation> operations{1};  // index 0 stands for "none"
    std::vector<uint32_t> queue[PIPES];
    uint32_t issued[PIPES] = {};
    uint32_t performed[PIPES] = {};
    Clock clock[PIPES];
    Flag flags[PIPES][PIPES][FLAG_IDS];
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
void perform(Pipe pipe, uint32_t sequence);
void drain();
void raise_flag(Pipe from, Pipe to, int id, int line);
void take_down_flag(Pipe from, Pipe to, int id, int line);
void block_begins(uint32_t block);
void block_ends();
const EmuTensor* tensor_at(uint64_t begin, uint64_t bytes);
void say(char* out, size_t room, const char* format, ...) __attribute__((format(printf, 3, 4)));

// pipe.cpp
void buffers_begin();
void buffers_end();

}  // namespace emu
