// What the model's headers need from its core: memories, pipelines, reports.
//
// A core issues instructions to three pipelines, IO (off-chip copies), MOVE (on-chip copies) and
// COMPUTE; each keeps its order. Plain copies take effect where they stand. Vector calls and
// asynchronous copies take effect as late as the text allows: when a synchronisation asks for it,
// when another instruction has to come after it, or at the end. Which instruction is over before
// which is kept as a vector clock a pipeline.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <new>

#include "cores/entries.h"

// What a call does is compiled once, in calls.cpp; a text sees what it takes. So the accesses that
// are counted in a text are its own.
#ifdef EMU_CALLS
#define EMU_BODY(...) __VA_ARGS__
#else
#define EMU_BODY(...) ;
#endif

namespace emu {

enum Pipe : uint8_t { IO, MOVE, COMPUTE, PIPES };
enum Space : uint8_t { GDRAM, LDRAM, NRAM, WRAM, SRAM, SPACES };
constexpr uint8_t POISON = 0xFF;  // what memory holds that nothing wrote: NaN in every float type

const char* space_name(Space space);
const char* pipe_name(Pipe pipe);

// An array of on-chip memory, so that reports can name it. Written by the builder.
struct Named {
    Named(const char* name, Space space, const void* begin, size_t bytes);
};

// Where an address lies: an array of a section, a tensor of the launch, or the core's own stack.
Space space_of(const void* address);

// What an instruction does to memory, kept until it is done. There are hundreds of them, which
// std::function would compile twice as long.
class Effect {
  public:
    template <class F>
    Effect(F effect) : call_([](void* held) { (*static_cast<F*>(held))(); }) {
        static_assert(sizeof(F) <= sizeof held_ && __has_trivial_destructor(F), "numbers only");
        new (held_) F(effect);
    }
    void operator()() { call_(held_); }

  private:
    alignas(16) char held_[160];
    void (*call_)(void*);
};

// Vector call, plain copy (ordered with vector calls and plain copies on either side), or a copy that
// waits for nothing but its pipeline.
enum Mode : uint8_t { VECTOR, PLAIN, ASYNC };

// One instruction: collects what it touches, checks that against what came before, then issues it.
class Instruction {
  public:
    Instruction(const char* name, Pipe pipe, Line line, Mode mode = VECTOR);
    // Ends the launch unless `bytes` from `address` on lie in `space`, inside one array or tensor.
    void read(Space space, const void* address, uint64_t bytes, const char* what);
    void write(Space space, const void* address, uint64_t bytes, const char* what);
    void add(const void* address, uint64_t bytes, const char* what);  // writes in one step each
    // From here on other instructions come after it, as its pipeline says. What it does to memory is
    // done now, for a plain one, or when something has to come after it. `takes`: a copy of what
    // other pipelines may have made.
    void issue(const Effect& effect, bool takes = false);

    const char* name;
    Pipe pipe;
    int line;
    Mode mode;

  private:
    void touch(Space space, const void* address, uint64_t bytes, const char* what, bool write);
    bool adds_ = false;
    uint32_t sequence_;
    uint32_t needs_[PIPES];
};

// ---- values

// Whether nothing gave the bytes a value: they still hold what memory holds at first.
bool unwritten(const void* address, uint64_t bytes);
void mark_written(const void* address, uint64_t bytes, bool unspecified);
// Ends the launch when a value that nothing wrote leaves the core, and that is checked.
void leaves(const void* from, uint64_t bytes, const char* name, int line);

template <class T>
T load(const T* at, bool& bad) {
    if (unwritten(at, sizeof(T))) bad = true;
    return *at;
}
template <class T>
void store(T* at, T value, bool bad) {
    if (bad)
        memset(static_cast<void*>(at), POISON, sizeof(T));
    else
        *at = value;
    mark_written(at, sizeof(T), bad);
}

// ---- copies and synchronisation, see copy.h

struct Copy {
    char* to;
    const char* from;
    uint64_t bytes;
    uint64_t to_stride[2], from_stride[2];
    uint32_t more[2];  // segments but the first, inner and outer
    bool leaves;  // to off-chip memory
    const char* name;
    int line;
};
void run(const Copy& copy);
void synchronise(const bool producers[PIPES], const bool consumers[PIPES]);

// ---- the launch

struct Task {
    unsigned x, y, z;
    unsigned dim_x, dim_y, dim_z;
};
extern Task task;
void check_overlap(const char* name, int line, const void* dst, uint64_t dst_bytes, const void* src,
                   uint64_t src_bytes, bool same_allowed, const char* what);

struct Module {
    const char* file;
    int arch;
    uint64_t bytes[SPACES];  // of each memory that arrays may take
};
extern const Module module;

}  // namespace emu
