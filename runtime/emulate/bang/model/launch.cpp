// The module's export that runs an entry point, task by task.
#include <mutex>

#include "state.h"

namespace emu {

namespace {

void run_tasks(const char* name, const uint32_t grid[3], void** arguments, int count) {
    const Entry& entry = entry_of(name, count);
    if (!grid[0] || !grid[1] || !grid[2]) stop(MISUSE, 0, "a launch takes at least one task");
    memories_begin();
    task = Task{0, 0, 0, grid[0], grid[1], grid[2]};
    uint32_t number = 0;
    for (task.z = 0; task.z < grid[2]; ++task.z)
        for (task.y = 0; task.y < grid[1]; ++task.y)
            for (task.x = 0; task.x < grid[0]; ++task.x) {
                task_begins(number++);
                core.running = true;
                entry.call(arguments);
                core.running = false;
                task_ends();
            }
}

}  // namespace

}  // namespace emu

extern "C" __attribute__((visibility("default"))) int emu_launch(
    const char* entry, const uint32_t grid[3], const uint32_t*, const uint32_t*, uint64_t,
    void** args, int arg_count, const EmuTensor* tensors, int tensor_count, int checks,
    EmuReport* report) {
    using namespace emu;
    static std::mutex one;  // the core's state is one
    const std::lock_guard<std::mutex> lock(one);
    memset(report, 0, sizeof *report);
    report->thread_a = report->thread_b = -1;
    core.checks = checks;
    core.report = report;
    core.own = nullptr;
    task = Task{};
    core.tensors = tensors;
    core.tensor_count = tensor_count;
    shadow_forget(true);
    if (!setjmp(core.leave)) {
        try {
            run_tasks(entry, grid, args, arg_count);
        } catch (const Stop&) {
        } catch (...) {  // of the text, or memory that a call of absurd size does not get
            report->kind = UNSUPPORTED;
            say(report->text, sizeof report->text, "%s throws an exception", entry);
        }
    }
    core.running = false;
    for (auto& queue : core.pending) queue.clear();
    return report->kind;
}
