// The module's export that runs an entry point, core by core.
#include <stdio.h>
#include <ucontext.h>

#include "state.h"

namespace emu {

namespace {

// ---- the cores of one block of a mixed kernel take turns ----

constexpr size_t STACK_BYTES = 4 << 20;

struct Fiber {
    ucontext_t context;
    uint8_t* stack = nullptr;
    bool done = false;
    int waits_for = -1;  // the cross-core flag
    int line = 0;  // of the wait
    Atomic atomic = PLAIN;
};
Fiber fibers[SUBCORES];
ucontext_t scheduler;
const Entry* fiber_entry;
void** fiber_arguments;
bool stopped;

void enter_subcore(int subcore) {
    running = subcore;
    launch().side = launch().cube && subcore == 0 ? CUBE_SIDE : VECTOR_SIDE;
}

void fiber_main() {
    Fiber& fiber = fibers[running];
    try {
        fiber_entry->call(fiber_arguments);
        subcore_ends();
    } catch (const Stop&) {
        stopped = true;
    }
    fiber.done = true;
    swapcontext(&fiber.context, &scheduler);
}

bool blocked(int subcore) {
    const Fiber& fiber = fibers[subcore];
    return fiber.waits_for >= 0 && core.cross[subcore][fiber.waits_for].raised.empty();
}

const char* core_name(int subcore) {
    static const char* const names[] = {"the cube core", "vector core 0", "vector core 1"};
    return names[subcore];
}

[[noreturn]] void deadlock(int first, int last) {
    for (int s = first; s <= last; ++s) {
        if (fibers[s].done) continue;
        enter_subcore(s);
        stop(DEADLOCK, fibers[s].line,
             "%s waits for flag %d for ever: nobody is left who would set it", core_name(s),
             fibers[s].waits_for);
    }
    throw Stop{};
}

void run_mixed(const Entry& entry, void** arguments) {
    int last = launch().vector_cores;
    fiber_entry = &entry;
    fiber_arguments = arguments;
    stopped = false;
    for (int s = 0; s <= last; ++s) {
        Fiber& fiber = fibers[s];
        if (!fiber.stack) fiber.stack = new uint8_t[STACK_BYTES];
        fiber.done = false;
        fiber.waits_for = -1;
        fiber.atomic = PLAIN;
        enter_subcore(s);
        subcore_begins(s);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack;
        fiber.context.uc_stack.ss_size = STACK_BYTES;
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, fiber_main, 0);
    }
    for (bool left = true; left;) {
        bool moved = false;
        left = false;
        for (int s = 0; s <= last; ++s) {
            if (fibers[s].done || blocked(s)) continue;
            enter_subcore(s);
            launch().atomic = fibers[s].atomic;
            fibers[s].waits_for = -1;
            swapcontext(&scheduler, &fibers[s].context);
            if (stopped) throw Stop{};
            moved = true;
        }
        for (int s = 0; s <= last; ++s) left |= !fibers[s].done;
        if (left && !moved) deadlock(0, last);
    }
}

void run_block(const Entry& entry, void** arguments) {
    if (launch().cube && launch().vector_cores) return run_mixed(entry, arguments);
    enter_subcore(0);
    launch().atomic = PLAIN;
    subcore_begins(0);
    entry.call(arguments);
    subcore_ends();
}

void kind_of_kernel(int type) {
    // KERNEL_TYPE_AIV_ONLY, AIC_ONLY, MIX_AIV_1_0, MIX_AIC_1_0, MIX_AIC_1_1, MIX_AIC_1_2
    static const int vector_cores[] = {1, 0, 1, 0, 1, 2};
    static const bool cube[] = {false, true, false, true, true, true};
    launch().kernel_type = type;
    launch().vector_cores = vector_cores[type];
    launch().cube = cube[type];
}

void run(const char* name, const uint32_t grid[3], void** arguments, int count) {
    const Entry& entry = entry_of(name, count);
    if (grid[1] > 1 || grid[2] > 1) stop(MISUSE, 0, "the number of cores has one dimension");
    if (grid[0] < 1 || grid[0] > 65535)
        stop(MISUSE, 0, "a launch takes 1 to 65535 cores, not %u", grid[0]);
    launch().blocks = grid[0];
    kind_of_kernel(entry.cores);
    for (uint32_t block = 0; block < grid[0]; ++block) {
        block_begins(block);
        run_block(entry, arguments);
        block_ends();
    }
}

}  // namespace

void let_others_run(int waits_for, int line) {
    Fiber& self = fibers[running];
    self.waits_for = waits_for;
    self.line = line;
    self.atomic = launch().atomic;
    swapcontext(&self.context, &scheduler);
}

}  // namespace emu

extern "C" __attribute__((visibility("default"))) int emu_launch(
    const char* entry, const uint32_t grid[3], const uint32_t*, const uint32_t*, uint64_t,
    void** args, int arg_count, const EmuTensor* tensors, int tensor_count, int checks,
    EmuReport* report) {
    using namespace emu;
    memset(report, 0, sizeof *report);
    report->thread_a = report->thread_b = -1;
    core.checks = checks;
    core.report = report;
    core.tensors = tensors;
    core.tensor_count = tensor_count;
    core.operations.resize(1);
    shadow_forget(true);
    try {
        run(entry, grid, args, arg_count);
    } catch (const Stop&) {
    }
    for (Operation& op : core.operations) delete op.body, op.body = nullptr;
    for (auto& queue : core.queue) queue.clear();
    return report->kind;
}
