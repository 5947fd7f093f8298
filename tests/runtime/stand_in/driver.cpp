// A driver's library with one device made of host memory. It exports a vendor's functions by their documented
// names, checks every call, and runs the kernel `add` itself: c[i] = a[i] + b[i] for n elements.
//   g++ -shared -fPIC -DSTYLE_DRIVER -DPREFIX=mu driver.cpp     names as muMemAlloc_v2
//   g++ -shared -fPIC -DSTYLE_RUNTIME -DPREFIX=hip driver.cpp   names as hipMalloc
//   g++ -shared -fPIC -DSTYLE_RUNTIME -DSTYLE_SYMBOLS -DPREFIX=cuda driver.cpp   kernels are functions of the program
//   g++ -shared -fPIC -DSTYLE_ACL -DPREFIX=aclrt driver.cpp     AscendCL
//   g++ -shared -fPIC -DSTYLE_CNRT -DPREFIX=cnrt driver.cpp     CNRT
// A wrong call gives status 1 and a line on `stand_in_report`; `stand_in_log` lists the launches.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(PREFIX, name)
#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
std::string report, trace;
bool started = false, current = false;
std::map<uintptr_t, size_t> memory;
std::set<void*> modules, events, recorded;
struct Function {
    std::string name;
    unsigned shared = 0;
};
std::map<void*, Function*> functions;
const uintptr_t STREAM = 0x57;  // the one stream that exists beside the default
constexpr int MOST_THREADS = 512;
constexpr unsigned FREE_SHARED = 48 * 1024, MOST_SHARED = 64 * 1024;

int wrong(const char* what) {
    report += what;
    report += '\n';
    return 1;
}
#define CHECK(condition, what) \
    do {                       \
        if (!(condition)) return wrong(what); \
    } while (0)

bool inside(uintptr_t at, size_t bytes) {
    auto it = memory.upper_bound(at);
    if (it == memory.begin()) return false;
    --it;
    return at >= it->first && at + bytes <= it->first + it->second;
}
bool known(void* stream) { return !stream || reinterpret_cast<uintptr_t>(stream) == STREAM; }

int allocate(uintptr_t* address, size_t bytes) {
    CHECK(current, "allocation without a current device");
    CHECK(bytes > 0, "allocation of nothing");
    *address = reinterpret_cast<uintptr_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    memory[*address] = bytes;
    return 0;
}
int release(uintptr_t address) {
    CHECK(memory.count(address), "free of what was not allocated");
    memory.erase(address);
    std::free(reinterpret_cast<void*>(address));
    return 0;
}
int copy(uintptr_t to, uintptr_t from, size_t bytes, bool device_is_to) {
    CHECK(current, "copy without a current device");
    CHECK(inside(device_is_to ? to : from, bytes), "copy outside of device memory");
    CHECK(!inside(device_is_to ? from : to, 1), "copy between device addresses");
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    return 0;
}
int load(void** module, const void* image) {
    CHECK(current, "module without a current device");
    CHECK(image && !std::strncmp(static_cast<const char*>(image), "MODULE:", 7), "image of another format");
    *module = strdup(static_cast<const char*>(image));
    modules.insert(*module);
    return 0;
}
int find(void** function, void* module, const char* name) {
    CHECK(modules.count(module), "function of no module");
    CHECK(std::strstr(static_cast<char*>(module), (std::string(" ") + name + "(").c_str()),
          "no such function in the module");
    auto* made = new Function{name};
    functions[made] = made;
    *function = made;
    return 0;
}
int attribute(void* function, int which, int value) {
    CHECK(functions.count(function), "attribute of no function");
    CHECK(which == 8, "another attribute than the dynamic shared memory");
    CHECK(value > 0 && unsigned(value) <= MOST_SHARED, "more shared memory than a block can have");
    functions[function]->shared = unsigned(value);
    return 0;
}
int run(const Function& own, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void* stream, void** arguments, void** extra);
int launch(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
           unsigned shared, void* stream, void** arguments, void** extra) {
    CHECK(current, "launch without a current device");
    CHECK(functions.count(function), "launch of no function");
    return run(*functions[function], gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}
int run(const Function& own, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void* stream, void** arguments, void** extra) {
    CHECK(gx && gy && gz && bx && by && bz, "an empty grid or block");
    CHECK(bx * by * bz <= unsigned(MOST_THREADS), "more threads than the function takes: the driver crashes");
    CHECK(shared <= FREE_SHARED || shared <= own.shared, "dynamic shared memory without leave");
    CHECK(known(stream), "an unknown stream");
    CHECK(arguments && !extra, "arguments in both ways, or in none");
    trace += own.name + " grid " + std::to_string(gx) + " block " + std::to_string(bx) + " shared " +
             std::to_string(shared) + " stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)) + "\n";
    if (own.name.compare(0, 3, "add")) return 0;
    float* tensors[3];
    for (int i = 0; i < 3; ++i) std::memcpy(&tensors[i], arguments[i], sizeof(float*));
    int n;
    std::memcpy(&n, arguments[3], sizeof n);
    for (float* tensor : tensors)
        CHECK(inside(reinterpret_cast<uintptr_t>(tensor), size_t(n) * 4), "an argument outside of device memory");
    for (int i = 0; i < n; ++i) tensors[2][i] = tensors[0][i] + tensors[1][i];
    return 0;
}
#ifdef STYLE_SYMBOLS
int launch_symbol(const void* kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void* stream, void** arguments) {
    CHECK(current, "launch without a current device");
    Dl_info about;
    CHECK(dladdr(const_cast<void*>(kernel), &about) && about.dli_sname, "launch of no function");
    auto& own = functions[const_cast<void*>(kernel)];
    if (!own) own = new Function{about.dli_sname};
    return run(*own, gx, gy, gz, bx, by, bz, shared, stream, arguments, nullptr);
}
#endif
int event_made(void** event) {
    CHECK(current, "event without a current device");
    *event = new char;
    events.insert(*event);
    return 0;
}
int event_recorded(void* event, void* stream) {
    CHECK(events.count(event), "record of no event");
    CHECK(known(stream), "record in an unknown stream");
    recorded.insert(event);
    return 0;
}
int event_awaited(void* event) {
    CHECK(recorded.count(event), "wait for an event that was never recorded");
    return 0;
}
int event_gone(void* event) {
    CHECK(events.erase(event), "destruction of no event");
    recorded.erase(event);
    delete static_cast<char*>(event);
    return 0;
}
int between(float* ms, void* start, void* end) {
    CHECK(recorded.count(start) && recorded.count(end), "time between events that were not recorded");
    *ms = 1.5f;
    return 0;
}
}  // namespace

EXPORT const char* stand_in_report() { return report.c_str(); }
EXPORT const char* stand_in_log() { return trace.c_str(); }
EXPORT int stand_in_open() { return int(memory.size() + events.size()); }

#ifdef STYLE_DRIVER
EXPORT int NAME(Init)(unsigned flags) {
    CHECK(!flags, "init with flags");
    started = true;
    return 0;
}
EXPORT int NAME(DeviceGet)(int* device, int index) {
    CHECK(started, "a device before init");
    CHECK(index == 0, "no such device");
    *device = 7;
    return 0;
}
EXPORT int NAME(DevicePrimaryCtxRetain)(void** context, int device) {
    CHECK(device == 7, "the context of no device");
    *context = &current;
    return 0;
}
EXPORT int NAME(CtxSetCurrent)(void* context) {
    CHECK(context == &current, "no such context");
    current = true;
    return 0;
}
EXPORT int NAME(MemAlloc_v2)(uintptr_t* address, size_t bytes) { return allocate(address, bytes); }
EXPORT int NAME(MemFree_v2)(uintptr_t address) { return release(address); }
EXPORT int NAME(MemcpyHtoD_v2)(uintptr_t to, uintptr_t from, size_t bytes) { return copy(to, from, bytes, true); }
EXPORT int NAME(MemcpyDtoH_v2)(uintptr_t to, uintptr_t from, size_t bytes) { return copy(to, from, bytes, false); }
EXPORT int NAME(ModuleLoadData)(void** module, const void* image) { return load(module, image); }
EXPORT int NAME(ModuleGetFunction)(void** f, void* module, const char* name) { return find(f, module, name); }
EXPORT int NAME(FuncSetAttribute)(void* f, int which, int value) { return attribute(f, which, value); }
EXPORT int NAME(FuncGetAttribute)(int* value, int which, void* f) {
    CHECK(functions.count(f) && which == 0, "another attribute than the most threads");
    *value = MOST_THREADS;
    return 0;
}
EXPORT int NAME(LaunchKernel)(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                              unsigned shared, void* stream, void** arguments, void** extra) {
    return launch(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}
EXPORT int NAME(EventCreate)(void** event, unsigned flags) {
    CHECK(!flags, "an event with flags keeps no time");
    return event_made(event);
}
EXPORT int NAME(EventRecord)(void* event, void* stream) { return event_recorded(event, stream); }
EXPORT int NAME(EventSynchronize)(void* event) { return event_awaited(event); }
EXPORT int NAME(EventElapsedTime)(float* ms, void* start, void* end) { return between(ms, start, end); }
EXPORT int NAME(EventDestroy_v2)(void* event) { return event_gone(event); }
EXPORT int NAME(GetErrorName)(int, const char** text) {
    *text = "ERROR_INVALID_VALUE";
    return 0;
}
#endif

#ifdef STYLE_RUNTIME
EXPORT int NAME(Init)(unsigned flags) {
    CHECK(!flags, "init with flags");
    return 0;
}
EXPORT int NAME(SetDevice)(int index) {
    CHECK(index == 0, "no such device");
    current = true;
    return 0;
}
EXPORT int NAME(Malloc)(uintptr_t* address, size_t bytes) { return allocate(address, bytes); }
EXPORT int NAME(Free)(uintptr_t address) { return release(address); }
EXPORT int NAME(Memcpy)(uintptr_t to, uintptr_t from, size_t bytes, int kind) {
    CHECK(kind == 1 || kind == 2, "another kind of copy");
    return copy(to, from, bytes, kind == 1);
}
EXPORT int NAME(ModuleLoadData)(void** module, const void* image) { return load(module, image); }
EXPORT int NAME(ModuleGetFunction)(void** f, void* module, const char* name) { return find(f, module, name); }
EXPORT int NAME(FuncSetAttribute)(void* f, int which, int value) { return attribute(f, which, value); }
EXPORT int NAME(ModuleLaunchKernel)(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                    unsigned bz, unsigned shared, void* stream, void** arguments, void** extra) {
    return launch(f, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
}
#ifdef STYLE_SYMBOLS
struct Extents {
    unsigned x, y, z;
};
EXPORT int NAME(LaunchKernel)(const void* f, Extents grid, Extents block, void** arguments, size_t shared,
                              void* stream) {
    return launch_symbol(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, unsigned(shared), stream, arguments);
}
#endif
EXPORT int NAME(EventCreate)(void** event) { return event_made(event); }
EXPORT int NAME(EventRecord)(void* event, void* stream) { return event_recorded(event, stream); }
EXPORT int NAME(EventSynchronize)(void* event) { return event_awaited(event); }
EXPORT int NAME(EventElapsedTime)(float* ms, void* start, void* end) { return between(ms, start, end); }
EXPORT int NAME(EventDestroy)(void* event) { return event_gone(event); }
EXPORT const char* NAME(GetErrorName)(int) { return "ErrorInvalidValue"; }
#endif

#ifdef STYLE_ACL
EXPORT int aclInit(const char* config) {
    CHECK(!config && !started, "init twice, or with a file");
    started = true;
    return 0;
}
EXPORT int NAME(SetDevice)(int index) {
    CHECK(started && index == 0, "no such device, or a device before init");
    current = true;
    return 0;
}
EXPORT int NAME(Malloc)(uintptr_t* address, size_t bytes, int policy) {
    CHECK(policy == 0, "another policy");
    return allocate(address, bytes);
}
EXPORT int NAME(Free)(uintptr_t address) { return release(address); }
EXPORT int NAME(Memcpy)(uintptr_t to, size_t most, uintptr_t from, size_t bytes, int kind) {
    CHECK(kind == 1 || kind == 2, "another kind of copy");
    CHECK(bytes <= most, "a copy that does not fit");
    return copy(to, from, bytes, kind == 1);
}
EXPORT int NAME(SynchronizeStream)(void* stream) {
    CHECK(known(stream), "wait for an unknown stream");
    return 0;
}
EXPORT int NAME(CreateEvent)(void** event) { return event_made(event); }
EXPORT int NAME(RecordEvent)(void* event, void* stream) { return event_recorded(event, stream); }
EXPORT int NAME(EventElapsedTime)(float* ms, void* start, void* end) { return between(ms, start, end); }
EXPORT int NAME(DestroyEvent)(void* event) { return event_gone(event); }
static int last;
EXPORT int NAME(GetLastError)(int level) {
    CHECK(level == 0, "another level");
    const int status = last;
    last = 0;
    return status;
}
EXPORT void stand_in_launch(const char* name, unsigned blocks, int dynamic, void* stream, void** arguments) {
    last = dynamic ? wrong("dynamic memory of a core")
                   : run(Function{name}, blocks, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr);
}
#endif

#ifdef STYLE_CNRT
EXPORT int NAME(SetDevice)(int index) {
    CHECK(index == 0, "no such device");
    current = true;
    return 0;
}
EXPORT int NAME(Malloc)(uintptr_t* address, size_t bytes) { return allocate(address, bytes); }
EXPORT int NAME(Free)(uintptr_t address) { return release(address); }
EXPORT int NAME(Memcpy)(uintptr_t to, uintptr_t from, size_t bytes, int kind) {
    CHECK(kind == 0 || kind == 2, "another kind of copy");
    return copy(to, from, bytes, kind == 0);
}
EXPORT int NAME(QueueSync)(void* queue) {
    CHECK(known(queue), "wait for an unknown stream");
    return 0;
}
EXPORT int NAME(NotifierCreate)(void** event) { return event_made(event); }
EXPORT int NAME(PlaceNotifier)(void* event, void* queue) { return event_recorded(event, queue); }
EXPORT int NAME(WaitNotifier)(void* event) { return event_awaited(event); }
EXPORT int NAME(NotifierElapsedTime)(void* start, void* end, float* ms) { return between(ms, start, end); }
EXPORT int NAME(NotifierDestroy)(void* event) { return event_gone(event); }
EXPORT const char* NAME(GetErrorName)(int) { return "cnrtErrorArgsInvalid"; }
static int last;
EXPORT int NAME(GetLastError)() {
    const int status = last;
    last = 0;
    return status;
}
struct Tasks {
    unsigned x, y, z;
};
EXPORT void stand_in_launch(const char* name, Tasks tasks, int type, void* queue, void** arguments) {
    last = type != 1 ? wrong("another kind of task than Block")
                     : run(Function{name}, tasks.x, tasks.y, tasks.z, 1, 1, 1, 0, queue, arguments, nullptr);
}
#endif
