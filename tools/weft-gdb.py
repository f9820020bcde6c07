"""Goroutines in gdb: `source weft-gdb.py`, then, as with Go's runtime-gdb.py,

    info goroutines        all of them: number, state, name, where they were started
    goroutine N COMMAND    COMMAND (bt, for example) in goroutine N, running or parked; also by NAME, or in all

Works on a process and on a core file, if weft has its debug information.
"""

import re

import gdb
from gdb.unwinder import Unwinder, register_unwinder

STATES_WITHOUT_STACK = {"idle", "dead"}
MARK_SYSTEM = 16  # weft::rt::mark::system
BLOCK_BYTES = 16 * 1024  # weft::rt::slab_pool::block_bytes


def enumerator(value):
    """weft::rt::g_state::waiting -> waiting"""
    return str(value).rsplit("::", 1)[-1]


class Goroutine:
    def __init__(self, g):
        self.g = g
        self.id = int(g["id"])
        self.state = enumerator(g["state"]["_M_i"])
        self.system = bool(int(g["marks_word"]["_M_i"]) & MARK_SYSTEM)
        self.name = g["name"].string()

    def __str__(self):
        state = self.state
        if state == "waiting":
            state = enumerator(self.g["reason"]).replace("_", " ")
        name = f" '{self.name}'" if self.name else ""
        where = gdb.execute(f"info symbol {int(self.g['spawn_pc']):#x}", to_string=True)
        where = re.sub(r" in section .*", "", where.strip())
        if where.startswith("No symbol matches"):
            where = f"{int(self.g['spawn_pc']):#x}"
        return f"{self.id}{name} [{state}] started by {where}"

    def thread(self):
        """The thread that the goroutine runs on, or None."""
        if self.state not in ("running", "syscall"):
            return None
        m = self.g["thread"].cast(gdb.lookup_type("weft::rt::M").pointer())
        tid = int(m["tid"]["_M_i"])
        return next((t for t in gdb.selected_inferior().threads() if t.ptid[1] == tid), None)

    def resume_registers(self):
        """pc, sp and frame pointer of the function that called switch_to; None if the goroutine has not begun."""
        frame = self.g["park_frame"]
        if int(frame) == 0:
            return None
        word = gdb.lookup_type("unsigned long")
        saved = frame.cast(word.pointer())  # in switch_to's frame: the caller's frame pointer, then the return address
        return int(saved[1]), int(frame) + 16, int(saved[0])


def goroutines():
    try:
        pool = gdb.parse_and_eval("'weft::rt::(anonymous namespace)::the_pool'")["value"]["gs"]
        g_type = gdb.lookup_type("weft::rt::G")
        slab = pool["first_"]["_M_b"]["_M_p"]
        blocks = slab["cut"].type.range()[1] + 1
    except gdb.error as e:
        raise gdb.GdbError(f"weft is not in this program, or has no debug information: {e}")
    while int(slab):
        for block in range(1, blocks):
            for i in range(int(slab["cut"][block]["_M_i"])):
                at = int(slab) + block * BLOCK_BYTES + i * g_type.sizeof
                g = Goroutine(gdb.Value(at).cast(g_type.pointer()).dereference())
                if g.state not in STATES_WITHOUT_STACK and not g.system:
                    yield g
        slab = slab["next"]["_M_b"]["_M_p"]


class ParkedUnwinder(Unwinder):
    """Makes gdb show a parked goroutine's frames as the callers of the selected thread's innermost frame."""

    # On other architectures the caller's stack pointer does not follow from what switch_to keeps.
    REGISTERS = {"i386:x86-64": ("rip", "rsp", "rbp")}

    def __init__(self):
        super().__init__("weft-parked-goroutine")
        self.goes_on_as = None  # (the thread's sp, the goroutine's registers)

    def __call__(self, pending):
        if not self.goes_on_as:
            return None
        pc, sp, fp = self.REGISTERS[pending.architecture().name()]
        here, registers = self.goes_on_as
        if int(pending.read_register(sp)) != here:
            return None

        values = {n: gdb.Value(v).cast(pending.read_register(n).type) for n, v in zip((pc, sp, fp), registers)}

        class Id:  # as if the thread's frame lay right below the goroutine's: gdb insists on an order
            def __init__(self):
                self.sp = values[sp]
                self.pc = pending.read_register(pc)

        info = pending.create_unwind_info(Id())
        for name, value in values.items():
            info.add_saved_register(name, value)
        return info

    def run(self, goroutine, command):
        registers = goroutine.resume_registers()
        if not registers:
            print("    it has not started yet")
            return
        gdb.newest_frame().select()
        machine = gdb.newest_frame().architecture().name()
        if machine not in self.REGISTERS:
            raise gdb.GdbError(f"a parked goroutine's frames can be shown on x86-64 only, not on {machine}")
        self.goes_on_as = (int(gdb.parse_and_eval("(unsigned long)$sp")), registers)
        gdb.invalidate_cached_frames()
        try:
            gdb.newest_frame().older().select()
            out = gdb.execute(command, to_string=True)
        finally:
            self.goes_on_as = None
            gdb.invalidate_cached_frames()
        # Leaves out frame 0, which is the thread's.
        print(re.sub(r"\A#0 .*(\n(?!#).*)*\n", "", out), end="")


parked = ParkedUnwinder()
register_unwinder(None, parked, replace=True)


class InfoGoroutines(gdb.Command):
    """All goroutines: number, state, where they were started."""

    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STACK)

    def invoke(self, _arg, _from_tty):
        for g in goroutines():
            print(("* " if g.thread() else "  ") + str(g))


class GoroutineCommand(gdb.Command):
    """goroutine N COMMAND, goroutine NAME COMMAND, goroutine all COMMAND"""

    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK, gdb.COMPLETE_NONE)

    def invoke(self, arg, _from_tty):
        which, _, command = arg.partition(" ")
        if not command:
            raise gdb.GdbError(f"usage: {self.__doc__}")
        chosen = [g for g in goroutines() if which in ("all", str(g.id), g.name)]
        if not chosen:
            raise gdb.GdbError(f"there is no goroutine {which}")
        for g in chosen:
            if len(chosen) > 1:
                print(f"goroutine {g}")
            self.run(g, command)

    @staticmethod
    def run(g, command):
        thread = g.thread()
        if not thread:
            parked.run(g, command)
            return
        before = gdb.selected_thread()
        thread.switch()
        try:
            gdb.execute(command)
        finally:
            before.switch()


InfoGoroutines()
GoroutineCommand()
