// PTX of sm_90 and sm_90a: mbarriers, bulk copies, wgmma, clusters, register budgets.
#pragma once

extern "C" {
void emu_mbarrier_init(int shared, uint64_t address, uint32_t count);
void emu_mbarrier_inval(int shared, uint64_t address);
uint64_t emu_mbarrier_arrive(int shared, uint64_t address, uint32_t count, uint32_t bytes, int drops,
                             const char* name);
void emu_mbarrier_expect(int shared, uint64_t address, uint32_t bytes);
void emu_mbarrier_complete(int shared, uint64_t address, uint32_t bytes);
int emu_mbarrier_wait(int shared, uint64_t address, uint64_t phase, int is_parity, const char* name);
void emu_cp_async_mbarrier_arrive(int shared, uint64_t address, int counts);
void emu_fence_proxy(int shared, int global);
void emu_fence_mbarrier_init();
void emu_tensor_load(uint32_t shared, const void* map, const int32_t* at, int rank, uint32_t barrier,
                     uint32_t mask);
void emu_im2col_load(uint32_t shared, const void* map, const int32_t* at, int rank, const int32_t* offsets,
                     uint32_t barrier);
void emu_tensor_store(const void* map, const int32_t* at, int rank, uint32_t shared, int reduce);
void emu_tensor_prefetch(const void* map, const int32_t* at, int rank);
void emu_map_prefetch(const void* map);
void emu_bulk_load(uint32_t shared, const void* global, uint32_t bytes, uint32_t barrier, uint32_t mask);
void emu_bulk_push(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier);
void emu_bulk_store(void* global, uint32_t shared, uint32_t bytes, int reduce, int kind);
void emu_store_async(uint32_t to, const void* value, uint32_t bytes, uint32_t barrier);
void emu_bulk_commit();
void emu_bulk_wait(uint32_t pending, int only_read);
void emu_wgmma(const int* form, uint64_t a, const uint32_t* a_registers, uint64_t b, int accumulate,
               void* const* d, int count);
void emu_wgmma_fence();
void emu_wgmma_commit();
void emu_wgmma_wait(uint32_t pending);
void emu_cluster_arrive(int releases);
void emu_cluster_wait();
uint32_t emu_cluster_value(int what);
uint32_t emu_map_shared(uint32_t address, uint32_t rank);
void emu_set_registers(uint32_t wanted, int up);
}

namespace emu {
namespace ptx {

// ---- mbarriers. `shared`: the address is a shared one, else generic.

template <bool shared>
EMU_INLINE void mbarrier_init(uint64_t at, uint32_t count) { emu_mbarrier_init(shared, at, count); }
template <bool shared>
EMU_INLINE void mbarrier_inval(uint64_t at) { emu_mbarrier_inval(shared, at); }
template <bool shared, bool drops, class D>
EMU_INLINE void mbarrier_arrive(D& d, uint64_t at, uint32_t count = 1) {
    put(d, emu_mbarrier_arrive(shared, at, count, 0, drops, "mbarrier.arrive"));
}
template <bool shared, bool drops, class D>
EMU_INLINE void mbarrier_arrive_expect(D& d, uint64_t at, uint32_t bytes) {
    put(d, emu_mbarrier_arrive(shared, at, 1, bytes, drops, "mbarrier.arrive.expect_tx"));
}
template <bool shared>
EMU_INLINE void mbarrier_expect(uint64_t at, uint32_t bytes) { emu_mbarrier_expect(shared, at, bytes); }
template <bool shared>
EMU_INLINE void mbarrier_complete(uint64_t at, uint32_t bytes) { emu_mbarrier_complete(shared, at, bytes); }
// A time limit, if given, changes nothing.
template <bool shared, bool parity, bool tries, class... Hint>
EMU_INLINE void mbarrier_wait(bool& done, uint64_t at, uint64_t phase, const Hint&...) {
    done = emu_mbarrier_wait(shared, at, phase, parity, tries ? "mbarrier.try_wait" : "mbarrier.test_wait") != 0;
}
template <bool shared, bool counts>
EMU_INLINE void cp_async_mbarrier_arrive(uint64_t at) { emu_cp_async_mbarrier_arrive(shared, at, counts); }
template <bool shared, bool global>
EMU_INLINE void fence_proxy() { emu_fence_proxy(shared, global); }
template <class... A>
EMU_INLINE void fence_proxy_tensormap(const A&...) {}
EMU_INLINE void fence_mbarrier_init() { emu_fence_mbarrier_init(); }

// ---- bulk copies. Trailing operands are a mask of blocks and a cache policy, as the opcode says.

template <class T, int n>
EMU_INLINE void coordinates(int32_t* to, Pack<T, n> from) {
    static_assert(sizeof(T) == 4, "coordinates are 32-bit");
    from.load(to);
}
template <int rank, class T>
EMU_INLINE void tensor_load(uint32_t to, uint64_t map, Pack<T, rank> at, uint32_t barrier) {
    int32_t x[rank];
    coordinates(x, at);
    emu_tensor_load(to, (const void*)map, x, rank, barrier, 0);
}
template <int rank, class T>
EMU_INLINE void tensor_load_hint(uint32_t to, uint64_t map, Pack<T, rank> at, uint32_t barrier, uint64_t) {
    int32_t x[rank];
    coordinates(x, at);
    emu_tensor_load(to, (const void*)map, x, rank, barrier, 0);
}
template <int rank, class T, class O, class... Hint>
EMU_INLINE void im2col_load(uint32_t to, uint64_t map, Pack<T, rank> at, uint32_t barrier,
                            Pack<O, rank - 2> offsets, const Hint&...) {
    static_assert(sizeof(O) == 2, "offsets are 16-bit");
    int32_t x[rank], moved[rank - 2];
    uint16_t given[rank - 2];
    coordinates(x, at);
    offsets.load(given);
    for (int i = 0; i < rank - 2; ++i) moved[i] = given[i];
    emu_im2col_load(to, (const void*)map, x, rank, moved, barrier);
}
template <int rank, class T, class... Hint>
EMU_INLINE void tensor_load_multicast(uint32_t to, uint64_t map, Pack<T, rank> at, uint32_t barrier,
                                      uint32_t mask, const Hint&...) {
    int32_t x[rank];
    coordinates(x, at);
    emu_tensor_load(to, (const void*)map, x, rank, barrier, mask & 0xffffu);
}
template <int rank, int reduce, class T, class... Hint>
EMU_INLINE void tensor_store(uint64_t map, Pack<T, rank> at, uint32_t from, const Hint&...) {
    int32_t x[rank];
    coordinates(x, at);
    emu_tensor_store((const void*)map, x, rank, from, reduce);
}
template <int rank, class T, class... Hint>
EMU_INLINE void tensor_prefetch(uint64_t map, Pack<T, rank> at, const Hint&...) {
    int32_t x[rank];
    coordinates(x, at);
    emu_tensor_prefetch((const void*)map, x, rank);
}
EMU_INLINE void map_prefetch(uint64_t map) { emu_map_prefetch((const void*)map); }

template <class... Hint>
EMU_INLINE void bulk_load(uint32_t to, uint64_t from, uint32_t bytes, uint32_t barrier, const Hint&...) {
    emu_bulk_load(to, (const void*)from, bytes, barrier, 0);
}
template <class... Hint>
EMU_INLINE void bulk_load_multicast(uint32_t to, uint64_t from, uint32_t bytes, uint32_t barrier,
                                    uint32_t mask, const Hint&...) {
    emu_bulk_load(to, (const void*)from, bytes, barrier, mask & 0xffffu);
}
EMU_INLINE void bulk_push(uint32_t to, uint32_t from, uint32_t bytes, uint32_t barrier) {
    emu_bulk_push(to, from, bytes, barrier);
}
template <int reduce, int kind, class... Hint>
EMU_INLINE void bulk_store(uint64_t to, uint32_t from, uint32_t bytes, const Hint&...) {
    emu_bulk_store((void*)to, from, bytes, reduce, kind);
}
EMU_INLINE void bulk_commit() { emu_bulk_commit(); }
template <bool only_read>
EMU_INLINE void bulk_wait(uint32_t pending) { emu_bulk_wait(pending, only_read); }

template <class E, class S>
EMU_INLINE void st_async(uint32_t to, const S& s, uint32_t barrier) {
    const auto from = many(s);
    constexpr int n = sizeof(from.at) / sizeof(from.at[0]);
    E values[n];
    from.load_each(values);
    emu_store_async(to, values, sizeof values, barrier);
}

// ---- wgmma

template <int n, int k, int td, int ta, int tb, bool saturate, class T, int count>
EMU_INLINE void wgmma_issue(Pack<T, count> d, uint64_t a, const uint32_t* a_registers, uint64_t b,
                            bool accumulate, int scale_a, int scale_b, int major_a, int major_b) {
    static_assert(count == (td == TYPE_F16 ? n / 4 : n / 2), "wgmma with another number of accumulators");
    static_assert(sizeof(T) == 4, "wgmma accumulators are 32-bit registers");
    const int form[10] = {n, k, td, ta, tb, saturate, scale_a, scale_b, major_a, major_b};
    bool together = true;
    for (int i = 1; i < count; ++i)
        together &= (const char*)d.at[i] == (const char*)d.at[0] + 4 * i;
    emu_wgmma(form, a, a_registers, b, accumulate, (void* const*)d.at, together ? 1 : count);
}
// 16-bit types have majors; of A only in shared memory. Integers have no signs either.
template <int n, int k, int td, int ta, int tb, bool saturate, class T, int count>
EMU_INLINE void wgmma(Pack<T, count> d, uint64_t a, uint64_t b, bool p, int sa, int sb, int ma, int mb) {
    static_assert(ta == TYPE_F16 || ta == TYPE_BF16, "only 16-bit operands can be MN-major");
    wgmma_issue<n, k, td, ta, tb, saturate>(d, a, nullptr, b, p, sa, sb, ma, mb);
}
template <int n, int k, int td, int ta, int tb, bool saturate, class T, int count>
EMU_INLINE void wgmma(Pack<T, count> d, uint64_t a, uint64_t b, bool p, int sa, int sb) {
    static_assert(ta != TYPE_F16 && ta != TYPE_BF16, "16-bit wgmma says how its operands lie");
    wgmma_issue<n, k, td, ta, tb, saturate>(d, a, nullptr, b, p, sa, sb, 0, 0);
}
template <int n, int k, int td, int ta, int tb, bool saturate, class T, int count>
EMU_INLINE void wgmma(Pack<T, count> d, uint64_t a, uint64_t b, bool p) {
    static_assert(td == TYPE_S32, "wgmma of floats has signs of its operands");
    wgmma_issue<n, k, td, ta, tb, saturate>(d, a, nullptr, b, p, 1, 1, 0, 0);
}
template <int n, int k, int td, int ta, int tb, bool saturate, class T, int count, class A, class... Rest>
EMU_INLINE void wgmma(Pack<T, count> d, Pack<A, 4> a, uint64_t b, bool p, const Rest&... rest) {
    constexpr bool halves = ta == TYPE_F16 || ta == TYPE_BF16;
    static_assert(sizeof...(Rest) == (td == TYPE_S32 ? 0 : halves ? 3 : 2),
                  "wgmma with A in registers takes other immediates");
    uint32_t words[4];
    a.load(words);
    const int wanted[] = {(int)rest..., 1, 1, 0};
    const int sa = sizeof...(Rest) ? wanted[0] : 1, sb = sizeof...(Rest) ? wanted[1] : 1;
    wgmma_issue<n, k, td, ta, tb, saturate>(d, 0, words, b, p, sa, sb, 0, halves ? wanted[2] : 0);
}
EMU_INLINE void wgmma_fence() { emu_wgmma_fence(); }
EMU_INLINE void wgmma_commit() { emu_wgmma_commit(); }
EMU_INLINE void wgmma_wait(uint32_t pending) { emu_wgmma_wait(pending); }

// ---- clusters, roles

template <bool releases>
EMU_INLINE void cluster_arrive() { emu_cluster_arrive(releases); }
EMU_INLINE void cluster_wait() { emu_cluster_wait(); }
template <class D>
EMU_INLINE void mapa_shared(D& d, uint64_t at, uint32_t rank) { put(d, emu_map_shared((uint32_t)at, rank)); }
template <class D>
EMU_INLINE void mapa_generic(D& d, uint64_t at, uint32_t rank) {
    put(d, (uint64_t)emu_shared_pointer(emu_map_shared(emu_shared_address((const void*)at), rank)));
}
template <class D>
EMU_INLINE void getctarank(D& d, uint64_t at) {
    const uint32_t rank = (uint32_t)at >> 24;
    put(d, rank ? rank - 1 : emu_cluster_value(0));
}
template <class D>
EMU_INLINE void elect(D& d, bool& p, uint32_t mask) {
    const uint32_t here = (uint32_t)emu_vote(VOTE_BALLOT, mask, 1, nullptr), leader = (uint32_t)__builtin_ctz(here);
    put(d, leader);
    p = emu_lane() == leader;
}
template <bool up>
EMU_INLINE void set_registers(uint32_t wanted) { emu_set_registers(wanted, up); }

}  // namespace ptx
}  // namespace emu
