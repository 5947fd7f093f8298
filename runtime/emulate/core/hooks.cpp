// The calls that g++ -fsanitize=thread puts before each load and store of an instrumented kernel.
// The kernel is compiled with it and linked without it; these bodies are ours.
#include <cstring>

#include "quick.h"
#include "shadow.h"

using emu::Access;

namespace {

// A loop that polls memory must let the others write it.
constexpr uint32_t POLLS = 100000;

template <Access access>
inline __attribute__((always_inline)) void hook(void* at, size_t bytes, bool aligned, void* pc) {
    emu::Fiber* f = emu::me();
    if (!f) return;  // initialisers of the file, before any launch
    const auto address = reinterpret_cast<uintptr_t>(at);
    if (address - emu::stack_of(f) < emu::STACK_BYTES) {
        if (__builtin_expect(address - f->watch_lo < f->watch_bytes, false))
            emu::watch(f, address, access, pc);
        return;
    }
    emu::enter(f);
    if (aligned && address % bytes && emu::launch.memory)
        emu::fail(EMU_MEMORY,
                  emu::format("%s %s %zu bytes at %s through an address that is not a multiple of "
                              "%zu", emu::who(f).c_str(),
                              access == Access::READ ? "reads" : "writes", bytes,
                              emu::place(pc).c_str(), bytes), f);
    emu::check(f, at, bytes, access, pc);
    if (++f->polls >= POLLS) {
        f->polls = 0;
        emu::yield("a loop", pc);
    }
}

// The same for a size that an access of a type has: most end here.
template <Access access, unsigned bytes>
inline __attribute__((always_inline)) void typed_hook(void* at, void* pc) {
    emu::Fiber* f = emu::me();
    if (f && !f->suspect.bytes && f->polls < POLLS - 1 &&
        emu::is_fine<access, bytes>(f, reinterpret_cast<uintptr_t>(at))) {
        ++f->polls;
        return;
    }
    hook<access>(at, bytes, true, pc);
}

}  // namespace

extern "C" {

#define EMU_HOOKS(n)                                                                        \
    void __tsan_read##n(void* p) { typed_hook<Access::READ, n>(p, EMU_CALLER); }            \
    void __tsan_write##n(void* p) { typed_hook<Access::WRITE, n>(p, EMU_CALLER); }          \
    void __tsan_unaligned_read##n(void* p) { hook<Access::READ>(p, n, false, EMU_CALLER); } \
    void __tsan_unaligned_write##n(void* p) { hook<Access::WRITE>(p, n, false, EMU_CALLER); }
EMU_HOOKS(1)
EMU_HOOKS(2)
EMU_HOOKS(4)
EMU_HOOKS(8)
EMU_HOOKS(16)

void __tsan_read_range(void* p, size_t n) { hook<Access::READ>(p, n, false, EMU_CALLER); }
void __tsan_write_range(void* p, size_t n) { hook<Access::WRITE>(p, n, false, EMU_CALLER); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// -fsanitize=alignment: called for an address that its type does not allow.
struct TypeMismatch {
    const char* file;
    uint32_t line, column;
    const void* type;
    unsigned char log_alignment, kind;
};
void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, void* at) {
    emu::Fiber* f = emu::me();
    if (!f) return;
    emu::Block* block = emu::arena_of(*f->team, at);
    uint32_t byte = 0;
    emu::fail(EMU_MEMORY,
              emu::format("%s uses at %s an address that is not a multiple of %d", emu::who(f).c_str(),
                          emu::place(EMU_CALLER).c_str(), 1 << data->log_alignment),
              f, block ? emu::array_at(*block, at, &byte) : "");
}

// memcpy and memset as kernels call them.
void* emu_memcpy(void* to, const void* from, size_t n) {
    emu::Fiber* f = emu::me();
    emu::touch(f, from, n, Access::READ, EMU_CALLER);
    emu::touch(f, to, n, Access::WRITE, EMU_CALLER);
    return std::memcpy(to, from, n);
}
void* emu_memset(void* to, int value, size_t n) {
    emu::touch(emu::me(), to, n, Access::WRITE, EMU_CALLER);
    return std::memset(to, value, n);
}
}
