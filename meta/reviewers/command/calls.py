"""The system calls that a command may not make, as a seccomp filter.

Any program may be a coding agent, so what is listed is what is refused: what changes or leaves a
containment, reaches other processes, or asks the kernel for what no such program needs. Scaffold
code, of which we know what it needs, has a list of what is allowed instead (`automem.sandbox.syscalls`).
"""

from __future__ import annotations

import errno
import functools
import tempfile

from automem.sandbox import syscalls

REFUSED = (
    # other views of the file system
    *("mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "open_tree_attr", "mount_setattr"),
    *("fsopen", "fsconfig", "fsmount", "fspick", "unshare", "setns", "open_by_handle_at", "name_to_handle_at"),
    # other processes
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp"),
    *("migrate_pages", "move_pages", "mbind"),
    # memory that no limit counts
    *("shmget", "msgget", "semget", "mq_open", "memfd_secret"),
    # wide doors into the kernel
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup"),
    *("keyctl", "add_key", "request_key", "fanotify_init", "lookup_dcookie", "personality", "modify_ldt", "vm86"),
    # the machine
    *("reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "acct", "syslog"),
    *("swapon", "swapoff", "quotactl", "quotactl_fd", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime"),
    *("sethostname", "setdomainname", "iopl", "ioperm", "vhangup", "nfsservctl"),
)
"""They fail with EPERM."""

NAMESPACES = tuple(1 << bit for bit in (7, 17, 25, 26, 27, 28, 29, 30))
"""Flags of `clone`: time, mount, cgroup, uts, ipc, user, pid, net."""

TERMINAL = (0x5412, 0x541C)
"""Requests of `ioctl` that type into a terminal: TIOCSTI, TIOCLINUX."""

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16


@functools.cache
def compiled(network: bool) -> bytes:
    """The filter as the kernel takes it.

    Args:
        network: the network is the machine's own. Abstract Unix sockets belong to it, and through them the
            machine's services, so that then no Unix socket but a pair can be had.

    Raises:
        OSError: libseccomp is not there.
    """
    seccomp = syscalls.library()
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    rules.set_attr(seccomp.Attr.ACT_BADARCH, seccomp.KILL_PROCESS)
    refused = seccomp.ERRNO(errno.EPERM)

    def refuse(name: str, *arguments: object, action: object = refused) -> None:
        number = seccomp.resolve_syscall(seccomp.Arch.NATIVE, name)
        if number >= 0:  # negative: this architecture, or this libseccomp, has no such call
            rules.add_rule(action, number, *arguments)

    for name in REFUSED:
        refuse(name)
    for flag in NAMESPACES:
        refuse("clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))
    # Its flags lie in memory, where a filter cannot see them; the C library then takes `clone`.
    refuse("clone3", action=seccomp.ERRNO(errno.ENOSYS))
    for request in TERMINAL:
        refuse("ioctl", seccomp.Arg(1, seccomp.MASKED_EQ, 0xFFFFFFFF, request))
    allowed = {INET, INET6, NETLINK} | (set() if network else {UNIX})
    for family in range(NETLINK + 1):
        if family not in allowed:
            refuse("socket", seccomp.Arg(0, seccomp.EQ, family), action=seccomp.ERRNO(errno.EAFNOSUPPORT))
    # Those of hypervisors among them, which no namespace holds back.
    refuse("socket", seccomp.Arg(0, seccomp.GT, NETLINK), action=seccomp.ERRNO(errno.EAFNOSUPPORT))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
