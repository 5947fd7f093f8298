// The state of the core that runs now, shared by the model's own source files; kernel text never
// sees it.
#pragma once

#include <setjmp.h>

#include <deque>
#include <map>
#include <vector>

#include "abi.h"
#include "bang/copy.h"

namespace emu {

struct Clock {
    uint32_t at[PIPES] = {};
    void join(const Clock& other) {
        for (int p = 0; p < PIPES; ++p)
            if (other.at[p] > at[p]) at[p] = other.at[p];
    }
};

struct Pending {
    uint32_t sequence;
    Clock needs;
    bool takes;  // a copy of what other pipelines may have made
    Effect effect;
};

struct Core {
    uint32_t issued[PIPES] = {};
    uint32_t ordinary[PIPES] = {};  // the last vector call or plain copy of the pipeline
    Clock clock[PIPES];             // what is over before the next instruction of a pipeline
    Clock last[PIPES];              // what the last one waited for
    std::deque<Pending> pending[PIPES];
    uint32_t task = 0;
    int checks = 0;
    EmuReport* report = nullptr;
    const EmuTensor* tensors = nullptr;
    int tensor_count = 0;
    bool running = false;       // the text of a kernel
    const void* own = nullptr;  // where it stands, while it reads or writes memory itself
    bool took_unwritten = false;  // the task read itself what nothing wrote: its writes may be that
    jmp_buf leave;              // ends the launch from there
};
extern Core core;

struct Stop {};

// core.cpp
uint32_t module_offset(const void* place);
void perform(Pipe pipe, uint32_t sequence);
void perform_all(const Clock& until);
void task_begins(uint32_t number);
void task_ends();
const EmuTensor* tensor_at(const void* begin, uint64_t bytes);
void say(char* out, size_t room, const char* format, ...) __attribute__((format(printf, 3, 4)));

// memory.cpp
void memories_begin();        // of a launch: sizes are checked
void forget_contents();       // of a task
const char* holder(const void* address);
uint64_t inside(const void* address);
void check_bounds(const char* name, int line, Space space, const void* address, uint64_t bytes,
                  bool write);

// shadow.cpp: who touched which bytes last
struct Touch {
    const char* name;
    int line;
    Pipe pipe;
    uint32_t sequence, task;
    bool adds;
    const void* own;  // where it stands, if it is no call
};
void shadow_touch(const Touch& touch, const Clock& needs, Space space, const void* begin,
                  uint64_t bytes, bool write);
void shadow_forget(bool global);

}  // namespace emu
