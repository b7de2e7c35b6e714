"""Run test files under a malloc that puts guard bytes behind each block, and ask after each test whether all are whole.

    python scripts/guarded_tests.py tests/test_shared_arrays.py [-k EXPRESSION] [--calls NAME]

Writes beyond an array's memory otherwise show as an abort much later, elsewhere, or never. Whether the guards are whole is asked after each test; with
`--calls`, in the tests whose name contains NAME, after each call of a Python function, whose traceback is then printed. Needs Linux with glibc and a C
compiler. Other arguments go to pytest.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve()
_MALLOC = r"""
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

/* What lies before each block: 64 bytes, so that blocks stay aligned. */
typedef struct Block { struct Block *before, *after; void *start; size_t size; uint64_t mark, room[3]; } Block;
enum { GUARD = 32, FILL = 0xA5 };
static const uint64_t MARK = 0xfeedfacecafebeefULL;
static Block blocks = {&blocks, &blocks, 0, 0, 0, {0}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int broken(Block *b) {
    unsigned char *guard = (unsigned char *)(b + 1) + b->size;
    for (int i = 0; i < GUARD; i++) if (guard[i] != FILL) return 1;
    return b->mark != MARK;
}
static void tell(Block *b) {
    unsigned char *guard = (unsigned char *)(b + 1) + b->size;
    fprintf(stderr, "\nwritten beyond a block of %zu bytes:", b->size);
    for (int i = 0; i < GUARD; i++) fprintf(stderr, " %02x", guard[i]);
    fprintf(stderr, "\n");
}
static void *block(size_t alignment, size_t size) {
    if (alignment < sizeof(Block)) alignment = sizeof(Block);
    char *start = __libc_memalign(alignment, alignment + size + GUARD);
    if (!start) return 0;
    Block *b = (Block *)(start + alignment) - 1;
    b->start = start; b->size = size; b->mark = MARK;
    memset((char *)(b + 1) + size, FILL, GUARD);
    pthread_mutex_lock(&lock);
    b->before = &blocks; b->after = blocks.after; blocks.after->before = b; blocks.after = b;
    pthread_mutex_unlock(&lock);
    return b + 1;
}
int guards_broken(void) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (Block *b = blocks.after; b != &blocks && !found; b = b->after) if (broken(b)) { found = 1; tell(b); }
    pthread_mutex_unlock(&lock);
    return found;
}
void *malloc(size_t size) { return block(0, size); }
void free(void *p) {
    if (!p) return;
    Block *b = (Block *)p - 1;
    if (b->mark != MARK) { __libc_free(p); return; }  /* made before this library */
    if (broken(b)) tell(b);
    pthread_mutex_lock(&lock);
    b->before->after = b->after; b->after->before = b->before;
    pthread_mutex_unlock(&lock);
    b->mark = 0;
    __libc_free(b->start);
}
void *calloc(size_t n, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(n, each, &size)) return 0;
    void *p = block(0, size);
    return p ? memset(p, 0, size) : 0;
}
void *realloc(void *p, size_t size) {
    void *q = block(0, size);
    if (!p || !q) return q;
    size_t old = ((Block *)p - 1)->size;
    memcpy(q, p, old < size ? old : size);
    free(p);
    return q;
}
void *memalign(size_t alignment, size_t size) { return block(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return block(alignment, size); }
void *valloc(size_t size) { return block(4096, size); }
int posix_memalign(void **p, size_t alignment, size_t size) { return (*p = block(alignment, size)) ? 0 : ENOMEM; }
size_t malloc_usable_size(void *p) { return p ? ((Block *)p - 1)->size : 0; }
"""


class Guards:
    """The plugin of pytest inside of the guarded process."""

    def __init__(self, calls: str):
        self.calls, self.broken = calls, ctypes.CDLL(None).guards_broken

    def pytest_runtest_call(self, item) -> None:
        if self.calls and self.calls in item.name:
            sys.setprofile(self._after_call)

    def pytest_runtest_teardown(self, item) -> None:
        sys.setprofile(None)
        if self.broken():
            self._end(f"in {item.nodeid}")

    def _after_call(self, frame, event: str, arg) -> None:
        if self.broken():
            sys.setprofile(None)
            traceback.print_stack(frame)
            self._end(f"before the {event} of {frame.f_code.co_name}")

    @staticmethod
    def _end(where: str) -> None:
        print(where, flush=True)
        os._exit(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", default="")
    parser.add_argument("--guarded", action="store_true", help=argparse.SUPPRESS)
    ours, rest = parser.parse_known_args()
    if ours.guarded:
        import pytest
        return pytest.main(["-q", "-p", "no:xdist", "-s", *rest], plugins=[Guards(ours.calls)])
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "guards.c"), Path(folder, "guards.so")
        source.write_text(_MALLOC)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-fPIC", "-shared", "-o", library, source, "-lpthread"], check=True)
        environment = os.environ | {"LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc"}
        return subprocess.run([sys.executable, str(HERE), "--guarded", "--calls", ours.calls, *rest], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
