// Issue and performance of operations, flags, reports.
#include <stdarg.h>
#include <stdio.h>

#include "state.h"

namespace emu {

Core core;
static Launch current_launch;
Launch& launch() { return current_launch; }

static const char* const PIPE_NAMES[PIPES] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
static const char* const SPACE_NAMES[SPACES] = {"global memory", "UB",  "L1", "L0A",
                                                "L0B",           "L0C", "BT"};
static const uint64_t SPACE_BYTES[SPACES] = {0,         UB_BYTES,   512 * 1024, 64 * 1024,
                                             64 * 1024, 128 * 1024, 1024};

const char* pipe_name(Pipe pipe) { return PIPE_NAMES[pipe]; }
const char* space_name(Space space) { return SPACE_NAMES[space]; }

Memory memories[SPACES];

static void forget_contents(Memory& m) {
    memset(m.data, 0xFF, m.bytes);
    memset(m.undefined, 0xFF, m.bytes);
    memset(m.written, 0, m.bytes);
}

void provide(Space space) {
    Memory& m = memories[space];
    if (m.data || space == GM) return;
    m.bytes = SPACE_BYTES[space];
    m.data = new uint8_t[m.bytes];
    m.undefined = new uint8_t[m.bytes];
    m.written = new uint8_t[m.bytes];
    m.origin = new uint32_t[m.bytes / BLOCK];
    forget_contents(m);
}

void kernel_type(int type, Line line) {
    launch().kernel_type = type;
    if (type != 0)
        stop(UNSUPPORTED, line.at,
             "only kernels of the vector core (KERNEL_TYPE_AIV_ONLY) are emulated");
}

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
        r.thread_a = static_cast<int32_t>(launch().block);
        va_list list;
        va_start(list, format);
        int used = vsnprintf(r.text, sizeof r.text, format, list);
        va_end(list);
        if (launch().blocks > 1 && used > 0 && static_cast<size_t>(used) < sizeof r.text)
            say(r.text + used, sizeof r.text - used, " (core %u)", launch().block);
    }
    throw Stop{};
}

static const char* holder(Space space, uint64_t address) {
    if (space == GM) {
        const EmuTensor* tensor = tensor_at(address, 1);
        return tensor ? tensor->name : "global memory";
    }
    const Buffer* buffer = buffer_at(space, address);
    return buffer ? buffer->name : space_name(space);
}

static uint64_t inside(Space space, uint64_t address) {
    const Buffer* buffer = buffer_at(space, address);
    return address - (buffer ? buffer->begin : 0);
}

Origin unwritten_origin(Space space, uint64_t address, const char* name, int line) {
    for (size_t i = core.origins.size(); i-- > 1 && i + 8 > core.origins.size();)
        if (core.origins[i].line == line && core.origins[i].name == name && core.origins[i].from)
            return static_cast<Origin>(i);
    core.origins.push_back({name, line, holder(space, address), inside(space, address)});
    return static_cast<Origin>(core.origins.size() - 1);
}

Origin padding_origin(const char* name, int line) {
    const Source& last = core.origins.back();
    if (last.line != line || last.name != name || last.from)
        core.origins.push_back({name, line, nullptr, 0});
    return static_cast<Origin>(core.origins.size() - 1);
}

void uses_unspecified(Origin origin, Space space, uint64_t address, const char* name, int line) {
    if (!(core.checks & CHECK_MEMORY)) return;
    const Source& source = core.origins[origin];
    const char* held = holder(space, address);
    unsigned long long byte = inside(space, address);
    core.report->line_b = source.line;
    if (!source.from) {
        say(core.report->array, sizeof core.report->array, "%s", held);
        stop(MEMORY, line,
             "%s takes byte %llu of %s, which comes from what %s of line %d leaves unspecified",
             name, byte, held, source.name, source.line);
    }
    say(core.report->array, sizeof core.report->array, "%s", source.from);
    if (source.line == line && source.name == name)
        stop(MEMORY, line, "%s reads byte %llu of %s, which nothing wrote", name,
             static_cast<unsigned long long>(source.byte), source.from);
    core.report->line_b = line;
    stop(MEMORY, source.line,
         "%s reads byte %llu of %s, which nothing wrote, and %s of line %d takes what comes of it",
         source.name, static_cast<unsigned long long>(source.byte), source.from, name, line);
}

const EmuTensor* tensor_at(uint64_t begin, uint64_t bytes) {
    for (int i = 0; i < core.tensor_count; ++i) {
        const EmuTensor& t = core.tensors[i];
        uint64_t base = reinterpret_cast<uint64_t>(t.base);
        if (begin >= base && begin + bytes <= base + t.bytes) return &t;
    }
    return nullptr;
}

void check_global(const void* pointer, uint64_t bytes, bool write, const char* name, int line) {
    uint64_t begin = reinterpret_cast<uint64_t>(pointer);
    const EmuTensor* tensor = tensor_at(begin, bytes);
    if (tensor && write && !tensor->writable) {
        say(core.report->array, sizeof core.report->array, "%s", tensor->name);
        stop(MEMORY, line, "%s writes %s, an input", name, tensor->name);
    }
    if (tensor) return;
    for (int i = 0; i < core.tensor_count; ++i) {
        const EmuTensor& t = core.tensors[i];
        uint64_t base = reinterpret_cast<uint64_t>(t.base);
        if (begin + bytes > base && begin < base + t.bytes + 4096 && begin + 4096 > base) {
            say(core.report->array, sizeof core.report->array, "%s", t.name);
            stop(MEMORY, line, "%s %s bytes %lld to %lld of %s, which has %llu", name,
                 write ? "writes" : "reads", static_cast<long long>(begin - base),
                 static_cast<long long>(begin + bytes - base), t.name,
                 static_cast<unsigned long long>(t.bytes));
        }
    }
    stop(MEMORY, line, "%s %s %llu bytes outside every tensor", name, write ? "writes" : "reads",
         static_cast<unsigned long long>(bytes));
}

// ---- operations ----

// What the scalar unit has waited for is over before it issues more; its own accesses need not be.
static void follow_issue(Pipe pipe) {
    uint32_t own = core.clock[pipe].at[S];
    core.clock[pipe].join(core.clock[S]);
    if (pipe != S) core.clock[pipe].at[S] = own;
}

Issue::Issue(const char* name, Pipe pipe, Line at) : name(name), pipe(pipe), line(at.at) {
    follow_issue(pipe);
    op_ = static_cast<uint32_t>(core.operations.size());
    Operation op{};
    op.name = name;
    op.line = line;
    op.block = launch().block;
    op.pipe = pipe;
    op.sequence = ++core.issued[pipe];
    core.operations.push_back(op);
}

void Issue::touch(Space space, uint64_t begin, uint64_t bytes, bool write) {
    if (!bytes) return;
    core.operations[op_].atomic = space == GM && write ? atomic_ : PLAIN;
    if (space == GM) {
        check_global(reinterpret_cast<void*>(begin), bytes, write, name, line);
    } else {
        const Buffer* buffer = buffer_at(space, begin);
        if (!buffer || begin + bytes > buffer->end) {
            const char* holds = buffer ? buffer->name : space_name(space);
            say(core.report->array, sizeof core.report->array, "%s", holds);
            uint64_t base = buffer ? buffer->begin : 0;
            uint64_t room = buffer ? buffer->end - buffer->begin : memory(space).bytes;
            stop(MEMORY, line, "%s %s bytes %llu to %llu of %s, which has %llu", name,
                 write ? "writes" : "reads", static_cast<unsigned long long>(begin - base),
                 static_cast<unsigned long long>(begin - base + bytes), holds,
                 static_cast<unsigned long long>(room));
        }
    }
    shadow_touch(op_, space, begin, begin + bytes, write);
}

void Issue::read(Space space, uint64_t begin, uint64_t bytes) { touch(space, begin, bytes, false); }
void Issue::write(Space space, uint64_t begin, uint64_t bytes) { touch(space, begin, bytes, true); }

void Issue::enqueue(Deferred* body) {
    Operation& op = core.operations[op_];
    op.needs = core.clock[pipe];
    op.body = body;
    core.queue[pipe].push_back(op_);
    // The scalar unit is one thread; the cube unit has no barriers to order itself by.
    if (pipe == S || pipe == M) core.clock[pipe].at[pipe] = op.sequence;
    if (pipe == S) perform(S, op.sequence);
}

void perform(Pipe pipe, uint32_t sequence) {
    while (core.performed[pipe] < sequence) {
        uint32_t index = core.queue[pipe][core.performed[pipe]];
        Clock needs = core.operations[index].needs;
        for (int p = 0; p < PIPES; ++p)
            if (p != pipe) perform(static_cast<Pipe>(p), needs.at[p]);
        Deferred* body = core.operations[index].body;
        core.operations[index].body = nullptr;
        ++core.performed[pipe];
        struct Owned {
            Deferred* body;
            ~Owned() { delete body; }
        } owned{body};
        body->run();
    }
}

// Last consumers first: an operation that nothing orders before them then comes too late.
void drain() {
    static const Pipe order[] = {S, MTE3, FIX, V, M, MTE1, MTE2};
    for (Pipe pipe : order) perform(pipe, core.issued[pipe]);
}

void scalar_waits_for_all(int) {
    for (int p = 0; p < PIPES; ++p)
        for (int q = 0; q < PIPES; ++q) core.clock[p].at[q] = core.issued[q];
    drain();
}

void barrier(Pipe pipe, int line) {
    if (pipe == S) stop(MISUSE, line, "PipeBarrier does not take PIPE_S");
    follow_issue(pipe);
    core.clock[pipe].at[pipe] = core.issued[pipe];
}

void barrier_all(int line) { scalar_waits_for_all(line); }

// ---- flags ----

static void check_id(int id, int line, const char* name, Pipe from, Pipe to) {
    if (id < 0 || id >= FLAG_IDS)
        stop(MISUSE, line, "%s<%s_%s> takes event ids 0 to 7, not %d", name, pipe_name(from),
             pipe_name(to), id);
}

void raise_flag(Pipe from, Pipe to, int id, int line) {
    Flag& flag = core.flags[from][to][id];
    if (flag.set)
        stop(MISUSE, line, "SetFlag<%s_%s>(%d) comes before the WaitFlag for that of line %d",
             pipe_name(from), pipe_name(to), id, flag.line);
    flag.set = true;
    flag.line = line;
    follow_issue(from);
    flag.clock = core.clock[from];
    flag.clock.at[from] = core.issued[from];
}

void take_down_flag(Pipe from, Pipe to, int id, int line) {
    Flag& flag = core.flags[from][to][id];
    if (!flag.set)
        stop(DEADLOCK, line,
             "WaitFlag<%s_%s>(%d) waits for ever: no SetFlag before it is left to wait for",
             pipe_name(from), pipe_name(to), id);
    flag.set = false;
    core.clock[to].join(flag.clock);
    if (to == S)
        for (int p = 0; p < PIPES; ++p) perform(static_cast<Pipe>(p), core.clock[S].at[p]);
}

static void check_owner(Pipe from, Pipe to, int id, int line, const char* name) {
    Flag& flag = core.flags[from][to][id];
    if (flag.owner == OWNED_BY_QUEUE)
        stop(MISUSE, line,
             "%s<%s_%s>(%d): a queue holds this event id (since line %d); take one from "
             "AllocEventID",
             name, pipe_name(from), pipe_name(to), id, flag.line);
    if (id > 5 && flag.owner == UNOWNED)
        stop(MISUSE, line, "%s<%s_%s>(%d): event ids 6 and 7 are reserved", name, pipe_name(from),
             pipe_name(to), id);
}

void set_flag(Pipe from, Pipe to, int id, int line) {
    check_id(id, line, "SetFlag", from, to);
    check_owner(from, to, id, line, "SetFlag");
    raise_flag(from, to, id, line);
}

void wait_flag(Pipe from, Pipe to, int id, int line) {
    check_id(id, line, "WaitFlag", from, to);
    check_owner(from, to, id, line, "WaitFlag");
    take_down_flag(from, to, id, line);
}

int free_event(Pipe from, Pipe to) {
    for (int id = 0; id < FLAG_IDS; ++id)
        if (core.flags[from][to][id].owner == UNOWNED) return id;
    return -1;
}

int take_event(Pipe from, Pipe to, int line) {
    int id = free_event(from, to);
    if (id < 0)
        stop(MISUSE, line, "all %d event ids of %s_%s are in use", FLAG_IDS, pipe_name(from),
             pipe_name(to));
    Flag& flag = core.flags[from][to][id];
    if (flag.set)
        stop(
            MISUSE, line,
            "event id %d of %s_%s is handed out here, but the SetFlag of line %d uses it: take ids "
            "from AllocEventID where queues are used",
            id, pipe_name(from), pipe_name(to), flag.line);
    flag.owner = OWNED_BY_TEXT;
    return id;
}

void give_event(Pipe from, Pipe to, int id, int line) {
    check_id(id, line, "ReleaseEventID", from, to);
    core.flags[from][to][id].owner = UNOWNED;
}

// ---- blocks ----

void block_begins(uint32_t block) {
    launch().block = block;
    launch().atomic = PLAIN;
    core.origins.resize(1);
    for (int p = 0; p < PIPES; ++p) {
        for (uint32_t index : core.queue[p])
            delete core.operations[index].body, core.operations[index].body = nullptr;
        core.queue[p].clear();
        core.issued[p] = core.performed[p] = 0;
        core.clock[p] = Clock{};
        for (int q = 0; q < PIPES; ++q)
            for (Flag& flag : core.flags[p][q]) flag = Flag{};
    }
    provide(UB);
    for (Memory& m : memories)
        if (m.data) forget_contents(m);
    shadow_forget(false);
    buffers_begin();
}

void block_ends() {
    drain();
    buffers_end();
    for (int p = 0; p < PIPES; ++p)
        for (int q = 0; q < PIPES; ++q)
            for (int id = 0; id < FLAG_IDS; ++id) {
                const Flag& flag = core.flags[p][q][id];
                if (flag.set)
                    stop(MISUSE, flag.line,
                         "SetFlag<%s_%s>(%d) is still set at the end: the next kernel starts "
                         "with it",
                         pipe_name(static_cast<Pipe>(p)), pipe_name(static_cast<Pipe>(q)), id);
            }
}

}  // namespace emu
