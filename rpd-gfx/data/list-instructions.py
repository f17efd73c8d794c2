#!/usr/bin/env python3
"""Lists all instructions of a target that LLVM's disassembler has: every opcode of every encoding is disassembled.

    ./list-instructions.py gfx90a            writes gfx90a-instructions.csv
    ./list-instructions.py gfx90a --check    says whether that is what the file has
    ./list-instructions.py gfx90a --texts    prints the text of each line of dwords, empty where they are not one instruction

Columns: encoding, opcode, name, state (which this program keeps as it is: `executed`, or `refused` where the interpreter stops
with the instruction's name; what is new is refused), sample (the dwords of one such instruction), its text, and form: what
the disassembler of rpd needs to print any such instruction (see `form` below).
LLVM_LIBRARY names the library with the disassembler, by default libLLVM.so.19.1.
"""
import csv
import ctypes
import io
import os
import pathlib
import re
import struct
import sys

LITERAL = 0x12345678


def candidates(target):
    """(encoding, opcode, dwords): for each opcode several samples, of which the first that is valid counts."""
    return candidates_gfx11() if is_gfx11(target) else candidates_gfx9(target)


def is_gfx11(target):
    """Whether the target has the encodings of GFX11."""
    return target.startswith("gfx11")


# Second dwords of LDS instructions.
LDS_OPERANDS = (2 | 4 << 8 | 6 << 16 | 8 << 24, 2 | 4 << 8 | 8 << 24, 2 | 4 << 8 | 6 << 16, 2 | 4 << 8, 2 | 8 << 24, 8 << 24, 2, 0)


def scalar_candidates(sopk):
    """Of scalar arithmetic, branches and messages, whose encodings GFX9 and GFX11 share; `sopk` opcodes of SOPK."""
    for op in range(256):
        for rest in ((4 << 16) | 2, (4 << 16) | 0x80, 2, 4 << 16):
            yield "SOP1", op, [0xBE800000 | op << 8 | rest]
    for op in range(0x60):
        yield "SOP2", op, [0x80000000 | op << 23 | (4 << 16) | (6 << 8) | 2]
    for op in range(sopk):
        yield "SOPK", op, [0xB0000000 | op << 23 | (4 << 16) | 1]
        yield "SOPK", op, [0xB0000000 | op << 23 | 1, LITERAL]
    for op in range(128):
        yield "SOPC", op, [0xBF000000 | op << 16 | (6 << 8) | 2]
    for op in range(128):
        yield "SOPP", op, [0xBF800000 | op << 16 | 1]
        yield "SOPP", op, [0xBF800000 | op << 16]


def vector_candidates():
    """Of vector arithmetic and comparisons with two sources, likewise."""
    for op in range(62):
        yield "VOP2", op, [op << 25 | 4 << 17 | 6 << 9 | 0x102]
        yield "VOP2", op, [op << 25 | 4 << 17 | 6 << 9 | 0x102, LITERAL]
    for op in range(256):
        yield "VOPC", op, [0x7C000000 | op << 17 | 6 << 9 | 0x102]


def candidates_gfx11():
    yield from scalar_candidates(0x1C)
    for op in range(256):
        yield "SMEM", op, [0xF4000000 | op << 18 | (8 << 6) | 2, 0xF8000010]
        yield "SMEM", op, [0xF4000000 | op << 18 | 2, 0xF8000000]
        yield "SMEM", op, [0xF4000000 | op << 18, 0]
    for op in range(128):
        for field in (4, 106):
            yield "VOP1", op, [0x7E000000 | field << 17 | op << 9 | 0x102]
        yield "VOP1", op, [0x7E000000 | op << 9]
    yield from vector_candidates()
    for op in range(0x400):
        for carry in (10 << 8, 0):
            for sources in (0x102 | 0x106 << 9 | 0x108 << 18, 0x102 | 0x106 << 9 | 8 << 18, 0x102 | 0x106 << 9,
                            0x102 | 6 << 9 | 8 << 18, 0x102 | 6 << 9, 0x102, 2 | 6 << 9, 2 | 6 << 9 | 0x108 << 18, 0):
                # Bits 8 to 14 are a register only where there are two results.
                if not carry or op in CARRIES:
                    yield "VOP3", op, [0xD4000000 | op << 16 | carry | 4, sources]
    for op in range(128):
        for sources in (0x102 | 0x106 << 9 | 0x108 << 18, 0x102 | 0x106 << 9, 0x102):
            yield "VOP3P", op, [0xCC004004 | op << 16, sources | 3 << 27]
            yield "VOP3P", op, [0xCC000004 | op << 16, sources]
        yield "VINTERP", op, [0xCD000004 | op << 16, 0x102 | 0x106 << 9 | 0x108 << 18]
    for op in range(4):
        yield "LDSDIR", op, [0xCE000004 | op << 20 | 7 << 10]
    for op in range(16):
        for literal in ([], [LITERAL]):
            for second in (6 << 9, 0):
                yield "VOPDX", op, [0xC8000102 | op << 22 | 8 << 17 | second, 4 << 24 | 0x103, *literal]
    for op in range(32):
        for literal in ([], [LITERAL]):
            for second in (6 << 9, 0):
                yield "VOPDY", op, [0xC8000103 | 8 << 22 | op << 17, 0x05040102 | second, *literal]
    for op in range(256):
        for gds in (0, 1 << 17):
            for operands in LDS_OPERANDS:
                yield "DS", op, [0xD8000000 | op << 18 | gds, operands]
    for number, encoding in enumerate(("FLAT", "SCRATCH", "GLOBAL")):
        for op in range(128):
            for operands in (2 | 4 << 8 | 8 << 24, 2 | 8 << 24, 2 | 4 << 8):
                base = 0xDC000000 | op << 18 | number << 16
                address = 0x7C << 16 | (1 << 23 if encoding == "SCRATCH" else 0)
                yield encoding, op, [base, operands | address]
                yield encoding, op, [base | 1 << 14, operands | address]
                yield encoding, op, [base, operands & ~0xFF | 2 << 16]
    for op in range(256):
        yield "MUBUF", op, [0xE0000000 | op << 18, 2 | 4 << 8 | 2 << 16 | 1 << 22 | 128 << 24]
        yield "MUBUF", op, [0xE0000000 | op << 18, 0]
    for op in range(16):
        yield "MTBUF", op, [0xE8000000 | op << 15 | 20 << 19, 2 | 4 << 8 | 2 << 16 | 1 << 22 | 128 << 24]
    for op in range(256):
        for mask in (1, 15):
            for sampler in (2 << 26, 0):
                yield "MIMG", op, [0xF0000000 | op << 18 | mask << 8, 2 | 4 << 8 | 2 << 16 | sampler]
        # Rays have another sort of descriptor.
        yield "MIMG", op, [0xF0008F80 | op << 18, 2 | 4 << 8 | 2 << 16]
    yield "EXP", 0, [0xF800000F, 0x04030201]


# Opcodes of VOP3 of GFX11 with a scalar result beside the vector one.
CARRIES = (*range(0x120, 0x123), *range(0x2FC, 0x303))


def candidates_gfx9(target):
    yield from scalar_candidates(0x1D)
    for op in range(256):
        yield "SMEM", op, [0xC0000000 | op << 18 | (8 << 6) | 2 | 1 << 17, 0x10]
        yield "SMEM", op, [0xC0000000 | op << 18 | (8 << 6) | 1 << 17, 0]
        yield "SMEM", op, [0xC0000000 | op << 18, 0]
    for op in range(256):
        yield "VOP1", op, [0x7E000000 | 4 << 17 | op << 9 | 0x102]
        yield "VOP1", op, [0x7E000000 | op << 9]
    yield from vector_candidates()
    for op in range(0x380):
        for sources in (0x102 | 0x106 << 9 | 0x108 << 18, 0x102 | 0x106 << 9, 0x102, 0x102 | 6 << 9, 2 | 6 << 9, 0):
            yield "VOP3", op, [0xD0000000 | op << 16 | 4, sources]
        yield "VOP3", op, [0xD0000000 | op << 16, 0]
    for op in range(128):
        for sources in (0x102 | 0x106 << 9 | 0x108 << 18, 0x102 | 0x106 << 9, 0x102):
            yield "VOP3P", op, [0xD3800000 | op << 16 | 4, sources | 3 << 27]
            yield "VOP3P", op, [0xD3800000 | op << 16 | 4, sources]
    for op in range(256):
        for gds in (0, 1 << 16):
            for operands in LDS_OPERANDS:
                yield "DS", op, [0xD8000000 | op << 17 | gds, operands]
    for number, encoding in enumerate(("FLAT", "SCRATCH", "GLOBAL")):
        for op in range(128):
            for operands in (2 | 4 << 8 | 8 << 24, 2 | 8 << 24, 2 | 4 << 8):
                address = 0 if encoding == "FLAT" else 0x7F << 16
                base = 0xDC000000 | op << 18 | number << 14
                if encoding == "SCRATCH" and target >= "gfx940":
                    # The address is in a register.
                    base |= 1 << 13
                yield encoding, op, [base, operands | address]
                # The return of an atomic.
                yield encoding, op, [base | 1 << 16, operands | address]
                yield encoding, op, [base, operands | address | 2 << 16]
    for op in range(128):
        yield "MUBUF", op, [0xE0000000 | op << 18 | 1 << 12, 2 | 4 << 8 | 2 << 16 | 128 << 24]
        yield "MUBUF", op, [0xE0000000 | op << 18, 0]
    for op in range(16):
        yield "MTBUF", op, [0xE8000000 | op << 15 | 1 << 12 | 4 << 23 | 4 << 19, 2 | 4 << 8 | 2 << 16 | 128 << 24]
    for op in range(256):
        for mask in (1, 15):
            for sampler in (2 << 21, 0):
                yield "MIMG", op, [0xF0000000 | (op & 0x7F) << 18 | op >> 7 | mask << 8, 2 | 4 << 8 | 2 << 16 | sampler]
    yield "EXP", 0, [0xC4000000 | 0xF, 0x04030201]
    for op in range(4):
        yield "VINTRP", op, [0xD4000000 | 4 << 18 | op << 16 | 2]


class Llvm:
    """LLVM's disassembler for one target."""

    def __init__(self, target):
        self.library = ctypes.CDLL(os.environ.get("LLVM_LIBRARY", "libLLVM.so.19.1"))
        for part in ("TargetInfo", "TargetMC", "Disassembler"):
            getattr(self.library, f"LLVMInitializeAMDGPU{part}")()
        create = self.library.LLVMCreateDisasmCPU
        create.restype = ctypes.c_void_p
        create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                           ctypes.c_void_p]
        self.read = self.library.LLVMDisasmInstruction
        self.read.restype = ctypes.c_size_t
        self.read.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p,
                              ctypes.c_size_t]
        self.context = create(b"amdgcn-amd-amdhsa", target.encode(), None, 0, None, None)
        self.buffer = ctypes.create_string_buffer(1024)

    def text(self, dwords):
        """The text of an instruction of exactly these dwords, None if they are not one."""
        code = struct.pack(f"<{len(dwords)}I", *dwords)
        length = self.read(self.context, code, len(code), 0, self.buffer, len(self.buffer))
        # Remarks about registers at odd places follow a semicolon.
        text = self.buffer.value.decode().partition(";")[0]
        return " ".join(text.split()) if length == len(code) else None


def disassemble(target, samples):
    """The text of each sample, None where it is not one instruction."""
    llvm = Llvm(target)
    return [llvm.text(dwords) for dwords in samples]


# The numbers of registers in the samples, and the fields that have them.
FIELDS = {
    "SOP1": {4: "sdst", 2: "src0", 0: "src0"},
    "SOP2": {4: "sdst", 2: "src0", 6: "src1"},
    "SOPK": {4: "sdst"},
    "SOPC": {2: "src0", 6: "src1"},
    "SMEM": {8: "sdata", 4: "sbase", 0: "sdata"},
    "VOP1": {4: "vdst", 2: "src0"},
    "VOP2": {4: "vdst", 2: "src0", 6: "vsrc1"},
    "VOPC": {2: "src0", 6: "vsrc1"},
    "VOP3": {4: "vdst", 2: "src0", 6: "src1", 8: "src2", 10: "sdst"},
    "VOP3P": {4: "vdst", 2: "src0", 6: "src1", 8: "src2"},
    "DS": {2: "addr", 4: "data0", 6: "data1", 8: "vdst"},
    "FLAT": {2: "addr", 4: "data", 8: "vdst"},
    "GLOBAL": {2: "addr", 4: "data", 8: "vdst"},
    "SCRATCH": {2: "addr", 4: "data", 8: "vdst"},
    "MUBUF": {4: "vdata", 2: "vaddr", 8: "srsrc"},
    "MTBUF": {4: "vdata", 2: "vaddr", 8: "srsrc"},
    "MIMG": {4: "vdata", 2: "vaddr", 8: "srsrc"},
    "EXP": {},
    "VINTRP": {},
    "VINTERP": {4: "vdst", 2: "src0", 6: "src1", 8: "src2"},
    "LDSDIR": {4: "vdst"},
    "VOPDX": {4: "vdst", 2: "src0", 6: "vsrc1"},
    "VOPDY": {4: "vdst", 2: "src0", 6: "vsrc1"},
}
# Operands that are not registers, as they appear in the samples, and their fields.
IMMEDIATES = {
    ("SOPK", "0x1"): "imm16", ("SOPK", "1"): "label", ("SOPK", "hwreg()"): "hwreg",
    ("SOPC", "gpr_idx()"): "gpr_idx", ("SOPP", "gpr_idx()"): "gpr_idx",
    ("SOPP", "1"): "imm16", ("SOPP", "vmcnt()"): "waitcnt", ("SOPP", "sendmsg()"): "sendmsg",
    ("SMEM", "0x10"): "soffset", ("SMEM", "8"): "probe",
    ("SCRATCH", "off"): "saddr", ("GLOBAL", "off"): "saddr",
    ("SOPP", "0x1"): "hex16", ("SOPP", "depctr_hold_cnt()"): "depctr", ("SOPP", "instid0()"): "delay",
    ("SOP1", "sendmsg()"): "rtnmsg", ("LDSDIR", "attr7.x"): "attr",
    ("MUBUF", "0"): "soffset", ("MTBUF", "0"): "soffset", ("DS", "v0"): "data0:1",
}
REGISTER = re.compile(r"([vsa])(?:(\d+)(?:\.l)?|\[(\d+):(\d+)\])$")
# Fields of the long encodings of vector instructions that change the text: bit, what appears then, and the word of the form.
LONG_BITS = [
    (8, "|", "abs0"), (9, "|", "abs1"), (10, "|", "abs2"), (15, " clamp", "clamp"),
    (32 + 29, "-", "neg0"), (32 + 30, "-", "neg1"), (32 + 31, "-", "neg2"), (32 + 27, " mul:2", "omod"),
    (32 + 29, "sext(", "long_sext0"), (32 + 30, "sext(", "long_sext1"), (32 + 31, "sext(", "long_sext2"),
    (11, " op_sel:", "sel0"), (12, " op_sel:", "sel1"), (13, " op_sel:", "sel2"), (14, " op_sel:", "sel3"),
]
PACKED_BITS = [
    (8, " neg_hi:", "neg_hi"), (15, " clamp", "clamp"), (32 + 29, " neg_lo:", "neg_lo"), (11, " op_sel:", "op_sel"),
    (32 + 27, " op_sel_hi:", "op_sel_hi"), (8, " cbsz:", "cbsz"), (11, " abid:", "abid"), (32 + 29, " blgp:", "blgp"),
    (32 + 29, " neg:", "neg"),
]
SDWA_BITS = [
    (32 + 13, " clamp", "sdwa_clamp"), (32 + 14, " mul:2", "sdwa_omod"), (32 + 19, "sext(", "sext0"),
    (32 + 27, "sext(", "sext1"), (32 + 20, "-", "sdwa_neg0"), (32 + 28, "-", "sdwa_neg1"), (32 + 17, "src0_sel", "sdwa_src0"),
    (32 + 25, "src1_sel", "sdwa_src1"), (32 + 9, "dst_sel", "sdwa_dst"),
]
DPP_BITS = [(32 + 20, "-", "dpp_neg0"), (32 + 22, "-", "dpp_neg1"), (32 + 22, "sext(", "dpp_sext1")]


def changed(dwords, bit):
    dwords = list(dwords)
    dwords[bit // 32] ^= 1 << bit % 32
    return dwords


def tokens(text):
    """The operands of an instruction, without modifiers."""
    _, _, rest = text.partition(" ")
    rest = re.sub(r"\([^)]*\)", "()", rest)
    return [part.strip().split(" ")[0] for part in rest.split(", ")] if rest else []


# Registers in fields that mostly have others.
ANOTHER_CLASS = (("s", "vdst"), ("a", "vdst"))


def operand(encoding, token, before):
    """The field that an operand of a sample is from, with the number of its dwords, or the operand itself in quotes."""
    if token == f"{LITERAL:#x}":
        return "literal"
    if (encoding, token) in IMMEDIATES:
        return IMMEDIATES[encoding, token]
    match = REGISTER.match(token)
    if match is None:
        return f"'{token}'"
    kind, number, first, last = match.groups()
    number, width = (int(number), 1) if number else (int(first), int(last) - int(first) + 1)
    field = FIELDS[encoding].get(number)
    if encoding in ("VOP3", "VOP3P") and number == 0 and kind == "s":
        sources = sum(name.startswith("src") for name in before)
        field = f"src{sources}" if sources else "sdst"
    if field is None:
        return f"'{token}'"
    if field == "srsrc" and any(name.startswith(field) for name in before):
        field = "ssamp"
    if token.endswith(".l"):
        return f"{field}:1t"
    return f"{field}:{width}" + (kind if (kind, field) in ANOTHER_CLASS else "")


SHIFTS = {"SOP1": {"src0": 0}, "SOP2": {"src0": 0, "src1": 8}, "SOPC": {"src0": 0, "src1": 8}, "VOP1": {"src0": 0},
          "VOP2": {"src0": 0}, "VOPC": {"src0": 0}, "VOP3": {"src0": 32, "src1": 41, "src2": 50},
          "VOP3P": {"src0": 32, "src1": 41, "src2": 50}, "VOPDX": {"src0": 0}, "VOPDY": {"src0": 32}}


class Probes:
    """Instructions whose text shows a property of a form: collected first, then disassembled at once."""

    def __init__(self, target):
        self.target, self.samples, self.texts = target, [], {}

    def ask(self, dwords):
        self.samples.append(tuple(dwords))

    def run(self):
        unique = list(dict.fromkeys(self.samples))
        self.texts = dict(zip(unique, disassemble(self.target, unique)))

    def text(self, dwords):
        text = self.texts.get(tuple(dwords))
        return "" if text is None or "/*" in text else text


def with_source(encoding, field, dwords, code, literal=0x3C003C00):
    """A sample whose source has another code; the literal behind it for code 255."""
    shift = SHIFTS[encoding][field]
    bits = 9 if encoding.startswith("VOP") else 8
    dwords = list(dwords)
    word = dwords[shift // 32] & ~(((1 << bits) - 1) << shift % 32)
    dwords[shift // 32] = word | code << shift % 32
    if code != 255:
        return dwords
    # The constant of v_madmk_f32 and the like is the literal of the source as well.
    return [dwords[0], literal] if encoding == "VOP2" else dwords + [literal]


def probes(target, encoding, dwords, form):
    """The instructions that `form` looks at."""
    if encoding == "VOP3":
        yield from (changed(dwords, bit) for bit, _, _ in LONG_BITS)
    if encoding == "VOP3P":
        yield from (changed(dwords, bit) for bit, _, _ in PACKED_BITS + LONG_BITS)
        yield whole_selection(dwords)
    if encoding in ("VOP1", "VOP2", "VOPC") and len(dwords) == 1:
        sdwa, dpp = special(encoding, dwords)
        yield sdwa
        yield dpp
        yield from (changed(sdwa, bit) for bit, _, _ in SDWA_BITS)
        yield from (changed(dpp, bit) for bit, _, _ in DPP_BITS)
    if is_gfx11(target) and encoding in ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3P"):
        yield from lane_controls(encoding, dwords)
    if is_gfx11(target) and encoding == "MIMG":
        yield from image_probes(dwords).values()
    if encoding == "DS":
        yield [dwords[0] | 0x0201, *dwords[1:]]
    if encoding in ("FLAT", "GLOBAL"):
        yield changed(dwords, return_bit(target))
    for field in SHIFTS.get(encoding, {}):
        if any(word.startswith(field) for word in form):
            for code in (193, 242, 248, 255):
                yield with_source(encoding, field, dwords, code)
            for literal in (1, 0x3F800000, 0x3C00):
                yield with_source(encoding, field, dwords, 255, literal)


def whole_selection(dwords):
    """The instruction with no bit of op_sel_hi."""
    return [dwords[0] & ~(1 << 14), dwords[1] & ~(3 << 27)]


def return_bit(target):
    """The bit with which an atomic returns the value before."""
    return 14 if is_gfx11(target) else 16


def lane_controls(encoding, dwords):
    """The instruction of GFX11 with a first source from other lanes: DPP of 16 lanes, and of 8."""
    if encoding in ("VOP1", "VOP2", "VOPC"):
        word, rest = 0, []
    else:
        word, rest = 1, dwords[:1]
    base = dwords[word] & ~0x1FF
    return [[*rest, base | 250, 0xFF000002 | 0x150 << 8], [*rest, base | 233, 0x00FAC602]]


def image_probes(dwords):
    """The instruction of GFX11 with more coordinates, and with those of 16 bits."""
    plain, short = (dwords[0] & ~0x1C, dwords[0] & ~0x1C | 1 << 16)
    return {(dim, a16): [word | dim << 2, dwords[1]]
            for a16, word in enumerate((plain, short)) for dim in (0, 1, 2)}


def image_words(dwords, text, asked):
    """How many registers the address has: see `Printer::image_gfx11`."""
    def width(dim, a16):
        found = asked.text(image_probes(dwords)[dim, a16])
        for token in tokens(found)[1:2]:
            kind, number, first, last = REGISTER.match(token).groups()
            return 1 if number else int(last) - int(first) + 1
        return 0
    if "_bvh" in text:
        return ["vaddr:1"]
    line, plane, short = width(0, 0), width(1, 0), width(0, 1)
    coordinates, gradients = plane > line, width(2, 0) - line > 2
    half_gradients = gradients and plane - line == 1
    gradient_words = 2 if gradients else 0
    # Coordinates and the level are halves with a16, what else there is is not.
    rest = line - gradient_words
    level = next((level for level in (0, 1)
                  if short == rest - int(coordinates) - level + (int(coordinates) + level + 1) // 2 + gradient_words), 0)
    words = [f"vaddr:{rest - int(coordinates) - level}"]
    words += [word for word, there in (("coordinates", coordinates), ("level", level), ("gradients", gradients),
                                       ("half_gradients", half_gradients)) if there]
    return words


def special(encoding, dwords):
    base = dwords[0] & ~0x1FF
    sdwa = 2 | 6 << 16 | (0 if encoding == "VOPC" else 6 << 8) | (0 if encoding == "VOP1" else 6 << 24)
    return [base | 249, sdwa], [base | 250, 0xFF000002 | 0x150 << 8]


def form(encoding, dwords, text, words, asked):
    """Words for the operands in order (field:dwords, and letters for the type of constants: d a double, q 64 bits, h a half, p two halves, i a 16-bit
    integer, b two BF16, r registers only, t half of a register), then one for each modifier that the instruction has."""
    result = []
    if is_gfx11(asked.target) and encoding == "MIMG":
        words = [part for word in words
                 for part in (image_words(dwords, text, asked) if word.startswith("vaddr:") else [word])]
    for word in words:
        field = word.split(":")[0]
        if field in SHIFTS.get(encoding, {}) and "'" not in word and not word.endswith("t"):
            text_of = lambda code: asked.text(with_source(encoding, field, dwords, code))
            at = lambda code: next((t for t in tokens(text_of(code)) if not REGISTER.match(t)
                                    and t not in tokens(text)), None)
            if not text_of(193) or "accvgpr_read" in text:
                accumulation = "accvgpr" in text and tokens(text)[-1].startswith("a")
                word += "a" if accumulation else "r"
            elif (at(248) or "").startswith("0.15915494309"):
                one = asked.text(with_source(encoding, field, dwords, 255, 1))
                word += "q" if "1" in tokens(one) else "d"
            elif at(242) == "0x3c00":
                word += "i"
            elif at(255) == "1.0":
                word += "h"
            else:
                one = tokens(asked.text(with_source(encoding, field, dwords, 255, 0x3F800000)))
                if "0x3f800000" in one and "1.0" not in one:
                    half = tokens(asked.text(with_source(encoding, field, dwords, 255, 0x3C00)))
                    word += "b" if is_gfx11(asked.target) and "1.0" not in half else "p"
        result.append(word)
    for bits, wanted, base in (("VOP3", LONG_BITS, dwords), ("VOP3P", PACKED_BITS, dwords)):
        if encoding == bits:
            for bit, sign, word in wanted:
                found = asked.text(changed(base, bit))
                if sign in found and sign not in text:
                    result.append(word)
                elif sign == " op_sel_hi:" and sign in text and sign not in found:
                    result.append(word)
                elif sign in found and found != text and sign in text:
                    result.append(word)
    if is_gfx11(asked.target) and encoding == "VOP3" and "sel3" in result and "sel2" not in result:
        # A third source that is the result.
        selection = re.search(r" op_sel:\[([01,]*)\]", asked.text(changed(dwords, 11)))
        if selection and len(selection[1].split(",")) == 4:
            result.append("sel2")
    if encoding == "VOP3P" and "op_sel_hi" in result and " op_sel_hi" not in asked.text(whole_selection(dwords)):
        # Numbers of either size: halves are selected, not the default, and signs are those of the long encodings.
        result.append("mix")
        result += [word for bit, sign, word in LONG_BITS if word[:3] in ("abs", "neg")
                   and asked.text(changed(dwords, bit)) != text]
    if encoding in ("VOP1", "VOP2", "VOPC") and len(dwords) == 1:
        sdwa, dpp = special(encoding, dwords)
        for base, name, bits in ((sdwa, "sdwa", SDWA_BITS), (dpp, "dpp", DPP_BITS)):
            # Comparisons of GFX11 have no suffix.
            if name in asked.text(base).split(" ")[0] or name == "dpp" and " row_share:" in asked.text(base):
                result.append(name)
                for bit, sign, word in bits:
                    found = asked.text(changed(base, bit))
                    if sign in found and found != asked.text(base):
                        result.append(word)
    if is_gfx11(asked.target) and encoding in ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3P"):
        for name, base in zip(("dpp", "dpp8"), lane_controls(encoding, dwords)):
            if {"dpp": "row_share:", "dpp8": "dpp8:"}[name] in asked.text(base) and name not in result:
                result.append(name)
    if encoding in ("FLAT", "GLOBAL") and "atomic" in text:
        word = operand(encoding, tokens(asked.text(changed(dwords, return_bit(asked.target))))[0], [])
        if word.startswith("vdst:"):
            result.insert(0, word.replace("vdst", "rtn"))
    if encoding == "DS":
        found = asked.text([dwords[0] | 0x0201, *dwords[1:]])
        if "offset0:" in found:
            result.append("offset2")
        elif "swizzle" in found:
            result.append("swizzle")
        elif "offset:" in found:
            result.append("offset")
        if text.endswith(" gds"):
            result.append("gds")
    return " ".join(result)


def listing(target):
    found = {}
    samples = list(candidates(target))
    for (encoding, opcode, dwords), text in zip(samples, disassemble(target, [dwords for _, _, dwords in samples])):
        # An operand of the wrong kind is printed with a remark.
        if text is not None and "/*" not in text and (encoding, opcode) not in found:
            found[encoding, opcode] = (text, dwords)
    asked, operands = Probes(target), {}
    for (encoding, opcode), (text, dwords) in found.items():
        words = []
        if encoding == "VOPDX":
            text = text.partition(" :: ")[0]
        if encoding == "VOPDY":
            text = text.partition(" :: ")[2]
        for token in tokens(text):
            if token != "gds":
                words.append(operand(encoding, token, words))
        if encoding == "SOPP" and "branch" in text:
            words = ["label"]
        if text.startswith("s_version "):
            words = ["version"]
        if encoding == "EXP":
            words = []
        operands[encoding, opcode] = words
        for probe in probes(target, encoding, dwords, words):
            asked.ask(probe)
    asked.run()
    return {
        key: (text, dwords, form(key[0], dwords, text, operands[key], asked)) for key, (text, dwords) in found.items()
    }


def main():
    target = sys.argv[1]
    if sys.argv[2:] == ["--texts"]:
        llvm = Llvm(target)
        for line in sys.stdin:
            print(llvm.text([int(dword, 16) for dword in line.split()]) or "")
        return
    path = pathlib.Path(__file__).with_name(f"{target}-instructions.csv")
    states = {}
    before = path.read_text() if path.exists() else ""
    for row in csv.DictReader(io.StringIO(before)):
        states[row["encoding"], row["opcode"]] = row["state"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["encoding", "opcode", "name", "state", "sample", "text", "form"])
    for (encoding, opcode), (text, dwords, words) in listing(target).items():
        key = (encoding, f"{opcode:#x}")
        # The second part of a pair.
        name = (text.partition(" :: ")[2] if encoding == "VOPDY" else text).split()[0]
        for suffix in ("_e32", "_e64"):
            name = name.removesuffix(suffix)
        sample = " ".join(f"{dword:08x}" for dword in dwords)
        writer.writerow([*key, name, states.get(key, "refused"), sample, text, words])
    if sys.argv[2:] == ["--check"]:
        if out.getvalue() != before:
            sys.exit(f"{path}: not what LLVM lists")
        return
    path.write_text(out.getvalue())


main()
