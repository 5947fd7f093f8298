// GlobalTensor and LocalTensor: typed places in memory; scalar access goes through the scalar unit.
#pragma once

#include "types.h"

namespace emu {

constexpr Space space_of(AscendC::TPosition position) {
    using P = AscendC::TPosition;
    switch (position) {
        case P::GM:
        case P::CO2:
        case P::SPM:
            return GM;
        case P::A1:
        case P::B1:
        case P::C1:
        case P::TSCM:
            return L1;
        case P::A2:
            return L0A;
        case P::B2:
            return L0B;
        case P::CO1:
            return L0C;
        case P::C2:
            return BT;
        default:
            return UB;
    }
}

}  // namespace emu

namespace AscendC {

template <class T>
class LocalTensor {
   public:
    using PrimType = T;
    LocalTensor() = default;
    LocalTensor(emu::Space space, TPosition position, uint64_t address, uint64_t bytes)
        : space(space), position(position), address(address), bytes(bytes) {}
    // At an address that the text chooses.
    LocalTensor(TPosition position, uint32_t address, uint32_t elements,
                emu::Line line = emu::Line::here())
        : LocalTensor(emu::space_of(position), position, address, uint64_t{elements} * sizeof(T)) {
        emu::buffer_placed(int(position), space, address, bytes, line.at);
    }

    LocalTensor operator[](uint32_t offset) const {
        uint64_t skipped = uint64_t{offset} * sizeof(T);
        return LocalTensor(space, position, address + skipped,
                           skipped < bytes ? bytes - skipped : 0);
    }
    T GetValue(uint32_t index, emu::Line line = emu::Line::here()) const {
        T value{};
        uint64_t at = address + uint64_t{index} * sizeof(T);
        emu::Space from = space;
        emu::Issue op("GetValue", emu::S, line);
        op.read(space, at, sizeof(T));
        int where = line.at;
        op.commit([&value, at, from, where] {
            emu::Origin origin = 0;
            value = emu::load<T>(from, at, "GetValue", where, origin);
            if (origin) emu::uses_unspecified(origin, from, at, "GetValue", where);
        });
        return value;
    }
    template <class S>
    void SetValue(uint32_t index, S given, emu::Line line = emu::Line::here()) const {
        T value = static_cast<T>(given);
        uint64_t at = address + uint64_t{index} * sizeof(T);
        emu::Space to = space;
        emu::Issue op("SetValue", emu::S, line);
        op.write(space, at, sizeof(T));
        op.commit([value, at, to] { emu::store<T>(to, at, value, 0); });
    }
    template <class U>
    LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(space, position, address, bytes);
    }
    uint32_t GetSize() const { return static_cast<uint32_t>(bytes / sizeof(T)); }
    void SetSize(uint32_t elements) { bytes = uint64_t{elements} * sizeof(T); }
    uint32_t GetLength() const { return static_cast<uint32_t>(bytes); }
    TPosition GetPosition() const { return position; }
    uint64_t GetPhyAddr() const { return address; }

    emu::Space space = emu::UB;
    TPosition position = TPosition::VECCALC;
    uint64_t address = ~uint64_t{0};
    uint64_t bytes = 0;
};

template <class T>
class GlobalTensor {
   public:
    using PrimType = T;
    void SetGlobalBuffer(T* pointer, uint64_t elements) {
        base = pointer, bound = elements, bounded = true;
    }
    void SetGlobalBuffer(T* pointer) { base = pointer, bound = 0, bounded = false; }
    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor t = *this;
        t.base = base + offset;
        if (bounded) t.bound = offset < bound ? bound - offset : 0;
        return t;
    }
    T* GetPhyAddr(uint64_t offset = 0) const { return base + offset; }
    uint64_t GetSize() const { return bound; }
    T GetValue(uint64_t index, emu::Line line = emu::Line::here()) const {
        const T* at = base + index;
        T value{};
        emu::Issue op("GetValue", emu::S, line);
        op.read(emu::GM, reinterpret_cast<uint64_t>(at), sizeof(T));
        op.commit([&value, at] { memcpy(&value, at, sizeof(T)); });
        return value;
    }
    void SetValue(uint64_t index, T value, emu::Line line = emu::Line::here()) const {
        T* at = base + index;
        emu::Issue op("SetValue", emu::S, line);
        op.write(emu::GM, reinterpret_cast<uint64_t>(at), sizeof(T));
        op.commit([at, value] { memcpy(at, &value, sizeof(T)); });
    }
    T operator()(uint64_t index, emu::Line line = emu::Line::here()) const {
        return GetValue(index, line);
    }

    T* base = nullptr;
    uint64_t bound = 0;  // elements from base on that SetGlobalBuffer promised
    bool bounded = false;
};

}  // namespace AscendC

namespace emu {

// The range of one access within the buffer that SetGlobalBuffer named.
template <class T>
void check_bound(const AscendC::GlobalTensor<T>& tensor, uint64_t bytes, const char* name,
                 int line) {
    if (tensor.bounded && bytes > tensor.bound * sizeof(T))
        stop(MEMORY, line,
             "%s touches %llu bytes of a GlobalTensor that has %llu left by its SetGlobalBuffer",
             name, static_cast<unsigned long long>(bytes),
             static_cast<unsigned long long>(tensor.bound * sizeof(T)));
}

template <class T>
void check_start(const AscendC::LocalTensor<T>& tensor, uint64_t align, const char* name,
                 const char* operand, int line) {
    if (tensor.bytes == 0 && tensor.address == ~uint64_t{0})
        stop(MISUSE, line, "%s: %s is a LocalTensor without memory", name, operand);
    if (tensor.address % align)
        stop(MISUSE, line, "%s: %s starts at byte %llu, which is no multiple of %llu", name,
             operand, static_cast<unsigned long long>(tensor.address),
             static_cast<unsigned long long>(align));
}

}  // namespace emu
