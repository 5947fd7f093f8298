// A block's shared memory: one arena, arrays in order of first use, red zones between them.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "entry.h"
#include "shadow.h"

namespace emu {

// A text that stays, for reports.
static const char* kept(const std::string& text) {
    static std::mutex mutex;
    static std::set<std::string> texts;
    const std::lock_guard<std::mutex> lock(mutex);
    return texts.insert(text).first->c_str();
}

// The parts of structs that hold a byte: `A_shared`, or `A_shared or C_tile` where they share it.
static const char* parts_at(const Block& block, uint32_t offset, uint32_t* byte) {
    std::string names;
    for (const SharedPart& part : block.parts) {
        if (offset < part.at || offset >= part.at + part.bytes) continue;
        if (names.empty()) *byte = offset - part.at;
        names += (names.empty() ? "" : " or ") + std::string(part.name);
    }
    return names.empty() ? nullptr : kept(names);
}

const char* array_at(const Block& block, const void* at, uint32_t* byte) {
    const auto offset = uint32_t(static_cast<const unsigned char*>(at) - block.arena);
    if (const char* parts = parts_at(block, offset, byte)) return parts;
    const SharedArray* best = nullptr;
    for (const SharedArray& array : block.arrays) {
        if (array.at <= offset + RED_ZONE / 2 && (!best || array.at > best->at)) best = &array;
    }
    *byte = best ? offset - best->at : offset;
    return best ? best->name : "shared memory";
}

static void check_capacity(Block& block, const char* name, uint32_t bytes, bool dynamic, void* pc) {
    const uint64_t total = block.static_bytes + launch.dynamic_shared;
    if (!dynamic && block.static_bytes > emu_module.static_limit)
        fail(EMU_MISUSE,
             format("%s, %u bytes, brings static shared memory to %u bytes; %s allows %u, the rest "
                    "must be dynamic (declared at %s)", name, bytes, block.static_bytes,
                    emu_module.arch, emu_module.static_limit, place(pc).c_str()),
             me(), name);
    if (total > emu_module.total_limit)
        fail(EMU_MISUSE,
             format("the block needs %llu bytes of shared memory with %s; %s has %u (declared at %s)",
                    (unsigned long long)total, name, emu_module.arch, emu_module.total_limit,
                    place(pc).c_str()),
             me(), name);
}

unsigned char* place_array(Block& block, const char* name, const void* site, uint32_t bytes,
                           uint32_t align, bool dynamic, void* pc) {
    for (const SharedArray& array : block.arrays)
        if (array.site == site) return block.arena + array.at;
    // Blocks of a cluster have an array at one offset, whatever each uses first.
    const SharedArray* peer = nullptr;
    uint32_t top = block.top;
    for (const Block& other : block.team->blocks) {
        top = std::max(top, other.top);
        for (const SharedArray& array : other.arrays)
            if (array.site == site) peer = &array;
    }
    if (!dynamic) block.static_bytes = (block.static_bytes + align - 1) / align * align + bytes;
    check_capacity(block, name, bytes, dynamic, pc);
    // An odd multiple of the alignment asked for: code that relies on more must say so.
    uint32_t at = (top + uint32_t(RED_ZONE) + align - 1) / align * align;
    if (launch.memory && at / align % 2 == 0) at += align;
    if (peer) at = peer->at;
    if (at + bytes + RED_ZONE > ARENA_BYTES)
        fail(EMU_UNSUPPORTED, format("%s does not fit the emulator's %zu bytes for a block", name,
                                     ARENA_BYTES), me(), name);
    if (checking()) {
        const uint32_t from = std::min(block.top, at), to = at + bytes + uint32_t(RED_ZONE);
        std::memset(block.marks + from, 0, std::min<size_t>(to, ARENA_BYTES) - from);
        std::memset(block.marks + at, PLACED, bytes);
    }
    // Values that catch the eye where nothing was written: NaN in every floating type.
    std::memset(block.arena + at, 0xff, bytes);
    block.arrays.push_back({name, site, at, bytes});
    block.top = std::max(block.top, at + bytes);
    return block.arena + at;
}

uint32_t shared_address(Fiber* f, const void* at, void* pc) {
    const Block* block = arena_of(*f->team, at);
    if (!block)
        fail(EMU_MISUSE, format("%s takes the shared address of something that is not in shared "
                                "memory at %s", who(f).c_str(), place(pc).c_str()), f);
    const auto offset = uint32_t(static_cast<const unsigned char*>(at) - block->arena);
    // In a cluster the block's rank stands above the offset, one's own too.
    return f->team->blocks.size() == 1 ? offset : offset | (block->rank + 1) << 24;
}

unsigned char* shared_pointer(Fiber* f, uint32_t address, uint32_t bytes, const char* who_asks,
                              void* pc) {
    const uint32_t rank = address >> 24, offset = address & 0xffffff;
    const Block* block = f->block;
    if (rank && rank - 1 < f->team->blocks.size()) block = &f->team->blocks[rank - 1];
    if ((rank && rank - 1 >= f->team->blocks.size()) || offset + bytes > ARENA_BYTES)
        fail(EMU_MEMORY, format("%s hands %s the shared address %#x at %s, which is in no block",
                                who(f).c_str(), who_asks, address, place(pc).c_str()), f);
    return block->arena + offset;
}

}  // namespace emu

extern "C" {

void* emu_shared_array(const char* name, const void* site, uint64_t bytes, uint32_t align) {
    emu::Fiber* f = emu::me();
    return emu::place_array(*f->block, name, site, uint32_t(bytes), align, false, EMU_CALLER);
}

void emu_shared_part(const void* part, uint64_t bytes, const char* name) {
    emu::Block& block = *emu::me()->block;
    if (emu::arena_of(*emu::me()->team, part) != &block) return;
    const auto at = uint32_t(static_cast<const unsigned char*>(part) - block.arena);
    for (const emu::SharedPart& known : block.parts)
        if (known.at == at && known.bytes == bytes && !std::strcmp(known.name, name)) return;
    block.parts.push_back({name, at, uint32_t(bytes)});
}

void* emu_dynamic_shared(const char* name, uint32_t align) {
    static const char site = 0;
    emu::Fiber* f = emu::me();
    return emu::place_array(*f->block, name, &site, uint32_t(emu::launch.dynamic_shared),
                            align < 16 ? 16 : align, true, EMU_CALLER);
}

uint32_t emu_shared_address(const void* at) {
    return emu::shared_address(emu::me(), at, EMU_CALLER);
}

int emu_is_shared(const void* at) {
    emu::Fiber* f = emu::me();
    return emu::arena_of(*f->team, at) == f->block;
}

void* emu_shared_pointer(uint32_t address) {
    return emu::shared_pointer(emu::me(), address, 0, "a conversion", EMU_CALLER);
}
}
