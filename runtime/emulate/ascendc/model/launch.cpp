// The module's one export: runs an entry point, core by core.
#include <stdio.h>

#include "state.h"

namespace emu {

namespace {

const Entry* find(const char* name) {
    for (int i = 0; i < module.entry_count; ++i)
        if (!strcmp(module.entries[i].name, name)) return &module.entries[i];
    return nullptr;
}

void run(const char* name, const uint32_t grid[3], void** arguments, int count) {
    const Entry* entry = find(name);
    if (!entry) stop(MISUSE, 0, "no entry point %s", name);
    if (entry->arguments != count)
        stop(MISUSE, 0, "%s takes %d arguments, not %d", name, entry->arguments, count);
    if (grid[1] > 1 || grid[2] > 1) stop(MISUSE, 0, "the number of cores has one dimension");
    if (grid[0] < 1 || grid[0] > 65535)
        stop(MISUSE, 0, "a launch takes 1 to 65535 cores, not %u", grid[0]);
    launch().blocks = grid[0];
    for (uint32_t block = 0; block < grid[0]; ++block) {
        block_begins(block);
        entry->call(arguments);
        block_ends();
    }
}

}  // namespace

}  // namespace emu

extern "C" __attribute__((visibility("default"))) int emu_parameters(const char* entry,
                                                                     uint64_t* sizes,
                                                                     int capacity) {
    const emu::Entry* found = emu::find(entry);
    if (!found) return -1;
    for (int i = 0; i < found->arguments && i < capacity; ++i) sizes[i] = found->sizes[i];
    return found->arguments;
}

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
    } catch (const Stop&) {}
    for (Operation& op : core.operations) delete op.body, op.body = nullptr;
    for (auto& queue : core.queue) queue.clear();
    return report->kind;
}
