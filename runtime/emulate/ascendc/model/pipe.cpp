// Buffers and queues of the kernel's TPipe.
#include <deque>

#include "state.h"

namespace emu {

namespace {

enum State : uint8_t { IDLE, TAKEN, QUEUED, OUT };
const char* const STATE_TEXT[] = {"free", "allocated", "enqueued", "dequeued"};

struct Slot {
    uint64_t begin;
    State state = IDLE;
    int line = 0;  // of the call that brought it into this state
    int full_event = -1;  // held from EnQue to DeQue
    int free_event = -1;  // held from FreeTensor to the next AllocTensor
};

constexpr int MAX_BUFFERS = 64;
constexpr int MAX_PER_POSITION = 8;
const char* const POSITION_NAMES[] = {"GM",  "A1",  "A2",   "B1",        "B2",          "C1",
                                      "C2",  "CO1", "CO2",  "VECIN",     "VECOUT",      "VECCALC",
                                      "SPM", "SHM", "TSCM", "C2PIPE2GM", "C2PIPE2LOCAL"};

// What each subcore has handed out.
struct Handed {
    std::deque<Buffer> buffers;  // in order of InitBuffer; addresses of elements stay
    uint64_t top[SPACES];
    int per_position[17];
    int buffer_total;
};
Handed handed[SUBCORES];

uint64_t usable(Space space) {
    if (space == UB) return UB_USABLE;
    return memory(space).bytes - (space == L1 ? 256 : 0);
}

const char* name_of(int line) {
    for (int i = 0; i < module.buffer_count; ++i)
        if (module.buffers[i].line == line) return module.buffers[i].name;
    return nullptr;
}

uint64_t reserve(int position, Space space, int count, uint64_t bytes, int line) {
    bytes = (bytes + BLOCK - 1) / BLOCK * BLOCK;
    const char* name = name_of(line);
    if (!name) name = POSITION_NAMES[position];
    Handed& own = handed[running];
    own.buffer_total += count;
    if (own.buffer_total > MAX_BUFFERS)
        stop(MISUSE, line, "this is buffer %d; a kernel may have %d", own.buffer_total,
             MAX_BUFFERS);
    provide(space);
    uint64_t begin = own.top[space];
    if (begin + bytes * count > usable(space))
        stop(MISUSE, line, "%s takes bytes %llu to %llu of %s, which has %llu to use", name,
             static_cast<unsigned long long>(begin),
             static_cast<unsigned long long>(begin + bytes * count), space_name(space),
             static_cast<unsigned long long>(usable(space)));
    for (int i = 0; i < count; ++i)
        own.buffers.push_back({name, line, space, begin + i * bytes, begin + (i + 1) * bytes});
    own.top[space] = begin + bytes * count;
    return begin;
}

}  // namespace

struct Queue {
    const char* name;
    int position;
    Space space;
    int depth;
    uint64_t bytes;
    Pipe source,
        target;  // a full buffer is announced source to target, a free one target to source
    std::vector<Slot> slots;
    std::deque<int> fifo;
    size_t next = 0;
};

namespace {

std::deque<Queue> queues[SUBCORES];

Slot& slot_of(Queue* queue, uint64_t address, const char* call, int line) {
    if (!queue) stop(MISUSE, line, "%s on a queue without InitBuffer", call);
    for (Slot& slot : queue->slots)
        if (slot.begin == address) return slot;
    const Buffer* other = buffer_at(queue->space, address);
    if (other) stop(MISUSE, line, "%s gives %s a tensor of %s", call, queue->name, other->name);
    stop(MISUSE, line, "%s gives %s a tensor that is none of its buffers", call, queue->name);
}

void wrong_state(Queue* queue, const Slot& slot, const char* call, int line) {
    if (slot.line)
        stop(MISUSE, line, "%s: this buffer of %s is %s (line %d)", call, queue->name,
             STATE_TEXT[slot.state], slot.line);
    stop(MISUSE, line, "%s: this buffer of %s is %s", call, queue->name, STATE_TEXT[slot.state]);
}

int announce(Pipe from, Pipe to, int line) {
    int id = take_event(from, to, line);
    flag_of(from, to, id).owner = OWNED_BY_QUEUE;
    raise_flag(from, to, id, line);
    return id;
}

void accept(Pipe from, Pipe to, int& id, int line) {
    if (id < 0) return;
    take_down_flag(from, to, id, line);
    flag_of(from, to, id).owner = UNOWNED;
    id = -1;
}

}  // namespace

// One that holds all of the bytes: tensors at addresses that the text chose may overlap.
const Buffer* buffer_at(Space space, uint64_t address, uint64_t bytes) {
    for (const Buffer& buffer : handed[running].buffers)
        if (buffer.space == space && address >= buffer.begin && address + bytes <= buffer.end)
            return &buffer;
    return nullptr;
}

uint64_t allocated(Space space) { return handed[running].top[space]; }

uint64_t buffer_init(int position, Space space, uint64_t bytes, int line) {
    return reserve(position, space, 1, bytes, line);
}

void buffer_placed(int position, Space space, uint64_t begin, uint64_t bytes, int line) {
    const char* name = name_of(line);
    if (!name) name = POSITION_NAMES[position];
    provide(space);
    if (begin % BLOCK)
        stop(MISUSE, line, "%s starts at byte %llu, which is no multiple of 32", name,
             static_cast<unsigned long long>(begin));
    if (begin + bytes > usable(space))
        stop(MISUSE, line, "%s takes bytes %llu to %llu of %s, which has %llu to use", name,
             static_cast<unsigned long long>(begin), static_cast<unsigned long long>(begin + bytes),
             space_name(space), static_cast<unsigned long long>(usable(space)));
    handed[running].buffers.push_back({name, line, space, begin, begin + bytes, true});
}

uint64_t queue_init(Queue*& queue, int position, Space space, int count, uint64_t bytes, int depth,
                    Pipe source, Pipe target, int line) {
    if (count < 1) stop(MISUSE, line, "InitBuffer gives the queue %d buffers", count);
    int& buffers = handed[running].per_position[position];
    buffers += count;
    if (buffers > MAX_PER_POSITION)
        stop(MISUSE, line, "the queues of %s have %d buffers; event ids suffice for %d",
             POSITION_NAMES[position], buffers, MAX_PER_POSITION);
    queues[running].emplace_back();
    queue = &queues[running].back();
    uint64_t begin = reserve(position, space, count, bytes, line);
    queue->name = handed[running].buffers.back().name;
    queue->position = position;
    queue->space = space;
    queue->depth = depth;
    queue->bytes = (bytes + BLOCK - 1) / BLOCK * BLOCK;
    queue->source = source;
    queue->target = target;
    for (int i = 0; i < count; ++i) {
        Slot slot;
        slot.begin = begin + i * queue->bytes;
        queue->slots.push_back(slot);
    }
    return begin;
}

uint64_t queue_alloc(Queue* queue, uint64_t& bytes, int line) {
    if (!queue) stop(MISUSE, line, "AllocTensor on a queue without InitBuffer");
    for (size_t i = 0; i < queue->slots.size(); ++i) {
        Slot& slot = queue->slots[(queue->next + i) % queue->slots.size()];
        if (slot.state != IDLE) continue;
        queue->next = (queue->next + i + 1) % queue->slots.size();
        accept(queue->target, queue->source, slot.free_event, line);
        slot.state = TAKEN;
        slot.line = line;
        bytes = queue->bytes;
        return slot.begin;
    }
    stop(MISUSE, line,
         "AllocTensor: all %zu buffers of %s are in use (the first is %s since line %d)",
         queue->slots.size(), queue->name, STATE_TEXT[queue->slots[0].state], queue->slots[0].line);
}

void queue_enque(Queue* queue, uint64_t address, int line) {
    Slot& slot = slot_of(queue, address, "EnQue", line);
    if (slot.state != TAKEN && slot.state != OUT) wrong_state(queue, slot, "EnQue", line);
    if (queue->depth > 0 && queue->fifo.size() >= static_cast<size_t>(queue->depth))
        stop(MISUSE, line, "EnQue: %s has depth %d and holds %zu tensors already", queue->name,
             queue->depth, queue->fifo.size());
    slot.full_event = announce(queue->source, queue->target, line);
    slot.state = QUEUED;
    slot.line = line;
    queue->fifo.push_back(static_cast<int>(&slot - queue->slots.data()));
}

uint64_t queue_deque(Queue* queue, uint64_t& bytes, int line) {
    if (!queue) stop(MISUSE, line, "DeQue on a queue without InitBuffer");
    if (queue->fifo.empty()) stop(MISUSE, line, "DeQue: nothing is enqueued in %s", queue->name);
    Slot& slot = queue->slots[queue->fifo.front()];
    queue->fifo.pop_front();
    accept(queue->source, queue->target, slot.full_event, line);
    slot.state = OUT;
    slot.line = line;
    bytes = queue->bytes;
    return slot.begin;
}

void queue_free(Queue* queue, uint64_t address, int line) {
    Slot& slot = slot_of(queue, address, "FreeTensor", line);
    if (slot.state != TAKEN && slot.state != OUT) wrong_state(queue, slot, "FreeTensor", line);
    slot.free_event = announce(queue->target, queue->source, line);
    slot.state = IDLE;
    slot.line = line;
}

int queue_count(Queue* queue) { return queue ? static_cast<int>(queue->fifo.size()) : 0; }
bool queue_vacant(Queue* queue) {
    return queue && (queue->depth == 0 || queue->fifo.size() < static_cast<size_t>(queue->depth));
}
bool queue_idle(Queue* queue) {
    if (queue)
        for (const Slot& slot : queue->slots)
            if (slot.state == IDLE) return true;
    return false;
}

static void close_queues() {
    for (Queue& queue : queues[running])
        for (Slot& slot : queue.slots) {
            accept(queue.target, queue.source, slot.free_event, slot.line);
            if (slot.state != IDLE)
                stop(MISUSE, slot.line,
                     "a buffer of %s is still %s at the end: FreeTensor is missing", queue.name,
                     STATE_TEXT[slot.state]);
        }
}

static void forget() {
    handed[running] = Handed{};
    queues[running].clear();
}

void pipe_opened(int) {}

void pipe_reset(int line) {
    close_queues();
    scalar_waits_for_all(line);
    forget();
}

void buffers_begin() { forget(); }
void buffers_end() { close_queues(); }

}  // namespace emu
