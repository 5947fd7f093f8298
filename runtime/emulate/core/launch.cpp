// emu_launch: checks the request, sets the blocks up, runs them over the processor's cores.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "cells.h"
#include "entry.h"
#include "fiber.h"
#include "schedule.h"
#include "shadow.h"
#include "signals.h"
#include "stopped.h"

namespace emu {

Launch launch;

void Fiber::learn(ClockRef clock) {
    known = std::move(clock);
    known_at = known.get()->at.data();
}

void block_index(uint32_t team, uint32_t rank, uint32_t (&index)[3]) {
    const uint32_t* c = launch.cluster;
    const uint32_t teams[3] = {launch.grid[0] / c[0], launch.grid[1] / c[1], launch.grid[2] / c[2]};
    index[0] = team % teams[0] * c[0] + rank % c[0];
    index[1] = team / teams[0] % teams[1] * c[1] + rank / c[0] % c[1];
    index[2] = team / (teams[0] * teams[1]) * c[2] + rank / (c[0] * c[1]);
}

static const std::vector<uint32_t>& zeros() {
    static std::vector<uint32_t> none;
    const size_t actors = launch.block_threads * launch.team_blocks + launch.units;
    if (none.size() < actors) none.assign(actors, 0);
    return none;
}

static void start_fiber(Fiber& f, Block& block, uint32_t linear) {
    f.block = &block;
    f.team = block.team;
    f.linear = linear;
    f.id = block.rank * block.threads + linear;
    f.index[0] = linear % launch.block[0];
    f.index[1] = linear / launch.block[0] % launch.block[1];
    f.index[2] = linear / (launch.block[0] * launch.block[1]);
    f.lane = linear % launch.warp_size;
    f.warp = &block.warps[linear / launch.warp_size];
    f.warp->lane[f.lane] = &f;
    f.warp->exists |= one_lane(f.lane);
    f.warp->alive = f.warp->exists;
    f.doing = nullptr;
    f.where = nullptr;
    f.time = 1;
    f.known = ClockRef();
    f.known_at = zeros().data();
    f.fenced_any = false;
    f.fenced_time = 0;
    f.fenced_known = ClockRef();
    f.suspect.bytes = 0;
    f.copy_group = 0;
    f.copies.clear();
    f.polls = 0;
    f.explain = nullptr;
    for (auto& fences : f.proxy_fences) fences.clear();
    f.watch_bytes = 0;
}

static void start_team(Worker& worker, uint32_t number) {
    Team& team = worker.team;
    team.worker = &worker;
    team.serial = number + 1;
    team.threads = team.live = launch.block_threads * launch.team_blocks;
    team.actors = team.threads + launch.units;
    team.issuer.assign(launch.units, 0);
    team.units.reset();
    for (uint32_t rank = 0; rank < launch.team_blocks; ++rank) {
        Block& block = team.blocks[rank];
        block.team = &team;
        block.rank = rank;
        block_index(number, rank, block.index);
        block.linear = block.index[0] + launch.grid[0] * (block.index[1] + launch.grid[1] * block.index[2]);
        block.threads = block.live = launch.block_threads;
        block.fibers = team.fibers + size_t(rank) * block.threads;
        block.warps.assign((block.threads + launch.warp_size - 1) / launch.warp_size, Warp{});
        for (size_t w = 0; w < block.warps.size(); ++w) {
            block.warps[w].block = &block;
            block.warps[w].number = uint32_t(w);
        }
        block.barriers.assign(16, Barrier{});
        if (block.marks) clear_arena_shadow(block);
        block.arrays.clear();
        block.parts.clear();
        block.visits.clear();
        block.top = ARENA_START;
        block.static_bytes = 0;
        for (uint32_t t = 0; t < block.threads; ++t) start_fiber(block.fibers[t], block, t);
    }
}

// A block's arena; with checks also its marks and, behind them, its cells.
constexpr size_t SHADOW_BYTES = ARENA_BYTES + ARENA_BYTES / 4 * sizeof(Cell);

static void* reserve(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return memory;
}

static void open_worker(Worker& worker, size_t number) {
    const size_t threads = size_t(launch.block_threads) * launch.team_blocks;
    worker.team.fibers = pool.fibers + number * threads;
    worker.ring.assign(threads + 1, nullptr);
    worker.team.blocks.assign(launch.team_blocks, Block{});
    worker.arenas = static_cast<unsigned char*>(reserve(ARENA_BYTES * (launch.team_blocks + 1)));
    if (checking())
        worker.marks = static_cast<unsigned char*>(reserve(SHADOW_BYTES * launch.team_blocks));
    auto* aligned = reinterpret_cast<unsigned char*>(
        (reinterpret_cast<uintptr_t>(worker.arenas) + ARENA_BYTES - 1) & ~(ARENA_BYTES - 1));
    for (uint32_t rank = 0; rank < launch.team_blocks; ++rank) {
        worker.team.blocks[rank].arena = aligned + ARENA_BYTES * rank;
        worker.team.blocks[rank].marks = worker.marks ? worker.marks + SHADOW_BYTES * rank : nullptr;
    }
}

static void close_worker(Worker& worker) {
    if (worker.arenas) munmap(worker.arenas, ARENA_BYTES * (launch.team_blocks + 1));
    if (worker.marks) munmap(worker.marks, SHADOW_BYTES * launch.team_blocks);
}

static void run_worker(Worker& worker, std::atomic<uint32_t>& next, uint32_t teams,
                       std::atomic<bool>& stop) {
    WatchScope watch(worker);
    while (!stop) {
        const uint32_t number = next++;
        if (number >= teams) return;
        start_team(worker, number);
        watch.restart();
        if (!run_team(worker)) stop = true;
    }
}

static void run_grid(EmuReport* report) {
    const uint32_t teams = uint32_t(uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2] /
                                    launch.team_blocks);
    // The checks keep one history, so they see one block after another.
    const size_t cores = checking() ? 1 : std::max(1u, std::thread::hardware_concurrency());
    std::vector<Worker> workers(std::max<size_t>(1, std::min<size_t>(cores, teams)));
    make_pool(workers.size() * launch.block_threads * launch.team_blocks);
    for (size_t i = 0; i < workers.size(); ++i) open_worker(workers[i], i);
    {
        SignalScope signals;
        std::atomic<uint32_t> next{0};
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (size_t i = 1; i < workers.size(); ++i)
            threads.emplace_back([&, i] { run_worker(workers[i], next, teams, stop); });
        run_worker(workers[0], next, teams, stop);
        for (std::thread& thread : threads) thread.join();
    }
    for (const Worker& worker : workers)
        if (worker.failed && report->kind == EMU_OK) *report = worker.report;
    for (Worker& worker : workers) close_worker(worker);
    free_pool();
}

static const Entry* find_entry(const char* name) {
    for (int i = 0; i < emu_module.count; ++i)
        if (!std::strcmp(emu_module.entries[i].name, name)) return &emu_module.entries[i];
    return nullptr;
}

// What a driver would refuse.
static std::string refusal(const char* name, int arg_count) {
    if (!launch.entry) return format("the file has no kernel %s", name);
    if (arg_count != launch.entry->parameters)
        return format("%s takes %d arguments, %d were given", name, launch.entry->parameters, arg_count);
    const uint64_t threads = uint64_t(launch.block[0]) * launch.block[1] * launch.block[2];
    if (threads == 0 || threads > 1024)
        return format("a block of %llu threads: 1 to 1024 are possible", (unsigned long long)threads);
    if (launch.entry->max_threads && threads > launch.entry->max_threads)
        return format("%s is launched with %llu threads a block; its __launch_bounds__ say %u", name,
                      (unsigned long long)threads, launch.entry->max_threads);
    if (launch.dynamic_shared > emu_module.total_limit)
        return format("%llu bytes of dynamic shared memory; %s has %u",
                      (unsigned long long)launch.dynamic_shared, emu_module.arch, emu_module.total_limit);
    for (int i = 0; i < 3; ++i) {
        if (launch.grid[i] == 0) return "a grid without blocks";
        if (launch.grid[i] % launch.cluster[i])
            return format("the grid is %u blocks wide, which clusters of %u do not divide",
                          launch.grid[i], launch.cluster[i]);
        if (launch.entry->cluster[i] && launch.entry->cluster[i] != launch.cluster[i])
            return format("%s is launched with clusters of %u; its __cluster_dims__ say %u", name,
                          launch.cluster[i], launch.entry->cluster[i]);
    }
    if (launch.grid[1] > 65535 || launch.grid[2] > 65535)
        return "a grid of more than 65535 blocks in y or z";
    return "";
}

static double seconds_allowed() {
    const char* text = std::getenv("TILE2C_EMULATE_SECONDS");
    const double seconds = text ? std::atof(text) : 0;
    return seconds > 0 ? seconds : 120;
}

}  // namespace emu

extern "C" __attribute__((visibility("default"))) int emu_parameters(const char* name,
                                                                     uint64_t* sizes, int capacity) {
    const emu::Entry* entry = emu::find_entry(name);
    if (!entry) return -1;
    for (int i = 0; i < entry->parameters && i < capacity; ++i) sizes[i] = entry->sizes[i];
    return entry->parameters;
}

extern "C" __attribute__((visibility("default"))) int emu_launch(
    const char* name, const uint32_t grid[3], const uint32_t block[3], const uint32_t cluster[3],
    uint64_t dynamic_shared, void** args, int arg_count, const EmuTensor* tensors, int tensor_count,
    int checks, EmuReport* report) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    using emu::launch;
    std::memset(report, 0, sizeof *report);
    report->thread_a = report->thread_b = -1;
    launch = emu::Launch();
    launch.entry = emu::find_entry(name);
    for (int i = 0; i < 3; ++i) {
        launch.grid[i] = grid[i];
        launch.block[i] = block[i];
        const uint32_t wanted = launch.entry ? launch.entry->cluster[i] : 0;
        launch.cluster[i] = cluster && cluster[i] ? cluster[i] : wanted ? wanted : 1;
    }
    launch.dynamic_shared = dynamic_shared;
    launch.args = args;
    launch.races = checks & EMU_CHECK_RACES;
    launch.memory = checks & EMU_CHECK_MEMORY;
    launch.warp_size = emu_module.warp_size;
    launch.seconds = emu::seconds_allowed();
    const std::string why = emu::refusal(name, arg_count);
    if (!why.empty()) {
        report->kind = EMU_MISUSE;
        std::strncpy(report->text, why.c_str(), sizeof report->text - 1);
        return report->kind;
    }
    launch.block_threads = block[0] * block[1] * block[2];
    launch.team_blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
    // Architectures before sm_90 have no units that need a clock of their own.
    const int level = std::strncmp(emu_module.arch, "sm_", 3) ? 0 : std::atoi(emu_module.arch + 3);
    launch.units = level >= 90 ? emu::UNIT_SLOTS * launch.team_blocks : 0;
    emu::open_shadow(tensors, tensor_count);
    try {
        emu::run_grid(report);
    } catch (const std::bad_alloc&) {
        report->kind = EMU_UNSUPPORTED;
        std::strncpy(report->text, "no memory for the launch", sizeof report->text - 1);
    }
    emu::close_shadow();
    return report->kind;
}
