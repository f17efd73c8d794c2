#!/usr/bin/env python3
"""Lists all instructions of a target as LLVM's disassembler knows them: every opcode of every encoding is disassembled.

    ./list-instructions.py gfx90a            writes gfx90a-instructions.csv
    ./list-instructions.py gfx90a --check    says whether that is what the file has

Columns: encoding, opcode, name, sample (the dwords of one such instruction) and state, which this program keeps as it is:
`executed`, or `refused` where the interpreter stops with the instruction's name. What is new is refused.
LLVM_MC names the assembler, by default llvm-mc-19.
"""
import csv
import io
import os
import pathlib
import subprocess
import sys

LITERAL = 0x12345678


def candidates():
    """(encoding, opcode, dwords): for each opcode several samples, of which the first that is valid counts."""
    for op in range(256):
        for rest in ((4 << 16) | 2, (4 << 16) | 0x80, 2, 4 << 16):
            yield "SOP1", op, [0xBE800000 | op << 8 | rest]
    for op in range(0x60):
        yield "SOP2", op, [0x80000000 | op << 23 | (4 << 16) | (6 << 8) | 2]
    for op in range(0x1D):
        yield "SOPK", op, [0xB0000000 | op << 23 | (4 << 16) | 1]
        yield "SOPK", op, [0xB0000000 | op << 23 | 1, LITERAL]
    for op in range(128):
        yield "SOPC", op, [0xBF000000 | op << 16 | (6 << 8) | 2]
    for op in range(128):
        yield "SOPP", op, [0xBF800000 | op << 16 | 1]
        yield "SOPP", op, [0xBF800000 | op << 16]
    for op in range(256):
        yield "SMEM", op, [0xC0000000 | op << 18 | (8 << 6) | 2 | 1 << 17, 0x10]
        yield "SMEM", op, [0xC0000000 | op << 18 | (8 << 6) | 1 << 17, 0]
        yield "SMEM", op, [0xC0000000 | op << 18, 0]
    for op in range(256):
        yield "VOP1", op, [0x7E000000 | 4 << 17 | op << 9 | 0x102]
        yield "VOP1", op, [0x7E000000 | op << 9]
    for op in range(62):
        yield "VOP2", op, [op << 25 | 4 << 17 | 6 << 9 | 0x102]
        yield "VOP2", op, [op << 25 | 4 << 17 | 6 << 9 | 0x102, LITERAL]
    for op in range(256):
        yield "VOPC", op, [0x7C000000 | op << 17 | 6 << 9 | 0x102]
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
            for operands in (2 | 4 << 8 | 6 << 16 | 8 << 24, 2 | 4 << 8 | 8 << 24, 2 | 4 << 8 | 6 << 16, 2 | 4 << 8,
                             2 | 8 << 24, 8 << 24, 2, 0):
                yield "DS", op, [0xD8000000 | op << 17 | gds, operands]
    for number, encoding in enumerate(("FLAT", "SCRATCH", "GLOBAL")):
        for op in range(128):
            for operands in (2 | 4 << 8 | 8 << 24, 2 | 8 << 24, 2 | 4 << 8):
                address = 0 if encoding == "FLAT" else 0x7F << 16
                yield encoding, op, [0xDC000000 | op << 18 | number << 14, operands | address]
                # The return of an atomic.
                yield encoding, op, [0xDC000000 | op << 18 | number << 14 | 1 << 16, operands | address]
                yield encoding, op, [0xDC000000 | op << 18 | number << 14, operands | address | 2 << 16]
    for op in range(128):
        yield "MUBUF", op, [0xE0000000 | op << 18 | 1 << 12, 2 | 4 << 8 | 2 << 16 | 128 << 24]
        yield "MUBUF", op, [0xE0000000 | op << 18, 0]
    for op in range(16):
        yield "MTBUF", op, [0xE8000000 | op << 15 | 1 << 12 | 4 << 23 | 4 << 19, 2 | 4 << 8 | 2 << 16 | 128 << 24]
    for op in range(256):
        for mask in (1, 15):
            yield "MIMG", op, [0xF0000000 | (op & 0x7F) << 18 | op >> 7 | mask << 8, 2 | 4 << 8 | 2 << 16 | 2 << 21]
    yield "EXP", 0, [0xC4000000 | 0xF, 0x04030201]
    for op in range(4):
        yield "VINTRP", op, [0xD4000000 | 4 << 18 | op << 16 | 2]


def disassemble(target, samples):
    """The text of each sample, None where it is not one instruction."""
    tool = os.environ.get("LLVM_MC", "llvm-mc-19")
    # Behind each sample stand two no-ops of an unlikely length, one kind behind every other sample: what is invalid
    # leaves any number of lines, and what lacks a literal takes the first no-op for it.
    lines = []
    for number, dwords in enumerate(samples):
        for dword in [*dwords, *2 * [0xBF807E50 | number % 2]]:
            lines.append(" ".join(f"0x{byte:02x}" for byte in dword.to_bytes(4, "little")))
    command = [tool, "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={target}", "--show-encoding"]
    result = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
    texts, group = [], []
    for line in result.stdout.splitlines():
        text, _, encoding = line.partition("; encoding: [")
        text = " ".join(text.split())
        if text == f"s_nop 0x7e5{len(texts) % 2}":
            dwords = samples[len(texts)]
            texts.append(group[0][0] if [length for _, length in group] == [4 * len(dwords)] else None)
            group = []
        elif encoding and not text.startswith("s_nop 0x7e5"):
            group.append((text, encoding.count(",") + 1))
    assert len(texts) == len(samples), (len(texts), len(samples))
    return texts


def listing(target):
    found = {}
    samples = list(candidates())
    for (encoding, opcode, dwords), text in zip(samples, disassemble(target, [dwords for _, _, dwords in samples])):
        # An operand of the wrong kind is printed with a remark.
        if text is not None and "/*" not in text and (encoding, opcode) not in found:
            found[encoding, opcode] = (text, dwords)
    return found


def main():
    target = sys.argv[1]
    path = pathlib.Path(__file__).with_name(f"{target}-instructions.csv")
    states = {}
    before = path.read_text() if path.exists() else ""
    for row in csv.DictReader(io.StringIO(before)):
        states[row["encoding"], row["opcode"]] = row["state"]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["encoding", "opcode", "name", "state", "sample", "text"])
    for (encoding, opcode), (text, dwords) in listing(target).items():
        key = (encoding, f"{opcode:#x}")
        name = text.split()[0]
        for suffix in ("_e32", "_e64"):
            name = name.removesuffix(suffix)
        sample = " ".join(f"{dword:08x}" for dword in dwords)
        writer.writerow([*key, name, states.get(key, "refused"), sample, text])
    if sys.argv[2:] == ["--check"]:
        if out.getvalue() != before:
            sys.exit(f"{path}: not what {os.environ.get('LLVM_MC', 'llvm-mc-19')} lists")
        return
    path.write_text(out.getvalue())


main()
