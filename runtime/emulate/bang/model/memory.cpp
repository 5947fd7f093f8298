// On-chip memories: which arrays lie where, and which of their bytes hold a value.
#include "state.h"

extern "C" {
extern char __start_emu_nram[] __attribute__((weak, visibility("hidden")));
extern char __stop_emu_nram[] __attribute__((weak, visibility("hidden")));
extern char __start_emu_wram[] __attribute__((weak, visibility("hidden")));
extern char __stop_emu_wram[] __attribute__((weak, visibility("hidden")));
extern char __start_emu_sram[] __attribute__((weak, visibility("hidden")));
extern char __stop_emu_sram[] __attribute__((weak, visibility("hidden")));
}

namespace emu {

namespace {

struct Section {
    char *begin, *end;
    std::vector<uint8_t> unwritten;
};
Section sections[SPACES];
// Arrays of templates, which compilers leave out of these sections; they stay once they are known.
std::map<const char*, std::pair<Space, Section>>& apart() {
    static std::map<const char*, std::pair<Space, Section>> found;
    return found;
}

struct Array {
    const char* name;
    uint64_t bytes;
    bool everywhere;  // of the file, not of a function
};
bool launched = false;
std::map<const char*, Array>& arrays() {
    static std::map<const char*, Array> found;  // the text's own constructors fill it
    return found;
}

const std::pair<const char* const, Array>* array_at(const void* address) {
    const char* at = static_cast<const char*>(address);
    auto next = arrays().upper_bound(at);
    if (next == arrays().begin()) return nullptr;
    --next;
    return at < next->first + next->second.bytes ? &*next : nullptr;
}

Section* section_of(const void* address) {
    const char* at = static_cast<const char*>(address);
    for (Section& section : sections)
        if (at >= section.begin && at < section.end) return &section;
    auto next = apart().upper_bound(at);
    if (next == apart().begin()) return nullptr;
    Section& section = (--next)->second.second;
    return at < section.end ? &section : nullptr;
}

void forget(Section& section) {
    if (section.begin == section.end) return;
    memset(section.begin, POISON, static_cast<size_t>(section.end - section.begin));
    memset(section.unwritten.data(), 1, section.unwritten.size());
}

// Keeps an array of `space` that does not lie in its section.
void keep_apart(Space space, char* begin, size_t bytes) {
    const auto [place, added] =
        apart().insert({begin, {space, {begin, begin + bytes, std::vector<uint8_t>(bytes)}}});
    if (added) forget(place->second.second);
}

}  // namespace

// The arrays of one memory that a kernel has together: those of the file and of functions it is in.
static void check_room(Space space) {
    uint64_t total = 0;
    for (const auto& [begin, array] : arrays())
        if (space_of(begin) == space) total += (array.bytes + 63) / 64 * 64;
    if (total > module.bytes[space])
        stop(MISUSE, 0, "arrays in %s take %llu bytes, but mtp_%d has %llu for them",
             space_name(space), static_cast<unsigned long long>(total), module.arch,
             static_cast<unsigned long long>(module.bytes[space]));
}

Named::Named(const char* name, Space space, const void* begin, size_t bytes) {
    char* at = const_cast<char*>(static_cast<const char*>(begin));
    if (launched && !section_of(at)) keep_apart(space, at, bytes);
    const bool known = arrays().count(at);
    arrays()[at] = {name, bytes, !launched};
    if (launched && !known) check_room(space);
}

void memories_begin() {
    sections[NRAM].begin = __start_emu_nram, sections[NRAM].end = __stop_emu_nram;
    sections[WRAM].begin = __start_emu_wram, sections[WRAM].end = __stop_emu_wram;
    sections[SRAM].begin = __start_emu_sram, sections[SRAM].end = __stop_emu_sram;
    for (const Space space : {NRAM, WRAM, SRAM}) {
        Section& section = sections[space];
        section.unwritten.resize(static_cast<size_t>(section.end - section.begin));
        check_room(space);
    }
    launched = true;
}

void forget_contents() {
    for (auto next = arrays().begin(); next != arrays().end();)
        next = next->second.everywhere ? std::next(next) : arrays().erase(next);
    for (Section& section : sections) forget(section);
    for (auto& [begin, held] : apart()) forget(held.second);
}

Space space_of(const void* address) {
    for (const Space space : {NRAM, WRAM, SRAM}) {
        const char* at = static_cast<const char*>(address);
        if (at >= sections[space].begin && at < sections[space].end) return space;
    }
    const char* at = static_cast<const char*>(address);
    const auto next = apart().upper_bound(at);
    if (next != apart().begin() && at < std::prev(next)->second.second.end)
        return std::prev(next)->second.first;
    for (int i = 0; i < core.tensor_count; ++i) {  // a little past its end is meant to be in it
        const char* base = static_cast<const char*>(core.tensors[i].base);
        if (at + 4096 > base && at < base + core.tensors[i].bytes + 4096) return GDRAM;
    }
    return LDRAM;
}

const char* holder(const void* address) {
    if (const auto* array = array_at(address)) return array->second.name;
    if (const EmuTensor* tensor = tensor_at(address, 1)) return tensor->name;
    return space_name(space_of(address));
}

uint64_t inside(const void* address) {
    const char* at = static_cast<const char*>(address);
    if (const auto* array = array_at(address)) return static_cast<uint64_t>(at - array->first);
    return 0;
}

// Whether the bytes that nothing wrote still hold what they held: the core's own writes pass by.
bool unwritten(const void* address, uint64_t bytes) {
    Section* section = section_of(address);
    if (!section) return false;
    const char* at = static_cast<const char*>(address);
    bool found = false;
    for (uint64_t i = 0; i < bytes; ++i) {
        if (!section->unwritten[static_cast<size_t>(at + i - section->begin)]) continue;
        if (static_cast<uint8_t>(at[i]) != POISON) return false;
        found = true;
    }
    return found;
}

void mark_written(const void* address, uint64_t bytes, bool unspecified) {
    Section* section = section_of(address);
    if (!section) return;
    const size_t at = static_cast<size_t>(static_cast<const char*>(address) - section->begin);
    memset(section->unwritten.data() + at, unspecified, bytes);
}

void leaves(const void* from, uint64_t bytes, const char* name, int line) {
    if (!(core.checks & CHECK_MEMORY)) return;
    const char* at = static_cast<const char*>(from);
    const char* end = at + bytes;
    while (at < end) {
        uint64_t part = 4 - reinterpret_cast<uintptr_t>(at) % 4;
        if (part > static_cast<uint64_t>(end - at)) part = static_cast<uint64_t>(end - at);
        if (unwritten(at, part)) {
            const char* held = holder(at);
            say(core.report->array, sizeof core.report->array, "%s", held);
            stop(MEMORY, line, "%s takes byte %llu of %s, which nothing wrote", name,
                 static_cast<unsigned long long>(inside(at)), held);
        }
        at += part;
    }
}

void check_bounds(const char* name, int line, Space space, const void* address, uint64_t bytes,
                  bool write) {
    const char* verb = write ? "writes" : "reads";
    const char* at = static_cast<const char*>(address);
    if (space != GDRAM) {
        const auto* array = array_at(address);
        const char* end = array ? array->first + array->second.bytes : section_of(at)->end;
        if (bytes <= static_cast<uint64_t>(end - at)) return;
        if (!array)
            stop(MEMORY, line, "%s %s %llu bytes outside every array", name, verb,
                 static_cast<unsigned long long>(bytes));
        say(core.report->array, sizeof core.report->array, "%s", array->second.name);
        const uint64_t begin = inside(address);
        stop(MEMORY, line, "%s %s bytes %llu to %llu of %s, which has %llu", name, verb,
             static_cast<unsigned long long>(begin),
             static_cast<unsigned long long>(begin + bytes), array->second.name,
             static_cast<unsigned long long>(array->second.bytes));
    }
    const EmuTensor* tensor = tensor_at(address, bytes);
    if (tensor && write && !tensor->writable) {
        say(core.report->array, sizeof core.report->array, "%s", tensor->name);
        stop(MEMORY, line, "%s writes %s, an input", name, tensor->name);
    }
    if (tensor) return;
    for (int i = 0; i < core.tensor_count; ++i) {
        const EmuTensor& t = core.tensors[i];
        const char* base = static_cast<const char*>(t.base);
        if (at + bytes > base && at < base + t.bytes + 4096 && at + 4096 > base) {
            say(core.report->array, sizeof core.report->array, "%s", t.name);
            stop(MEMORY, line, "%s %s bytes %lld to %lld of %s, which has %llu", name, verb,
                 static_cast<long long>(at - base), static_cast<long long>(at - base + bytes),
                 t.name, static_cast<unsigned long long>(t.bytes));
        }
    }
    stop(MEMORY, line, "%s %s %llu bytes outside every tensor", name, verb,
         static_cast<unsigned long long>(bytes));
}

}  // namespace emu
