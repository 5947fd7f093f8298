// How a launch ends early: fill in the report, leave the fiber for good.
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "cells.h"
#include "fiber.h"
#include "stopped.h"

namespace emu {

std::string format(const char* form, ...) {
    char text[2048];
    va_list args;
    va_start(args, form);
    vsnprintf(text, sizeof text, form, args);
    va_end(args);
    return text;
}

std::string place(const void* pc) { return format("<pc:%x>", module_offset(pc)); }

static std::string block_name(const uint32_t (&index)[3]) {
    if (index[2]) return format("block (%u, %u, %u)", index[0], index[1], index[2]);
    return format("block (%u, %u)", index[0], index[1]);
}

static std::string thread_name(uint32_t linear) {
    const uint32_t* b = launch.block;
    if (b[1] * b[2] == 1) return format("thread %u", linear);
    return format("thread (%u, %u, %u)", linear % b[0], linear / b[0] % b[1], linear / (b[0] * b[1]));
}

std::string who(const Fiber* f) {
    return thread_name(f->linear) + " of " + block_name(f->block->index);
}

std::string who(uint32_t team, uint32_t thread) {
    uint32_t at[3];
    block_index(team - 1, thread / launch.block_threads, at);
    return thread_name(thread % launch.block_threads) + " of " + block_name(at);
}

void fail(EmuKind kind, const std::string& text, const Fiber* a, const char* array,
          const Fiber* b) {
    Fiber* self = me();
    Worker& worker = *(self ? self : a)->team->worker;
    EmuReport& r = worker.report;
    if (!worker.failed) {
        r.kind = kind;
        r.thread_a = a ? int(a->linear) : -1;
        r.thread_b = b ? int(b->linear) : -1;
        snprintf(r.array, sizeof r.array, "%s", array);
        snprintf(r.text, sizeof r.text, "%s", text.c_str());
        worker.failed = true;
    }
    if (!self) throw Stopped();
    emu_swap(&self->sp, worker.sp);
    __builtin_unreachable();
}

}  // namespace emu
