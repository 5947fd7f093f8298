// Issue and performance of instructions, copies, reports.
#include <dlfcn.h>
#include <stdarg.h>

#include "state.h"

namespace emu {

Core core;
Task task;

static const char* const PIPE_NAMES[PIPES] = {"IO", "Move", "Compute"};
static const char* const SPACE_NAMES[SPACES] = {"GDRAM", "LDRAM", "NRAM", "WRAM", "SRAM"};
const char* pipe_name(Pipe pipe) { return PIPE_NAMES[pipe]; }
const char* space_name(Space space) { return SPACE_NAMES[space]; }

// ---- reports ----

void say(char* out, size_t room, const char* format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(out, room, format, list);
    va_end(list);
}

void stop(Kind kind, int line, const char* format, ...) {
    EmuReport& r = *core.report;
    if (r.kind == NONE) {
        r.kind = kind;
        r.line_a = line;
        r.thread_a = static_cast<int32_t>(core.task);
        va_list list;
        va_start(list, format);
        int used = vsnprintf(r.text, sizeof r.text, format, list);
        va_end(list);
        const auto more = [&](const char* words, unsigned number) {
            if (used > 0 && static_cast<size_t>(used) < sizeof r.text)
                used += snprintf(r.text + used, sizeof r.text - used, words, number);
        };
        if (core.own && !line) more(" (<pc:%x>)", module_offset(core.own));
        if (task.dim_x * task.dim_y * task.dim_z > 1) more(" (task %u)", core.task);
    }
    throw Stop{};
}

const EmuTensor* tensor_at(const void* begin, uint64_t bytes) {
    const char* from = static_cast<const char*>(begin);
    for (int i = 0; i < core.tensor_count; ++i) {
        const EmuTensor& t = core.tensors[i];
        const char* base = static_cast<const char*>(t.base);
        if (from < base || from > base + t.bytes) continue;
        if (bytes <= static_cast<uint64_t>(base + t.bytes - from)) return &t;
    }
    return nullptr;
}

uint32_t module_offset(const void* place) {
    Dl_info info;
    if (!dladdr(place, &info)) return 0;
    return static_cast<uint32_t>(static_cast<const char*>(place) -
                                 static_cast<const char*>(info.dli_fbase));
}

// ---- instructions ----

Instruction::Instruction(const char* name, Pipe pipe, Line at, Mode mode)
    : name(name), pipe(pipe), line(at.at), mode(mode) {
    sequence_ = ++core.issued[pipe];
    Clock needs = core.clock[pipe];
    needs.at[pipe] = sequence_ - 1;
    if (mode == PLAIN)
        for (int p = 0; p < PIPES; ++p)
            if (core.ordinary[p] > needs.at[p]) needs.at[p] = core.ordinary[p];
    for (int p = 0; p < PIPES; ++p) needs_[p] = needs.at[p];
    core.last[pipe] = needs;
    if (mode == PLAIN) perform_all(needs);
}

void Instruction::touch(Space space, const void* address, uint64_t bytes, const char* what,
                        bool write) {
    if (!bytes) return;
    const Space found = space_of(address);
    const bool off = space == LDRAM && found == LDRAM;
    if (found != space && !off)
        stop(MISUSE, line, "%s: %s lies in %s, but has to lie in %s", name, what,
             space_name(found), space_name(space));
    if (off) return;
    check_bounds(name, line, space, address, bytes, write);
    Clock needs;
    for (int p = 0; p < PIPES; ++p) needs.at[p] = needs_[p];
    shadow_touch({name, line, pipe, sequence_, core.task, adds_, core.own}, needs, space, address,
                 bytes, write);
}

void Instruction::read(Space space, const void* address, uint64_t bytes, const char* what) {
    touch(space, address, bytes, what, false);
}
void Instruction::write(Space space, const void* address, uint64_t bytes, const char* what) {
    touch(space, address, bytes, what, true);
}

void Instruction::add(const void* address, uint64_t bytes, const char* what) {
    adds_ = true;
    touch(GDRAM, address, bytes, what, true);
    adds_ = false;
}

void Instruction::issue(const Effect& effect, bool takes) {
    Clock needs;
    for (int p = 0; p < PIPES; ++p) needs.at[p] = needs_[p];
    core.pending[pipe].push_back({sequence_, needs, takes, effect});
    if (mode != ASYNC) core.ordinary[pipe] = sequence_;
    if (mode != PLAIN) return;
    perform(pipe, sequence_);
    needs.at[pipe] = sequence_;
    for (Clock& clock : core.clock) clock.join(needs);
}

void perform(Pipe pipe, uint32_t sequence) {
    while (!core.pending[pipe].empty() && core.pending[pipe].front().sequence <= sequence) {
        Pending next = core.pending[pipe].front();
        core.pending[pipe].pop_front();
        for (int p = 0; p < PIPES; ++p)
            if (p != pipe) perform(static_cast<Pipe>(p), next.needs.at[p]);
        next.effect();
    }
}

// What nothing orders happens so that it is missed: a copy takes results before they are there,
// and what is computed from a copy is computed before that.
void perform_all(const Clock& until) {
    for (const Pipe pipe : {IO, MOVE}) {
        const auto& pending = core.pending[pipe];
        while (!pending.empty() && pending.front().takes &&
               pending.front().sequence <= until.at[pipe])
            perform(pipe, pending.front().sequence);
    }
    for (const Pipe pipe : {COMPUTE, MOVE, IO}) perform(pipe, until.at[pipe]);
}

void synchronise(const bool producers[PIPES], const bool consumers[PIPES]) {
    Clock done;
    for (int p = 0; p < PIPES; ++p)
        if (producers[p]) {
            done.join(core.last[p]);
            if (core.issued[p] > done.at[p]) done.at[p] = core.issued[p];
        }
    for (int p = 0; p < PIPES; ++p)
        if (consumers[p]) core.clock[p].join(done);
    perform_all(done);
}

void check_overlap(const char* name, int line, const void* dst, uint64_t dst_bytes,
                   const void* src, uint64_t src_bytes, bool same_allowed, const char* what) {
    const char *d = static_cast<const char*>(dst), *s = static_cast<const char*>(src);
    if (d >= s + src_bytes || s >= d + dst_bytes || same_allowed) return;
    stop(MISUSE, line, "%s: the destination lies on %s (%s), which this call does not allow", name,
         what, holder(src));
}

// ---- copies ----

void copy(const char* name, Line line, bool async, void* dst, const void* src, uint64_t size,
          mluMemcpyDirection_t direction, const Segments& segments) {
    const Way way = way_of(direction);
    needs_count(name, line.at, size, "size");
    if (way.from == SRAM || way.to == SRAM)
        stop(UNSUPPORTED, line.at, "%s from or to SRAM is not modelled", name);
    const bool strided = segments.dimensions > 1;
    for (int i = 0; i < 2; ++i)
        if (segments.more[i] > 65535)
            stop(MISUSE, line.at, "%s: %u segments more than one, but 65535 are the most", name,
                 segments.more[i]);
    if (strided && segments.more[0] && segments.to_stride[0] < static_cast<int64_t>(size))
        stop(MISUSE, line.at,
             "%s: dst_stride is %lld bytes, less than the %llu of a segment", name,
             static_cast<long long>(segments.to_stride[0]), static_cast<unsigned long long>(size));
    for (const Space space : {way.from, way.to}) {
        if (space != WRAM) continue;
        const void* at = space == way.to ? dst : src;
        if (reinterpret_cast<uintptr_t>(at) % 8)
            stop(MISUSE, line.at, "%s: an address in WRAM has to be a multiple of 8 bytes", name);
        if (!strided && size % 16)
            stop(MISUSE, line.at, "%s: %llu bytes from or to WRAM, but it takes multiples of 16",
                 name, static_cast<unsigned long long>(size));
        const int64_t stride = space == way.to ? segments.to_stride[0] : segments.from_stride[0];
        if (strided && stride % 8)
            stop(MISUSE, line.at, "%s: a stride in WRAM has to be a multiple of 8 bytes", name);
    }
    const bool inside_nram = way.from == NRAM && way.to == NRAM && !strided;
    const Pipe pipe = inside_nram ? COMPUTE : off_chip(way.from) || off_chip(way.to) ? IO : MOVE;
    Instruction instruction(name, pipe, line, async ? ASYNC : PLAIN);
    Copy copy{static_cast<char*>(dst), static_cast<const char*>(src), size, {}, {}, {},
              way.to == GDRAM, name, line.at};
    for (int i = 0; i < 2; ++i) {
        copy.to_stride[i] = static_cast<uint64_t>(segments.to_stride[i]);
        copy.from_stride[i] = static_cast<uint64_t>(segments.from_stride[i]);
        copy.more[i] = segments.more[i];
    }
    for (uint32_t j = 0; j <= copy.more[1]; ++j)
        for (uint32_t i = 0; i <= copy.more[0]; ++i) {
            const char* from = copy.from + i * copy.from_stride[0] + j * copy.from_stride[1];
            char* to = copy.to + i * copy.to_stride[0] + j * copy.to_stride[1];
            instruction.read(way.from, from, size, "the source");
            instruction.write(way.to, to, size, "the destination");
        }
    instruction.issue([copy] { run(copy); }, !off_chip(way.from));
}

void run(const Copy& copy) {
    for (uint32_t j = 0; j <= copy.more[1]; ++j)
        for (uint32_t i = 0; i <= copy.more[0]; ++i) {
            const char* from = copy.from + i * copy.from_stride[0] + j * copy.from_stride[1];
            char* to = copy.to + i * copy.to_stride[0] + j * copy.to_stride[1];
            if (copy.leaves) leaves(from, copy.bytes, copy.name, copy.line);
            for (uint64_t b = 0; b < copy.bytes; ++b) {
                const bool bad = unwritten(from + b, 1);
                to[b] = from[b];
                mark_written(to + b, 1, bad);
            }
        }
}

// ---- tasks ----

void task_begins(uint32_t number) {
    core.task = number;
    core.took_unwritten = false;
    for (int p = 0; p < PIPES; ++p) {
        core.issued[p] = core.ordinary[p] = 0;
        core.clock[p] = core.last[p] = Clock{};
        core.pending[p].clear();
    }
    forget_contents();
    shadow_forget(false);
}

void task_ends() {
    Clock all;
    for (int p = 0; p < PIPES; ++p) all.at[p] = core.issued[p];
    perform_all(all);
}

}  // namespace emu
