// Atomics on shared and global memory. Teams run on several OS threads, so global ones are real.
#include <cstring>
#include <type_traits>

#include "../core/shadow.h"
#include "../include/emulate/codes.h"
#include "../include/emulate/numbers.h"

using namespace emu;

namespace {

int size_of(int type) {
    switch (type) {
        case TYPE_F16: case TYPE_BF16: return 2;
        case TYPE_S64: case TYPE_U64: case TYPE_F64: case TYPE_F32X2: return 8;
        case TYPE_F32X4: return 16;
        default: return 4;
    }
}

template <class T>
T numeric(int op, T old, T value) {
    switch (op) {
        case ATOMIC_ADD: return T(old + value);
        case ATOMIC_MIN: return value < old ? value : old;
        case ATOMIC_MAX: return value > old ? value : old;
        default: break;
    }
    if constexpr (std::is_integral_v<T>) {
        switch (op) {
            case ATOMIC_AND: return old & value;
            case ATOMIC_OR: return old | value;
            case ATOMIC_XOR: return old ^ value;
            case ATOMIC_INC: return old >= value ? 0 : old + 1;
            case ATOMIC_DEC: return old == 0 || old > value ? value : old - 1;
            default: break;
        }
    }
    return value;
}

// float minimum and maximum drop a NaN.
template <class T>
T floating(int op, T old, T value) {
    if (op == ATOMIC_MIN || op == ATOMIC_MAX) {
        if (old != old) return value;
        if (value != value) return old;
    }
    return numeric(op, old, value);
}

uint16_t small(int op, int type, uint16_t old, uint16_t value) {
    if (type == TYPE_F16)
        return float_to_half(floating(op, half_to_float(old), half_to_float(value)));
    return float_to_bfloat(floating(op, bfloat_to_float(old), bfloat_to_float(value)));
}

template <class T>
void typed(int op, void* next, const void* old, const void* value) {
    T a, b;
    std::memcpy(&a, old, sizeof a);
    std::memcpy(&b, value, sizeof b);
    if constexpr (std::is_floating_point_v<T>)
        a = floating(op, a, b);
    else
        a = numeric(op, a, b);
    std::memcpy(next, &a, sizeof a);
}

// next = old (op) value, for one type.
void apply(int op, int type, unsigned char* next, const unsigned char* old, const unsigned char* value) {
    switch (type) {
        case TYPE_S32: return typed<int32_t>(op, next, old, value);
        case TYPE_U32: return typed<uint32_t>(op, next, old, value);
        case TYPE_S64: return typed<int64_t>(op, next, old, value);
        case TYPE_U64: return typed<uint64_t>(op, next, old, value);
        case TYPE_F32: return typed<float>(op, next, old, value);
        case TYPE_F64: return typed<double>(op, next, old, value);
        case TYPE_F32X2:
        case TYPE_F32X4:
            for (int i = 0; i < size_of(type); i += 4) typed<float>(op, next + i, old + i, value + i);
            return;
        default: break;
    }
    const int part = type == TYPE_F16X2 ? TYPE_F16 : type == TYPE_BF16X2 ? TYPE_BF16 : type;
    for (int i = 0; i < size_of(type); i += 2) {
        uint16_t a, b;
        std::memcpy(&a, old + i, 2);
        std::memcpy(&b, value + i, 2);
        a = small(op, part, a, b);
        std::memcpy(next + i, &a, 2);
    }
}

template <class W>
void exchange(void* at, unsigned char* old, int op, int type, const void* value, const void* compare) {
    W* word = static_cast<W*>(at);
    W before = __atomic_load_n(word, __ATOMIC_SEQ_CST), after;
    do {
        std::memcpy(old, &before, sizeof before);
        unsigned char next[sizeof(W)];
        const auto* bytes = static_cast<const unsigned char*>(value);
        if (op == ATOMIC_LOAD || (op == ATOMIC_CAS && std::memcmp(old, compare, sizeof before)))
            return;
        if (op == ATOMIC_CAS || op == ATOMIC_EXCHANGE || op == ATOMIC_STORE)
            std::memcpy(next, bytes, sizeof next);
        else
            apply(op, type, next, old, bytes);
        std::memcpy(&after, next, sizeof after);
    } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
}

}  // namespace

namespace emu {

void atomic(Fiber* f, int op, int type, void* at, void* old, const void* value, const void* compare,
            void* pc) {
    const int bytes = size_of(type);
    const auto address = reinterpret_cast<uintptr_t>(at);
    enter(f);
    if (address % unsigned(bytes))
        fail(EMU_MEMORY, format("%s updates %d bytes at %s through an address that is not a "
                                "multiple of %d", who(f).c_str(), bytes, place(pc).c_str(), bytes), f);
    touch(f, at, unsigned(bytes), Access::ATOMIC, pc);
    if (Block* block = arena_of(*f->team, at); block && block != f->block && checking())
        note_visit(f, *block, Access::ATOMIC, pc);
    synchronize(f, at);
    auto* before = static_cast<unsigned char*>(old);
    switch (bytes) {
        case 2: exchange<uint16_t>(at, before, op, type, value, compare); break;
        case 4: exchange<uint32_t>(at, before, op, type, value, compare); break;
        case 8: exchange<uint64_t>(at, before, op, type, value, compare); break;
        default:  // vectors are atomic by element only
            for (int i = 0; i < bytes; i += 4)
                exchange<uint32_t>(static_cast<char*>(at) + i, before + i, op, TYPE_F32,
                                   static_cast<const char*>(value) + i, compare);
    }
    // A lock or a flag is polled: let the thread that will set it run.
    if (++f->polls >= 1000) {
        f->polls = 0;
        yield("a loop of atomics", pc);
    }
}

}  // namespace emu

extern "C" {

void emu_atomic(int op, int type, void* at, void* old, const void* value, const void* compare) {
    atomic(me(), op, type, at, old, value, compare, EMU_CALLER);
}

void emu_fence() {
    enter(me());
    fence(me());
}
}
