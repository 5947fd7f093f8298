"""Names in the text: the author's first, then words of the field; a clash adds a word, never a counter."""

from __future__ import annotations

C_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const "
    "constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit "
    "export extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw true "
    "try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "char8_t char16_t char32_t concept requires co_await co_return co_yield consteval constinit "
    "main NULL INFINITY NAN EOF stdin stdout stderr errno assert offsetof alloca linux unix "
    "M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_E M_LN2 M_LN10 M_LOG2E M_LOG10E M_SQRT2 M_SQRT1_2 "
    "HUGE_VAL INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN CHAR_BIT RAND_MAX BUFSIZ".split()
)

# Functions that compilers of kernels declare at file scope without being asked: C's library, and
# CUDA's mathematics beside it.
_C_LIBRARY = frozenset(
    "abort abs acos acosh asin asinh atan atan2 atanh atexit atof atoi atol bcmp bcopy bsearch bzero "
    "calloc cbrt ceil clock copysign cos cosh cospi ctime cyl_bessel_i0 cyl_bessel_i1 difftime div drem "
    "erand48 erf erfc erfcinv erfcx erfinv exit exp exp10 exp2 expm1 fabs fadd fdim fdiv fdivide ffma "
    "ffs floor fma fmax fmaximum fmaxmag fmin fminimum fminmag fmod fmul free frexp fsqrt fsub gamma "
    "getc getenv getline getopt getw hypot ilogb index initstate isinf isnan j0 j1 jn labs ldexp ldiv "
    "lgamma llabs lldiv llmax llmin llrint llround localtime log log10 log1p log2 logb lower_bound lrint "
    "lround malloc max memchr memcmp memcpy memmove memset min mktime modf mul24 mulhi nan nearbyint "
    "nextafter nextdown nexttoward nextup norm norm3d norm4d normcdf normcdfinv perror pow printf putc "
    "puts qsort rand random rcbrt realloc remainder remove remquo rename rewind rhypot rindex rint rnorm "
    "rnorm3d rnorm4d round roundeven rsqrt saturate scalb scalbln scalbn scanf select setenv setstate "
    "signal signbit significand sin sincos sincospi sinh sinpi sprintf sqrt srand strcat strchr strcmp "
    "strcpy strlen swab system tan tanh tgamma time tolower toupper trap trunc tzset ullmax ullmin umax "
    "umin umul24 ungetc y0 y1 yn".split()
)


def in_c_library(name: str) -> bool:
    """Whether a compiler of kernels may know a function of this name; `sqrtf` goes with `sqrt`."""
    return name in _C_LIBRARY or (name[-1:] in ("f", "l") and name[:-1] in _C_LIBRARY)


class Namer:
    """Gives out C names for one kernel; author's names that C or the dialect reserve get a suffix."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._reserved = C_KEYWORDS | reserved
        self._taken: set[str] = set()

    def author(self, name: str) -> str:
        """The author's name as it stands in the text."""
        fixed = f"{name}_" if name in self._reserved or name.startswith("__") else name
        while fixed in self._taken:
            fixed += "_"
        self._taken.add(fixed)
        return fixed

    def ours(self, *wishes: str) -> str:
        """The first free one of `wishes`; if none is, the first with the rest's words added."""
        for wish in wishes:
            if wish not in self._taken and wish not in self._reserved:
                self._taken.add(wish)
                return wish
        name = wishes[0]
        while name in self._taken or name in self._reserved:
            name += "_"
        self._taken.add(name)
        return name

    def state(self) -> frozenset[str]:
        """The names that are taken now."""
        return frozenset(self._taken)

    def restore(self, state: frozenset[str]) -> None:
        """Only these names are taken."""
        self._taken = set(state)

    def release(self, name: str) -> None:
        """The scope of one of our names has ended; a later scope may use the word again."""
        self._taken.discard(name)
