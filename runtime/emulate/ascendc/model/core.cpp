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

int running;
Memory memories[SUBCORES][SPACES];

static void forget_contents(Memory& m) {
    memset(m.data, 0xFF, m.bytes);
    memset(m.undefined, 0xFF, m.bytes);
    memset(m.written, 0, m.bytes);
}

void provide(Space space) {
    Memory& m = memory(space);
    if (m.data || space == GM) return;
    m.bytes = SPACE_BYTES[space];
    m.data = new uint8_t[m.bytes];
    m.undefined = new uint8_t[m.bytes];
    m.written = new uint8_t[m.bytes];
    m.origin = new uint32_t[m.bytes / BLOCK];
    forget_contents(m);
}

void kernel_type(int type, Line line) {
    if (type != launch().kernel_type)
        stop(MISUSE, line.at,
             "KERNEL_TASK_TYPE_DEFAULT says another kind of kernel than was found");
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
    Clock& clock = core.clock[unit(pipe)];
    uint32_t own = clock.at[unit(S)];
    clock.join(core.clock[unit(S)]);
    if (pipe != S) clock.at[unit(S)] = own;
}

static void check_side(const char* name, Pipe pipe, int line) {
    bool cube = pipe == M || pipe == MTE1 || pipe == FIX, vector = pipe == V || pipe == MTE3;
    if (cube && launch().side == VECTOR_SIDE)
        stop(MISUSE, line, "%s needs unit %s, which a vector core does not have", name,
             pipe_name(pipe));
    if (vector && launch().side == CUBE_SIDE)
        stop(MISUSE, line, "%s needs unit %s, which a cube core does not have", name,
             pipe_name(pipe));
}

Issue::Issue(const char* name, Pipe pipe, Line at) : name(name), pipe(pipe), line(at.at) {
    check_side(name, pipe, line);
    follow_issue(pipe);
    op_ = static_cast<uint32_t>(core.operations.size());
    Operation op{};
    op.name = name;
    op.line = line;
    op.block = launch().block;
    op.pipe = pipe;
    op.subcore = static_cast<uint8_t>(running);
    op.sequence = ++core.issued[unit(pipe)];
    core.operations.push_back(op);
}

void Issue::touch(Space space, uint64_t begin, uint64_t bytes, bool write) {
    if (!bytes) return;
    core.operations[op_].atomic = space == GM && write ? atomic_ : PLAIN;
    if (space == GM) {
        check_global(reinterpret_cast<void*>(begin), bytes, write, name, line);
    } else {
        if ((space == UB) != (launch().side == VECTOR_SIDE))
            stop(MISUSE, line, "%s: a %s core does not reach %s", name,
                 space == UB ? "cube" : "vector", space_name(space));
        const Buffer* buffer = buffer_at(space, begin, bytes);
        if (!buffer) buffer = buffer_at(space, begin);
        bool beyond = buffer && begin + bytes > buffer->end;
        if (!buffer || (beyond && !(buffer->by_hand && begin + bytes <= memory(space).bytes))) {
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
    int self = unit(pipe);
    op.needs = core.clock[self];
    op.body = body;
    op.small = small_;
    core.queue[self].push_back(op_);
    // The scalar unit is one thread; the cube unit waits for its large products by itself.
    if (pipe == S || (pipe == M && !small_)) core.clock[self].at[self] = op.sequence;
    if (pipe == S) perform(self, op.sequence);
}

void perform(int unit, uint32_t sequence) {
    while (core.performed[unit] < sequence) {
        uint32_t index = core.queue[unit][core.performed[unit]];
        Clock needs = core.operations[index].needs;
        for (int p = 0; p < UNITS; ++p)
            if (p != unit) perform(p, needs.at[p]);
        Deferred* body = core.operations[index].body;
        core.operations[index].body = nullptr;
        ++core.performed[unit];
        struct Owned {
            Deferred* body;
            int before;
            ~Owned() { delete body, running = before; }
        } owned{body, running};
        running = core.operations[index].subcore;
        body->run();
    }
}

// Last consumers first: an operation that nothing orders before them then comes too late.
void drain() {
    static const Pipe order[] = {S, MTE3, FIX, V, M, MTE1, MTE2};
    int self = running;
    for (Pipe pipe : order) perform(unit_of(self, pipe), core.issued[unit_of(self, pipe)]);
}

void scalar_waits_for_all(int) {
    for (int p = unit(S); p < unit(PIPES); ++p)
        for (int q = unit(S); q < unit(PIPES); ++q) core.clock[p].at[q] = core.issued[q];
    drain();
}

void barrier(Pipe pipe, int line) {
    if (pipe == S) stop(MISUSE, line, "PipeBarrier does not take PIPE_S");
    check_side("PipeBarrier", pipe, line);
    follow_issue(pipe);
    core.clock[unit(pipe)].at[unit(pipe)] = core.issued[unit(pipe)];
}

void barrier_all(int line) { scalar_waits_for_all(line); }

// ---- flags ----

static void check_id(int id, int line, const char* name, Pipe from, Pipe to) {
    if (id < 0 || id >= FLAG_IDS)
        stop(MISUSE, line, "%s<%s_%s> takes event ids 0 to 7, not %d", name, pipe_name(from),
             pipe_name(to), id);
}

void raise_flag(Pipe from, Pipe to, int id, int line) {
    Flag& flag = flag_of(from, to, id);
    if (flag.set)
        stop(MISUSE, line, "SetFlag<%s_%s>(%d) comes before the WaitFlag for that of line %d",
             pipe_name(from), pipe_name(to), id, flag.line);
    flag.set = true;
    flag.line = line;
    follow_issue(from);
    flag.clock = core.clock[unit(from)];
    flag.clock.at[unit(from)] = core.issued[unit(from)];
}

void take_down_flag(Pipe from, Pipe to, int id, int line) {
    Flag& flag = flag_of(from, to, id);
    if (!flag.set)
        stop(DEADLOCK, line,
             "WaitFlag<%s_%s>(%d) waits for ever: no SetFlag before it is left to wait for",
             pipe_name(from), pipe_name(to), id);
    flag.set = false;
    core.clock[unit(to)].join(flag.clock);
    if (to == S)
        for (int p = 0; p < UNITS; ++p) perform(p, core.clock[unit(S)].at[p]);
}

static void check_owner(Pipe from, Pipe to, int id, int line, const char* name) {
    Flag& flag = flag_of(from, to, id);
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
        if (flag_of(from, to, id).owner == UNOWNED) return id;
    return -1;
}

int take_event(Pipe from, Pipe to, int line) {
    int id = free_event(from, to);
    if (id < 0)
        stop(MISUSE, line, "all %d event ids of %s_%s are in use", FLAG_IDS, pipe_name(from),
             pipe_name(to));
    Flag& flag = flag_of(from, to, id);
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
    flag_of(from, to, id).owner = UNOWNED;
}

// ---- flags between cores ----

static void check_cross(int id, int line, const char* name) {
    if (id < 0 || id >= CROSS_IDS)
        stop(MISUSE, line, "%s takes flag ids 0 to 15, not %d", name, id);
    if (!launch().cube || !launch().vector_cores)
        stop(MISUSE, line,
             "%s: only a mixed kernel (KERNEL_TYPE_MIX_AIC_1_1 or _1_2) can wait for "
             "another core",
             name);
}

static void announce(int to, int id, const Clock& clock, int line) {
    CrossFlag& flag = core.cross[to][id];
    flag.raised.push_back(clock);
    flag.line = line;
    if (flag.raised.size() > 15)
        stop(MISUSE, line, "flag %d is set for the 16th time without a wait: it counts to 15", id);
}

// The core has what the others of its kind have to bring as well; with all of them it is raised.
static void arrive(int to, int id, const Clock& clock, int line) {
    CrossFlag& flag = core.cross[to][id];
    flag.arrived[running].push_back(clock);
    flag.line = line;
    for (int v = 1; v <= launch().vector_cores; ++v)
        if (flag.arrived[v].empty()) return;
    Clock all;
    for (int v = 1; v <= launch().vector_cores; ++v) {
        all.join(flag.arrived[v].front());
        flag.arrived[v].pop_front();
    }
    announce(to, id, all, line);
}

void cross_set(int mode, Pipe pipe, int id, int line) {
    check_cross(id, line, "CrossCoreSetFlag");
    if (pipe == S || pipe == PIPES)
        stop(MISUSE, line, "CrossCoreSetFlag does not take PIPE_S or PIPE_ALL");
    check_side("CrossCoreSetFlag", pipe, line);
    follow_issue(pipe);
    Clock clock = core.clock[unit(pipe)];
    clock.at[unit(pipe)] = core.issued[unit(pipe)];
    bool cube = launch().side == CUBE_SIDE;
    if (mode == 2 && cube) {
        for (int v = 1; v <= launch().vector_cores; ++v) announce(v, id, clock, line);
    } else if (mode == 2) {
        arrive(0, id, clock, line);
    } else if (mode == 1 && !cube) {
        for (int v = 1; v <= launch().vector_cores; ++v) arrive(v, id, clock, line);
    } else {
        stop(UNSUPPORTED, line, "CrossCoreSetFlag<%d>: blocks run one after another here", mode);
    }
}

void cross_wait(int id, int line) {
    check_cross(id, line, "CrossCoreWaitFlag");
    CrossFlag& flag = core.cross[running][id];
    while (flag.raised.empty()) let_others_run(id, line);
    // Whatever the core issues from here on comes after what the flag stands for.
    core.clock[unit(S)].join(flag.raised.front());
    flag.raised.pop_front();
}

// ---- blocks ----

void block_begins(uint32_t block) {
    launch().block = block;
    core.origins.resize(1);
    for (int u = 0; u < UNITS; ++u) {
        for (uint32_t index : core.queue[u])
            delete core.operations[index].body, core.operations[index].body = nullptr;
        core.queue[u].clear();
        core.issued[u] = core.performed[u] = 0;
        core.clock[u] = Clock{};
    }
    for (auto& subcore : core.flags)
        for (auto& from : subcore)
            for (auto& to : from)
                for (Flag& flag : to) flag = Flag{};
    for (auto& subcore : core.cross)
        for (CrossFlag& flag : subcore) flag = CrossFlag{};
    shadow_forget(false);
}

void subcore_begins(int subcore) {
    running = subcore;
    provide(UB);
    for (Memory& m : memories[subcore])
        if (m.data) forget_contents(m);
    buffers_begin();
}

void subcore_ends() {
    drain();
    buffers_end();
    for (int p = 0; p < PIPES; ++p)
        for (int q = 0; q < PIPES; ++q)
            for (int id = 0; id < FLAG_IDS; ++id) {
                const Flag& flag = core.flags[running][p][q][id];
                if (flag.set)
                    stop(MISUSE, flag.line,
                         "SetFlag<%s_%s>(%d) is still set at the end: the next kernel starts "
                         "with it",
                         pipe_name(static_cast<Pipe>(p)), pipe_name(static_cast<Pipe>(q)), id);
            }
}

void block_ends() {
    for (auto& subcore : core.cross)
        for (int id = 0; id < CROSS_IDS; ++id) {
            const CrossFlag& flag = subcore[id];
            bool left = !flag.raised.empty();
            for (const auto& arrived : flag.arrived) left |= !arrived.empty();
            if (left)
                stop(MISUSE, flag.line,
                     "CrossCoreSetFlag(%d) is not waited for: the next kernel starts with it", id);
        }
}

}  // namespace emu
