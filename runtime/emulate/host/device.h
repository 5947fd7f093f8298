// Kernels and memory of the emulated device, for the runtimes of vendors that stand beside this file.
#pragma once
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "../abi.h"
#include "kernels.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using Launch = decltype(&emu_launch);
using Parameters = decltype(&emu_parameters);

struct Module {
    Launch launch = nullptr;
    Parameters parameters = nullptr;
    std::string path;
};

struct State {
    std::mutex mutex;
    std::map<const char*, size_t> memory;  // start and bytes of each allocation
    std::map<std::string, Module> modules;
    std::map<const void*, size_t> dynamic_shared;  // what each kernel was granted
};

// As the vendor's runtime it has a state of its own; launchers have none.
State& state() {
    static State* const whole = new State;  // threads may still run when the process ends
    return *whole;
}

std::string own_folder() {
    Dl_info info;
    if (!dladdr(reinterpret_cast<void*>(&own_folder), &info) || !info.dli_fname) return ".";
    const std::string path = info.dli_fname;
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

const EmulatedKernel* find_kernel(const void* handle) {
    for (int i = 0; i < emulated_kernel_count; ++i)
        if (emulated_kernels[i].handle == handle) return &emulated_kernels[i];
    return nullptr;
}

Module* find_module(const char* name) {
    Module& module = state().modules[name];
    if (module.launch) return &module;
    module.path = own_folder() + "/" + name;
    void* library = dlopen(module.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::fprintf(stderr, "tile2c emulator: %s\n", dlerror());
        return nullptr;
    }
    module.parameters = reinterpret_cast<Parameters>(dlsym(library, "emu_parameters"));
    module.launch = reinterpret_cast<Launch>(dlsym(library, "emu_launch"));
    return module.launch && module.parameters ? &module : nullptr;
}

// Lines of the kernel's file for the offsets `a+b+…` of a place, innermost first.
std::string lines_of(const std::string& library, const std::string& offsets) {
    std::string found, rest = offsets + "+";
    for (size_t at; (at = rest.find('+')) != std::string::npos; rest.erase(0, at + 1)) {
        const unsigned long place = std::strtoul(rest.substr(0, at).c_str(), nullptr, 16);
        char number[32];
        std::snprintf(number, sizeof number, "0x%lx", place - 1);
        const std::string command = "addr2line -i -s -e '" + library + "' " + number + " 2>/dev/null";
        FILE* lines = popen(command.c_str(), "r");
        if (!lines) continue;
        char row[256];
        while (std::fgets(row, sizeof row, lines)) {
            const char* colon = std::strchr(row, ':');
            const std::string file(row, colon ? size_t(colon - row) : 0);
            const bool bang = file.size() > 4 && file.substr(file.size() - 4) == ".mlu";
            if (file != "kernel" && file != "unit.cpp" && !bang) continue;
            const std::string line = std::to_string(std::atoi(colon + 1));
            found += found.empty() ? "line " + line : ", called from line " + line;
        }
        pclose(lines);
    }
    return found.empty() ? "an unknown line" : found;
}

void print(const EmulatedKernel& kernel, const Module& module, const EmuReport& report) {
    std::string text = report.text;
    for (size_t at; (at = text.find("<pc:")) != std::string::npos;) {
        const size_t end = text.find('>', at);
        if (end == std::string::npos) break;
        text.replace(at, end - at + 1, lines_of(module.path, text.substr(at + 4, end - at - 4)));
    }
    if (report.line_a && text.find("line ") == std::string::npos)
        text += " (line " + std::to_string(report.line_a) + ")";
    std::fprintf(stderr, "%s: %s: %s\n", kernel.text, kernel.name, text.c_str());
}


constexpr int NO_MODULE = -1;

// Runs a kernel, under the state's lock; EMU_OK, NO_MODULE, or a kind of report that was printed.
int run_kernel(const EmulatedKernel& kernel, const uint32_t (&blocks)[3], const uint32_t (&threads)[3],
               const uint32_t (&cluster)[3], void** args, size_t shared) {
    Module* module = find_module(kernel.module);
    if (!module) return NO_MODULE;
    std::vector<EmuTensor> tensors;
    for (const auto& [start, bytes] : state().memory)
        tensors.push_back({"device memory", const_cast<char*>(start), bytes, 1});
    uint64_t sizes[256];
    const int count = module->parameters(kernel.name, sizes, 256);
    static EmuReport report;  // under the lock; large
    module->launch(kernel.name, blocks, threads, cluster, shared, args, count, tensors.data(),
                   int(tensors.size()), emulated_checks, &report);
    if (report.kind != EMU_OK) print(kernel, *module, report);
    return report.kind;
}

// Memory that nobody has written, with nothing right behind it; null when there is none.
void* allocate(size_t bytes) {
    // Far enough that an access outside one array is not inside the next; untouched, it costs nothing.
    constexpr size_t align = 256, guard = 1 << 20;
    auto* start = static_cast<char*>(std::aligned_alloc(align, (bytes + guard + align - 1) / align * align));
    if (!start) return nullptr;
    std::memset(start, 0xff, bytes);  // NaN
    std::lock_guard<std::mutex> lock(state().mutex);
    state().memory[start] = bytes;
    return start;
}

bool release(void* pointer) {
    std::lock_guard<std::mutex> lock(state().mutex);
    if (!state().memory.erase(static_cast<char*>(pointer))) return false;
    std::free(pointer);
    return true;
}

}  // namespace
