"""Names in the text: the author's first, then words of the field; a clash adds a word, never a counter."""

from __future__ import annotations

C_KEYWORDS = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const "
    "constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit "
    "export extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw true "
    "try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "main NULL INFINITY NAN stdin stdout errno".split()
)


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

    def release(self, name: str) -> None:
        """The scope of one of our names has ended; a later scope may use the word again."""
        self._taken.discard(name)
