#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emu {

Pool pool;
static size_t pool_bytes;

void make_pool(size_t count) {
    pool_bytes = (count + 1) << STACK_BITS;
    void* memory = mmap(nullptr, pool_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    const size_t page = size_t(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<uintptr_t>(memory);
    pool.stacks = (first + STACK_BYTES - 1) & ~(STACK_BYTES - 1);
    for (size_t i = 0; i < count; ++i)
        mprotect(reinterpret_cast<void*>(pool.stacks + (i << STACK_BITS)), page, PROT_NONE);
    pool.fibers = new Fiber[count];
    pool.count = count;
    // The reservation is kept whole; free_pool needs its true start.
    pool.reserved = memory;
}

void free_pool() {
    delete[] pool.fibers;
    munmap(pool.reserved, pool_bytes);
    pool = Pool();
}

// Stacks that all start at the same place of their 128 KiB would share a few cache lines.
static uintptr_t top_of(const Fiber* f) {
    const size_t colour = size_t(f - pool.fibers) % 61 * 128;
    return stack_of(f) + STACK_BYTES - 64 - colour;
}

#if defined(__x86_64__)

// Six callee-saved registers; a new stack holds six zeros, then where to start.
asm(R"(.text
.globl emu_swap
.hidden emu_swap
.type emu_swap,@function
emu_swap:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  ret
.size emu_swap,.-emu_swap
)");

void prepare(Fiber* f, void (*body)()) {
    auto* top = reinterpret_cast<void**>(top_of(f));
    *--top = nullptr;  // the return address of `body`, which never returns
    *--top = reinterpret_cast<void*>(body);
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    f->sp = top;
}

#else

// Other processors: ucontext, which costs a system call a switch. `sp` points at the context.
extern "C" void emu_swap(void** save, void* load) {
    ucontext_t here;
    *save = &here;
    swapcontext(&here, static_cast<ucontext_t*>(load));
}

void prepare(Fiber* f, void (*body)()) {
    auto* context = reinterpret_cast<ucontext_t*>(top_of(f) - sizeof(ucontext_t)) - 1;
    getcontext(context);
    context->uc_stack.ss_sp = reinterpret_cast<void*>(stack_of(f));
    context->uc_stack.ss_size = reinterpret_cast<uintptr_t>(context) - stack_of(f);
    context->uc_link = nullptr;
    makecontext(context, body, 0);
    f->sp = context;
}

#endif

}  // namespace emu
