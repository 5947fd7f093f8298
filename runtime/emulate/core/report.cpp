// How a launch ends early: fill in the report, leave the fiber for good.
#include <unwind.h>

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

namespace {

struct Trail {
    const void* from;
    bool found;
    std::string text;
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* data) {
    auto& trail = *static_cast<Trail*>(data);
    const auto* pc = reinterpret_cast<const void*>(_Unwind_GetIP(context));
    if (trail.found) trail.text += format("+%x", module_offset(pc));
    trail.found |= pc == trail.from;
    return trail.text.size() < 200 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

std::string place(const void* pc) {
    Trail trail{pc, false, format("<pc:%x", module_offset(pc))};
    if (me()) _Unwind_Backtrace(step, &trail);
    return trail.text + ">";
}

static std::string block_name(const uint32_t (&index)[3]) {
    if (index[2]) return format("block (%u, %u, %u)", index[0], index[1], index[2]);
    return format("block (%u, %u)", index[0], index[1]);
}

static std::string thread_name(uint32_t linear) {
    const uint32_t* b = launch.block;
    if (b[1] * b[2] == 1) return format("thread %u", linear);
    return format("thread (%u, %u, %u)", linear % b[0], linear / b[0] % b[1], linear / (b[0] * b[1]));
}

// Slots as models/units.h deals them out.
static const char* unit_name(uint32_t slot) {
    return slot < 64 ? "a bulk copy" : slot < 96 ? "a bulk store" : "a wgmma";
}

std::string who(const Fiber* f) {
    return (f->role ? f->role : "") + thread_name(f->linear) + " of " + block_name(f->block->index);
}

std::string shown(LaneSet lanes) {
    const auto high = static_cast<unsigned long long>(lanes >> 64), low = static_cast<unsigned long long>(lanes);
    return high ? format("0x%llx%016llx", high, low) : format("%#llx", low);
}

const Fiber* thread_of(const Team& team, uint32_t actor) {
    return team.fibers + (actor < team.threads ? actor : team.issuer[actor - team.threads]);
}

std::string who(uint32_t team, uint32_t thread) {
    uint32_t at[3];
    const uint32_t threads = launch.block_threads * launch.team_blocks;
    if (thread >= threads) {
        block_index(team - 1, (thread - threads) / UNIT_SLOTS, at);
        return unit_name((thread - threads) % UNIT_SLOTS) + (" of " + block_name(at));
    }
    block_index(team - 1, thread / launch.block_threads, at);
    return thread_name(thread % launch.block_threads) + " of " + block_name(at);
}

void fill(EmuReport& r, EmuKind kind, const std::string& text, const Fiber* a, const char* array,
          const Fiber* b) {
    r.kind = kind;
    r.thread_a = a ? int(a->linear) : -1;
    r.thread_b = b ? int(b->linear) : -1;
    snprintf(r.array, sizeof r.array, "%s", array);
    snprintf(r.text, sizeof r.text, "%s", text.c_str());
}

void fail(EmuKind kind, const std::string& text, const Fiber* a, const char* array,
          const Fiber* b) {
    Fiber* self = me();
    Worker& worker = *(self ? self : a)->team->worker;
    // What follows from a value that nothing wrote is not the news.
    if (worker.unwritten.kind && kind != EMU_RACE)
        worker.report = worker.unwritten;
    else
        fill(worker.report, kind, text, a, array, b);
    worker.failed = true;
    if (!self) throw Stopped();
    emu_swap(&self->sp, worker.sp);
    __builtin_unreachable();
}

}  // namespace emu
