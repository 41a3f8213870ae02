"""The system calls that scaffold code may make: a list of what is allowed, as a seccomp filter.

By the time the code runs, everything that it can use is loaded, and its one connection and
``/dev/null`` are open. What is left for it to do is to compute, take memory, read and write
what is open, and end. It opens no file, not even to read; sends no signal; makes no socket,
process or thread.
"""

from __future__ import annotations

import errno
import functools
import tempfile
from types import ModuleType

ALLOWED = (
    # what is open
    *("read", "write", "close"),
    # memory and locks; `mmap`, `mprotect` and `futex` are below
    *("brk", "munmap", "mremap", "madvise"),
    # signals to itself that a fault brings
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "rseq"),
    "set_robust_list",
    # time and chance, both of which vDSO and processor give anyway
    *("gettimeofday", "time", "nanosleep", "getrandom"),
    *("getpid", "gettid", "sched_yield", "exit", "exit_group"),
)
"""Whatever their arguments. Everything that is not named here fails with EPERM."""

PROT_EXEC = 4
EXECUTABLE = {"mmap": 2, "mprotect": 2}
"""Call -> which of its arguments is the protection: memory that can be executed is not given."""

WAITING = (0, 1, 9, 10)
"""What `futex` may do, its second argument without flags: wait and wake. What passes priorities on is not needed."""

CLOCKS = ("clock_gettime", "clock_getres", "clock_nanosleep")
LAST_CLOCK = 11
"""Their first argument: the clocks of the machine. Higher ones, negative as a number, are those of other processes."""

STARTING = ("fork", "vfork", "wait4", "waitid", "set_tid_address")
"""Allowed beside `clone` where the configuration lets code start processes or threads; it never
starts a program."""

NAMESPACES = 0x7E020080
"""The flags of `clone` that make a namespace: time, mount, cgroup, uts, ipc, user, pid, net."""


def library() -> ModuleType:
    """The package `pyseccomp`; `OSError` with what is missing where it cannot load."""
    try:
        import pyseccomp  # type: ignore[import-untyped]
    except (ImportError, RuntimeError, OSError) as error:
        raise OSError(f"libseccomp cannot be loaded ({error})") from error
    return pyseccomp


@functools.cache
def compiled(starting: bool) -> bytes:
    """The filter as the kernel takes it: 8 bytes an instruction.

    Args:
        starting: also allow processes and threads.

    Raises:
        OSError: libseccomp is not there, or does not know this machine.
    """
    seccomp = library()
    rules = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)  # 32-bit calls on a 64-bit machine
    for name in ALLOWED:
        _allow(seccomp, rules, name)
    for name, argument in EXECUTABLE.items():
        _allow(seccomp, rules, name, seccomp.Arg(argument, seccomp.MASKED_EQ, PROT_EXEC, 0))
    for operation in WAITING:
        _allow(seccomp, rules, "futex", seccomp.Arg(1, seccomp.MASKED_EQ, 0x7F, operation))
    for name in CLOCKS:
        _allow(seccomp, rules, name, seccomp.Arg(0, seccomp.LE, LAST_CLOCK))
    if starting:
        for name in STARTING:
            _allow(seccomp, rules, name)
        _allow(seccomp, rules, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, NAMESPACES, 0))
        # Its flags lie in memory, where a filter cannot see them; the C library then takes `clone`.
        rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def _allow(seccomp: ModuleType, rules: object, name: str, *arguments: object) -> None:
    number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
    if number >= 0:  # negative: this architecture, or this libseccomp, has no such call
        rules.add_rule(seccomp.ALLOW, number, *arguments)  # type: ignore[attr-defined]
