// 8-bit floats as storage types with conversions, for CUDA and HIP. Included once for each type
// with EMU_F8 (name) and EMU_F8_FORM.

struct EMU_F8 {
    unsigned char __x;
    EMU_F8() = default;
    // Too large a value becomes the largest finite one.
    EMU_INLINE explicit EMU_F8(float f) : __x(emu::float_to_float8(f, EMU_F8_FORM, true)) {}
    EMU_INLINE explicit EMU_F8(double f) : __x(emu::float_to_float8((float)f, EMU_F8_FORM, true)) {}
    EMU_INLINE explicit EMU_F8(int f) : __x(emu::float_to_float8((float)f, EMU_F8_FORM, true)) {}
    EMU_INLINE explicit EMU_F8(__half f) : EMU_F8((float)f) {}
    EMU_INLINE explicit EMU_F8(EMU_BF16 f) : EMU_F8((float)f) {}
    EMU_INLINE explicit operator float() const { return emu::float8_to_float(__x, EMU_F8_FORM); }
    EMU_INLINE explicit operator double() const { return (double)(float)*this; }
    EMU_INLINE explicit operator __half() const { return (float)*this; }
    EMU_INLINE explicit operator EMU_BF16() const { return (float)*this; }
};
