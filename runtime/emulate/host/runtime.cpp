// A vendor's runtime for emulated kernels: memory is the host's, a launch runs the kernel's module.
// Compiled with the headers of include/VENDOR in front; EMU_API is theirs.
#include EMU_HEADER

#include <dlfcn.h>

#include <chrono>
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

using Error = EMU_API(Error_t);
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

thread_local Error last_error = EMU_API(Success);

Error told(Error error) {
    if (error != EMU_API(Success)) last_error = error;
    return error;
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
            if (std::strncmp(row, "kernel:", 7)) continue;
            const std::string line = std::to_string(std::atoi(row + 7));
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
    std::fprintf(stderr, "%s: %s: %s\n", kernel.text, kernel.name, text.c_str());
}

Error run(const void* handle, dim3 grid, dim3 block, const uint32_t (&cluster)[3], void** args,
          size_t shared) {
    std::lock_guard<std::mutex> lock(state().mutex);
    const EmulatedKernel* kernel = find_kernel(handle);
    if (!kernel) return EMU_API(ErrorInvalidDeviceFunction);
    const auto granted = state().dynamic_shared.find(handle);
    const size_t most = granted == state().dynamic_shared.end() ? emulated_static_shared : granted->second;
    if (shared > most) return EMU_API(ErrorInvalidValue);
    Module* module = find_module(kernel->module);
    if (!module) return EMU_API(ErrorInvalidDeviceFunction);
    std::vector<EmuTensor> tensors;
    for (const auto& [start, bytes] : state().memory)
        tensors.push_back({"device memory", const_cast<char*>(start), bytes, 1});
    const uint32_t blocks[] = {grid.x, grid.y, grid.z}, threads[] = {block.x, block.y, block.z};
    uint64_t sizes[256];
    const int count = module->parameters(kernel->name, sizes, 256);
    static EmuReport report;  // under the lock; large
    module->launch(kernel->name, blocks, threads, cluster, shared, args, count, tensors.data(),
                   int(tensors.size()), emulated_checks, &report);
    if (report.kind == EMU_OK) return EMU_API(Success);
    print(*kernel, *module, report);
    return EMU_API(ErrorLaunchFailure);
}

}  // namespace

EXPORTED Error EMU_API(Malloc)(void** pointer, size_t bytes) {
    if (!pointer) return told(EMU_API(ErrorInvalidValue));
    *pointer = nullptr;
    if (bytes == 0) return EMU_API(Success);
    constexpr size_t align = 256, guard = 256;  // nothing lies right behind an array
    auto* start = static_cast<char*>(std::aligned_alloc(align, (bytes + guard + align - 1) / align * align));
    if (!start) return told(EMU_API(ErrorMemoryAllocation));
    std::memset(start, 0xff, bytes);  // NaN: nobody has written it
    std::lock_guard<std::mutex> lock(state().mutex);
    state().memory[start] = bytes;
    *pointer = start;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(Free)(void* pointer) {
    if (!pointer) return EMU_API(Success);
    std::lock_guard<std::mutex> lock(state().mutex);
    if (!state().memory.erase(static_cast<char*>(pointer))) return told(EMU_API(ErrorInvalidValue));
    std::free(pointer);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(Memcpy)(void* to, const void* from, size_t bytes, EMU_API(MemcpyKind)) {
    if (bytes) std::memmove(to, from, bytes);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(MemcpyAsync)(void* to, const void* from, size_t bytes,
                                    EMU_API(MemcpyKind) kind, EMU_API(Stream_t)) {
    return EMU_API(Memcpy)(to, from, bytes, kind);
}

EXPORTED Error EMU_API(Memset)(void* pointer, int value, size_t bytes) {
    if (bytes) std::memset(pointer, value, bytes);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(MemsetAsync)(void* pointer, int value, size_t bytes, EMU_API(Stream_t)) {
    return EMU_API(Memset)(pointer, value, bytes);
}

EXPORTED Error EMU_API(GetDevice)(int* device) {
    *device = 0;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(SetDevice)(int device) {
    return device == 0 ? EMU_API(Success) : told(EMU_API(ErrorInvalidDevice));
}

EXPORTED Error EMU_API(GetDeviceCount)(int* count) {
    *count = 1;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(DeviceGetAttribute)(int* value, EMU_ATTRIBUTE attribute, int device) {
    if (device != 0) return told(EMU_API(ErrorInvalidDevice));
    switch (int(attribute)) {
        case 1: *value = 1024; break;
        case 8: *value = int(emulated_static_shared); break;
        case 10: *value = int(emulated_warp_size); break;
        case 16: *value = 1; break;
        case 75: *value = emulated_level / 10; break;
        case 76: *value = emulated_level % 10; break;
        case 97: *value = int(emulated_total_shared); break;
        default: return told(EMU_API(ErrorInvalidValue));
    }
    return EMU_API(Success);
}

EXPORTED Error EMU_API(DeviceSynchronize)(void) { return EMU_API(Success); }

EXPORTED Error EMU_API(GetLastError)(void) {
    const Error error = last_error;
    last_error = EMU_API(Success);
    return error;
}

EXPORTED Error EMU_API(PeekAtLastError)(void) { return last_error; }

EXPORTED const char* EMU_API(GetErrorString)(Error error) {
    switch (error) {
        case EMU_API(Success): return "no error";
        case EMU_API(ErrorInvalidValue): return "invalid argument";
        case EMU_API(ErrorMemoryAllocation): return "out of memory";
        case EMU_API(ErrorInvalidDeviceFunction): return "not a kernel of this library";
        case EMU_API(ErrorInvalidDevice): return "there is one emulated device, number 0";
        case EMU_API(ErrorLaunchFailure): return "the kernel did what it must not do";
        case EMU_API(ErrorNotSupported): return "not emulated";
    }
    return "unknown error";
}

EXPORTED const char* EMU_API(GetErrorName)(Error error) { return EMU_API(GetErrorString)(error); }

EXPORTED Error EMU_API(StreamCreate)(EMU_API(Stream_t)* stream) {
    *stream = nullptr;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(StreamDestroy)(EMU_API(Stream_t)) { return EMU_API(Success); }
EXPORTED Error EMU_API(StreamSynchronize)(EMU_API(Stream_t)) { return EMU_API(Success); }

struct EMU_EVENT {
    std::chrono::steady_clock::time_point at;
};

EXPORTED Error EMU_API(EventCreate)(EMU_API(Event_t)* event) {
    *event = new EMU_EVENT;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(EventDestroy)(EMU_API(Event_t) event) {
    delete event;
    return EMU_API(Success);
}

EXPORTED Error EMU_API(EventRecord)(EMU_API(Event_t) event, EMU_API(Stream_t)) {
    event->at = std::chrono::steady_clock::now();
    return EMU_API(Success);
}

EXPORTED Error EMU_API(EventSynchronize)(EMU_API(Event_t)) { return EMU_API(Success); }

EXPORTED Error EMU_API(EventElapsedTime)(float* ms, EMU_API(Event_t) from, EMU_API(Event_t) to) {
    *ms = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return EMU_API(Success);
}

EXPORTED Error EMU_API(FuncSetAttribute)(const void* kernel, EMU_API(FuncAttribute), int value) {
    if (!find_kernel(kernel)) return told(EMU_API(ErrorInvalidDeviceFunction));
    if (value < 0 || unsigned(value) > emulated_total_shared) return told(EMU_API(ErrorInvalidValue));
    std::lock_guard<std::mutex> lock(state().mutex);
    state().dynamic_shared[kernel] = size_t(value);
    return EMU_API(Success);
}

EXPORTED Error EMU_API(LaunchKernel)(const void* kernel, dim3 grid, dim3 block, void** args,
                                     size_t shared, EMU_API(Stream_t)) {
    return told(run(kernel, grid, block, {0, 0, 0}, args, shared));
}

#ifdef CUDART_VERSION
#include "tensor_maps.inc"

EXPORTED Error cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
    uint32_t cluster[3] = {0, 0, 0};
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) continue;
        const auto& wanted = config->attrs[i].val.clusterDim;
        cluster[0] = wanted.x, cluster[1] = wanted.y, cluster[2] = wanted.z;
    }
    return told(run(kernel, config->gridDim, config->blockDim, cluster, args, config->dynamicSmemBytes));
}

EXPORTED Error cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                                unsigned long long,
                                                cudaDriverEntryPointQueryResult* result) {
    const bool known = !std::strcmp(symbol, "cuTensorMapEncodeTiled");
    *function = known ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
    if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}
#endif
