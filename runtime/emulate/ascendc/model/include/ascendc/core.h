// What the model's headers need from its core: pipes, clocks, memories, reports.
//
// A call of the kernel text becomes an Operation of one pipe. It is issued in program order and
// performed as late as the program allows: when another operation that must come after it is
// performed, when the scalar unit waits for it, or at the end of the kernel. The order that must
// hold is kept as vector clocks: an operation carries, for each pipe, how many of that pipe's
// operations are known to be over before it starts.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cores/entries.h"

namespace emu {

enum Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX, PIPES };
enum Space : uint8_t { GM, UB, L1, L0A, L0B, L0C, BT, SPACES };

// A block of a launch runs on one core, or, in a mixed kernel, on a cube core and up to two vector
// cores, which share nothing but global memory: its subcores, the cube core first.
enum Side : uint8_t { VECTOR_SIDE, CUBE_SIDE };
constexpr int SUBCORES = 3;
extern int running;  // the subcore whose code, or whose operation, runs now

constexpr uint64_t UB_BYTES = 192 * 1024;
constexpr uint64_t UB_USABLE = UB_BYTES - 256;  // what buffers may take
constexpr uint64_t UB_RESERVED_FROM = 184 * 1024;  // Select's modes 1 and 2 work in the last 8 KB
constexpr uint64_t BLOCK = 32;  // one block of the vector unit
constexpr uint64_t REPEAT_BYTES = 256;  // what one repeat of a vector instruction covers

struct Deferred {
    virtual ~Deferred() {}
    virtual void run() = 0;
};

template <class F>
struct Closure final : Deferred {
    F body;
    explicit Closure(F body) : body(body) {}
    void run() override { body(); }
};

enum Atomic : uint8_t { PLAIN, ATOMIC_ADD, ATOMIC_MAX, ATOMIC_MIN };

// Collects what an operation touches, then issues it.
class Issue {
   public:
    Issue(const char* name, Pipe pipe, Line line);
    void read(Space space, uint64_t begin, uint64_t bytes);
    void write(Space space, uint64_t begin, uint64_t bytes);
    void atomic(Atomic kind) { atomic_ = kind; }
    // M keeps its own order, but for products so small that one starts before the last has ended.
    void small() { small_ = true; }
    template <class F>
    void commit(F body) {
        enqueue(new Closure<F>(body));
    }

    const char* name;
    Pipe pipe;
    int line;

   private:
    void enqueue(Deferred* body);
    void touch(Space space, uint64_t begin, uint64_t bytes, bool write);
    uint32_t op_;
    Atomic atomic_ = PLAIN;
    bool small_ = false;
};

// Flags between pipes. `owner` of a flag: the kernel text, or a queue that took the id for itself.
void set_flag(Pipe from, Pipe to, int id, int line);
void wait_flag(Pipe from, Pipe to, int id, int line);
int take_event(Pipe from, Pipe to, int line);
void give_event(Pipe from, Pipe to, int id, int line);
int free_event(Pipe from, Pipe to);
void barrier(Pipe pipe, int line);
void barrier_all(int line);
void cross_set(int mode, Pipe pipe, int id, int line);
void cross_wait(int id, int line);
const char* pipe_name(Pipe pipe);

// On-chip memory with a state for each byte: written at all, and which bits hold something
// unspecified.
struct Memory {
    uint8_t* data;
    uint8_t* undefined;  // a mask of bits whose value is unspecified (padding, and what was
    // computed from it)
    uint8_t* written;  // 1 once anything wrote the byte in this block
    uint32_t* origin;  // for each 32-byte block where its unspecified bits come from, see `Origin`
    uint64_t bytes;
};
extern Memory memories[SUBCORES][SPACES];
inline Memory& memory(Space space) { return memories[running][space]; }
void provide(Space space);  // makes its bytes exist, all unwritten
const char* space_name(Space space);

// Where a value that nothing specifies comes from: bytes that nothing wrote, or padding. Numbers
// from 1 on are handed out as they come up; 0 is a value like any other.
using Origin = uint32_t;
Origin unwritten_origin(Space space, uint64_t address, const char* name, int line);
Origin padding_origin(const char* name, int line);
// Ends the launch when such a value leaves the core (a store, a scalar read) and that is checked.
void uses_unspecified(Origin origin, Space space, uint64_t address, const char* name, int line);

template <class T>
T load(Space space, uint64_t address, const char* name, int line, Origin& origin) {
    Memory& m = memory(space);
    T value;
    uint64_t bad = 0, seen = 0;
    memcpy(&bad, m.undefined + address, sizeof(T));
    memcpy(&seen, m.written + address, sizeof(T));
    if (seen != (0x0101010101010101u & (~uint64_t{0} >> (64 - 8 * sizeof(T)))))
        origin = unwritten_origin(space, address, name, line);
    else if (bad)
        origin = m.origin[address / BLOCK];
    memcpy(&value, m.data + address, sizeof(T));
    return value;
}

template <class T>
void store(Space space, uint64_t address, T value, Origin origin) {
    Memory& m = memory(space);
    if (origin) {
        memset(&value, 0xFF, sizeof(T));  // NaN in the float formats: reliance on it shows
        m.origin[address / BLOCK] = origin;
    }
    memcpy(m.data + address, &value, sizeof(T));
    memset(m.undefined + address, origin ? 0xFF : 0, sizeof(T));
    memset(m.written + address, 1, sizeof(T));
}

// Global memory: the tensor that holds all of the bytes, or the launch ends.
void check_global(const void* begin, uint64_t bytes, bool write, const char* name, int line);

// A buffer of on-chip memory that InitBuffer (or an allocator) handed out.
struct Buffer {
    const char* name;
    int line;
    Space space;
    uint64_t begin, end;
    bool by_hand =
        false;  // at an address that the text chose: what lies behind it may be used, too
};
const Buffer* buffer_at(Space space, uint64_t address, uint64_t bytes = 1);

// TPipe's book-keeping: buffers, queues.
struct Queue;
Queue* make_queue();
uint64_t queue_init(Queue*& queue, int position, Space space, int count, uint64_t bytes, int depth,
                    Pipe source, Pipe target, int line);
uint64_t queue_alloc(Queue* queue, uint64_t& bytes, int line);
void queue_enque(Queue* queue, uint64_t address, int line);
uint64_t queue_deque(Queue* queue, uint64_t& bytes, int line);
void queue_free(Queue* queue, uint64_t address, int line);
int queue_count(Queue* queue);
bool queue_idle(Queue* queue);
bool queue_vacant(Queue* queue);
uint64_t buffer_init(int position, Space space, uint64_t bytes, int line);
void buffer_placed(int position, Space space, uint64_t begin, uint64_t bytes, int line);
void pipe_reset(int line);
void pipe_opened(int line);
uint64_t allocated(Space space);

// The launch
struct Launch {
    uint32_t block, blocks;
    int kernel_type;
    int vector_cores;  // of a block: 0 without a vector side, 2 for a mix of 1 to 2
    bool cube;  // whether a block has a cube core
    Side side;  // of the subcore that runs now
    Atomic atomic;  // of its transfers from now on
};
Launch& launch();
void scalar_waits_for_all(int line);

// Names of the buffers of the text, by the line of their InitBuffer call; both written by the
// builder.
struct BufferName {
    int line;
    const char* name;
};
struct Module {
    const char* file;
    const BufferName* buffers;
    int buffer_count;
};
extern const Module module;

}  // namespace emu
