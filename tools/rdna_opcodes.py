#!/usr/bin/env python3
"""Writes the table of gfx1100's opcodes (src/emu/rdna/opcodes.def) from what LLVM's disassembler says.

Every number of every encoding is shown to llvm-mc with registers that tell the fields apart; the text
gives the name, which fields are operands, how many registers each takes and which have modifiers. The
field positions are those of AMD's "RDNA3 Instruction Set Architecture" (2023), chapter 15.
Usage: tools/rdna_opcodes.py [LLVM_MC] > src/emu/rdna/opcodes.def
"""
import re
import subprocess
import sys

MC = sys.argv[1] if len(sys.argv) > 1 else "llvm-mc-19"
DST, SRC = 16, (32, 48, 64)  # register numbers of the probes, apart and aligned
VGPR, DST2 = 256, 80
HEADER = """\
// The opcodes of gfx1100. Written by tools/rdna_opcodes.py from LLVM's disassembler: do not edit.
// Each operation has one row, with its first encoding; TUFF_RDNA_AGAIN is another encoding of one
// that has a row. Operands stand in the order of the text, each a field (D destination, 0 1 2
// sources, A address, S scalar base or destination, T scalar offset, I immediate, K literal, V the
// implied vcc), a register file (v vector, s scalar, x any source) and a count of registers; h is
// half a register, b the same where LLVM 19 prints no half, t a source of 16 bits, i a source that
// ignores modifiers.

#ifndef TUFF_RDNA_AGAIN
#define TUFF_RDNA_AGAIN(encoding, number, id, text, operands)
#endif
// A short encoding and the one in VOP3.
#define TUFF_RDNA_E64(encoding, number, id, text, operands, e64_operands) \\
  TUFF_RDNA(encoding, number, id, text "_e32", operands)                  \\
  TUFF_RDNA_AGAIN(VOP3, number_in_vop3(Encoding::encoding, number), id, text "_e64", e64_operands)
// A comparison into a scalar register, and the same into EXEC.
#define TUFF_RDNA_COMPARE(number, name, text, operands, e64_operands)                            \\
  TUFF_RDNA_E64(VOPC, number, V_CMP_##name, "v_cmp_" text, "Vs1 " operands, "Ds1 " e64_operands) \\
  TUFF_RDNA_E64(VOPC, number + 128, V_CMPX_##name, "v_cmpx_" text, operands, e64_operands)
// What addresses reach: operands before and behind the address.
#define TUFF_RDNA_FLAT_GLOBAL(number, name, text, before, behind)         \\
  TUFF_RDNA(FLAT, number, FLAT_##name, "flat_" text, before "Av2" behind) \\
  TUFF_RDNA(GLOBAL, number, GLOBAL_##name, "global_" text, before "Av2" behind " Ss2")
#define TUFF_RDNA_FLAT_GLOBAL_SCRATCH(number, name, text, before, behind) \\
  TUFF_RDNA_FLAT_GLOBAL(number, name, text, before, behind)               \\
  TUFF_RDNA(SCRATCH, number, SCRATCH_##name, "scratch_" text, before "Av1" behind " Ss1")
// Either half of a dual issue.
#define TUFF_RDNA_DUAL(number, id, text, operands)   \\
  TUFF_RDNA_AGAIN(VOPDX, number, id, text, operands) \\
  TUFF_RDNA_AGAIN(VOPDY, number, id, text, operands)

"""


def vop3(op, src, low=0, high=0):
    words = [0b110101 << 26 | op << 16 | low | DST, high]
    for i, register in enumerate(src):
        words[1] |= register << 9 * i
    return words


def vop3p(op, high_halves, sources=3):
    words = vop3(op, ALL_V[:sources], high_halves << 14, high_halves * 3 << 27)
    return [words[0] ^ (0b110101 << 26) | 0b11001100 << 24, words[1]]


def flat(op, segment, fields, glc):
    scalar_base = 0x7C if segment else 0x7C
    words = [0b110111 << 26 | op << 18 | segment << 16 | glc << 14, scalar_base << 16]
    words[1] |= ("D" in fields) * DST << 24 | ("A" in fields) * SRC[0] | ("0" in fields) * SRC[1] << 8
    words[1] |= (segment == 1) << 23
    return words


def ds(op, fields):
    return [0b110110 << 26 | op << 18,
            ("D" in fields) * DST << 24 | ("A" in fields) * SRC[0] | ("0" in fields) * SRC[1] << 8 |
            ("1" in fields) * SRC[2] << 16]


def mubuf(op, glc, dst=DST, operands=True):
    low = 0b111000 << 26 | op << 18 | glc << 14
    return [low, 1 << 22 | 0x80 << 24 | SRC[1] >> 2 << 16 | dst << 8 | SRC[0]] if operands else [low, 0]


def vopd(x, y, src1_x, literal, src1_y=SRC[1] + 1):
    return [0b110010 << 26 | x << 22 | y << 17 | src1_x << 9 | v(SRC[0]),
            DST << 24 | DST2 >> 1 << 17 | src1_y << 9 | v(SRC[0] + 1), *literal]


def v(n):
    return VGPR + n


ALL_V = tuple(v(n) for n in SRC)
ALL_S = SRC
LITERAL = 0x12345678

# encoding: (count of opcodes, op -> probes; the first that LLVM knows counts)
PROBES = {
    "SOP1": (256, lambda op: [[0b101111101 << 23 | d << 16 | op << 8 | s]
                              for d, s in ((DST, SRC[0]), (DST, 0), (0, SRC[0]), (0, 0))]),
    "SOP2": (96, lambda op: [[0b10 << 30 | op << 23 | d << 16 | SRC[1] << 8 | SRC[0]]
                             for d in (DST, 0)]),
    "SOPK": (29, lambda op: [[0b1011 << 28 | op << 23 | d << 16 | i] + literal
                             for literal in ([], [LITERAL])
                             for d in (DST, 0, 124) for i in (0x1801, 0)]),
    "SOPC": (128, lambda op: [[0b101111110 << 23 | op << 16 | SRC[1] << 8 | SRC[0]]]),
    "SOPP": (128, lambda op: [[0b101111111 << 23 | op << 16]]),
    "SMEM": (256, lambda op: [[0b111101 << 26 | op << 18 | d << 6 | b >> 1, t << 25]
                              for d, b, t in ((DST, SRC[0], SRC[1]), (0, SRC[0], SRC[1]),
                                              (0, 0, 0), (0, 0, 0x7C))]),
    "VOP1": (256, lambda op: [[0b0111111 << 25 | DST << 17 | op << 9 | v(SRC[0])],
                              [0b0111111 << 25 | op << 9]]),
    "VOP2": (62, lambda op: [[op << 25 | DST << 17 | SRC[1] << 9 | v(SRC[0])] + literal
                             for literal in ([], [LITERAL])]),
    "VOPC": (256, lambda op: [[0b0111110 << 25 | op << 17 | SRC[1] << 9 | v(SRC[0])]]),
    "VOP3": (1024, lambda op: [vop3(op, file[:n])
                               for n in (3, 2, 1) for file in (ALL_V, (v(32), 48, 64), ALL_S,
                                                               (v(32), v(48), 64))] +
             [[0b110101 << 26 | op << 16, 0]] +
             [[w & ~0xFF | 126, x] for n in (2, 3) for w, x in [vop3(op, ALL_V[:n])]]),
    "VOP3P": (128, lambda op: [vop3p(op, high, n) for n in (3, 2, 1) for high in (1, 0)]),
    "DS": (256, lambda op: [ds(op, f) for f in ("DA01", "DA0", "A01", "A0", "DA", "D", "A", "0", "")]),
    "FLAT": (128, lambda op: [flat(op, 0, f, g) for f in ("DA0", "DA", "A0", "") for g in (1, 0)]),
    "SCRATCH": (128, lambda op: [flat(op, 1, f, g) for f in ("DA0", "DA", "A0") for g in (1, 0)]),
    "GLOBAL": (128, lambda op: [flat(op, 2, f, g) for f in ("DA0", "DA", "A0", "D", "0")
                                for g in (1, 0)]),
    "MUBUF": (256, lambda op: [mubuf(op, 1), mubuf(op, 0), mubuf(op, 0, 0), mubuf(op, 0, 0, False)]),
    "VOPDX": (16, lambda op: [vopd(op, 3, b, ()) for b in (SRC[1], 0)] +
              [vopd(op, 3, SRC[1], [LITERAL])]),
    "VOPDY": (32, lambda op: [vopd(3, op, SRC[1], (), b) for b in (SRC[1] + 1, 0)] +
              [vopd(3, op, SRC[1], [LITERAL])]),
}


def disassemble(cases):
    """Texts of lists of words, None where LLVM knows none."""
    lines = []
    for words in cases:
        data = b"".join(w.to_bytes(4, "little") for w in words)
        lines.append(",".join(f"0x{b:02x}" for b in data))
    done = subprocess.run([MC, "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1100", "-disassemble",
                           "-show-encoding"], input="".join(f"[{line}]\n" for line in lines), capture_output=True,
                          text=True, check=False)
    texts = {}
    for line in done.stdout.splitlines():
        found = re.match(r"\s*(.*?)\s*; encoding: \[(.*)\]", line)
        if found:
            texts[found.group(2)] = found.group(1)
    return [texts.get(line) for line in lines]


# What a register number of the probes stands for, by encoding; else FIELDS[""].
FIELDS = {
    "": {DST: "D", SRC[0]: "0", SRC[1]: "1", SRC[2]: "2"},
    "SMEM": {DST: "D", SRC[0]: "A", SRC[1]: "T"},
    "MUBUF": {DST: "D", SRC[0]: "A", SRC[1]: "S"},
    "VOPDY": {DST2 + 1: "D", SRC[0] + 1: "0", SRC[1] + 1: "1"},
}
for memory in ("DS", "FLAT", "SCRATCH", "GLOBAL"):
    FIELDS[memory] = {DST: "D", SRC[0]: "A", SRC[1]: "0", SRC[2]: "1"}
REGISTER = re.compile(r"([vs])(?:(\d+)|\[(\d+):(\d+)\])(\.l)?$")


def operand(encoding, text):
    """One operand of the table, such as Dv2, of its text."""
    found = REGISTER.match(text)
    if found:
        first = int(found.group(2) or found.group(3))
        count = int(found.group(4) or first) - first + 1
        field = FIELDS.get(encoding, FIELDS[""]).get(first, "S")
        vector_source = field in "012" and found.group(1) == "v" and encoding.startswith("VOP")
        return f"{field}{'x' if vector_source else found.group(1)}{count}{'h' if found.group(5) else ''}"
    if text == "vcc_lo":
        return "Vs1"
    if text == "off":
        return "Ss1" if encoding == "SCRATCH" else "Ss2"
    return "Kx1" if text == f"0x{LITERAL:x}" else "Ts1" if encoding == "MUBUF" else "Ix1"


def source_marks(encoding, texts):
    """(op, source) -> i where modifiers are ignored, t where a literal is cut to 16 bits."""
    long = encoding in ("VOP3", "VOP3P")
    if encoding not in ("VOP1", "VOP2", "VOPC") and not long:
        return {}
    cases, keys = [], []
    for op, (_, words) in texts.items():
        for source in range(3 if long else 1):
            keys.append((op, source))
            at, shift = (1, 9 * source) if long else (0, 0)
            literal = list(words[:1 + at])
            literal[at] = literal[at] & ~(0x1FF << shift) | 255 << shift
            cases.append(literal + [LITERAL])
            cases.append([words[0] | 1 << 8 + source, words[1]] if encoding == "VOP3" else words)
    answers, marks = disassemble(cases), {}
    for i, (op, source) in enumerate(keys):
        cut = f"0x{LITERAL & 0xFFFF:x}" in (answers[2 * i] or "")
        ignored = encoding == "VOP3" and answers[2 * i + 1] == texts[op][0]
        marks[op, source] = "t" * cut + "i" * ignored
    return marks


def row(encoding, op, text, marks):
    """(id, text, operands) of one opcode."""
    half = 1 if encoding == "VOPDY" else 0
    name, _, rest = text.split(" :: ")[half if " :: " in text else 0].partition(" ")
    rest = re.sub(r"\b(hwreg|sendmsg)\(.*?\)", "0", rest)
    rest = re.sub(r" (op_sel_hi:.*|offen|glc)", "", rest)
    if encoding == "SOPP":
        rest = "0" if rest else ""
    codes = [operand(encoding, t) for t in rest.split(", ") if t]
    operands = " ".join(c + (marks.get((op, int(c[0])), "") if c[0] in "012" else "") for c in codes)
    base = re.sub(r"_e(32|64)$", "", name).replace("v_dual_", "v_")
    return base.upper(), name, with_halves(encoding, name, operands)


def with_halves(encoding, name, operands):
    """Marks operands of 16 bits: short encodings name half of one of the first 128 registers (ISA 7.1,
    "true 16-bit" operands), which LLVM 19 decodes for few opcodes."""
    if encoding not in ("VOP1", "VOP2", "VOPC") or "h" in operands:
        return operands
    narrow_sources = "0x1t" in operands.split()
    narrow_result = re.match(r"v_(cvt_(norm_)?[fiu]16_|sat_pk_u8_i16)", name) or (
        narrow_sources and not re.match(r"v_cvt_[fiu]32_", name))
    marked = []
    for code in operands.split():
        narrow = narrow_result if code == "Dv1" else narrow_sources and code in ("0x1t", "1x1")
        marked.append(code + "b" if narrow else code)
    return " ".join(marked)


VOP3_NUMBERS = {"VOP1": 0x180, "VOP2": 0x100, "VOPC": 0}  # where VOP3 has a short encoding's


class Rows:
    """The lines of {encoding: {number: (id, text, operands)}}: one for all that derive from a row."""

    def __init__(self, tables):
        self.tables, self.told, self.ids = tables, set(), set()

    def take(self, encoding, number, *expected):
        """Marks a row as told by another's line; False if there is no such row."""
        same = self.tables[encoding].get(number) == expected
        if same:
            self.told.add((encoding, number))
            self.ids.add(expected[0])
        return same

    def take_e64(self, encoding, number):
        """Operands of the VOP3 form of a short encoding, or None."""
        name, text, _ = self.tables[encoding][number]
        long_number, long_text = VOP3_NUMBERS[encoding] + number, re.sub("_e32$", "_e64", text)
        operands = self.tables["VOP3"].get(long_number, ("", "", None))[2]
        derives = long_text != text and self.take("VOP3", long_number, name, long_text, operands)
        return operands if derives else None

    def comparison(self, number, name, operands, e64_operands):
        short = operands.removeprefix("Vs1 ")
        assert self.take("VOPC", number + 128, f"V_CMPX_{name.upper()}", f"v_cmpx_{name}_e32", short)
        long = self.take_e64("VOPC", number + 128)
        assert e64_operands == "Ds1 " + long
        return f'TUFF_RDNA_COMPARE({number}, {name.upper()}, "{name}", "{short}", "{long}")'

    def flat(self, number, name, operands):
        before, behind = operands.split("Av2")
        lower = name.lower()
        assert self.take("GLOBAL", number, f"GLOBAL_{name}", f"global_{lower}", f"{operands} Ss2")
        scratch = self.take("SCRATCH", number, f"SCRATCH_{name}", f"scratch_{lower}",
                            f"{before}Av1{behind} Ss1")
        macro = "TUFF_RDNA_FLAT_GLOBAL" + "_SCRATCH" * scratch
        return f'{macro}({number}, {name}, "{lower}", "{before}", "{behind}")'

    def line(self, encoding, number, name, text, operands):
        if encoding == "FLAT":
            return self.flat(number, name.removeprefix("FLAT_"), operands)
        if encoding == "VOPDX" and self.take("VOPDY", number, name, text, operands):
            return f'TUFF_RDNA_DUAL({number}, {name}, "{text}", "{operands}")'
        long = self.take_e64(encoding, number) if encoding in VOP3_NUMBERS else None
        bare = text.removesuffix("_e32")
        if bare.startswith("v_cmp_"):
            return self.comparison(number, bare.removeprefix("v_cmp_"), operands, long)
        if long is not None:
            return f'TUFF_RDNA_E64({encoding}, {number}, {name}, "{bare}", "{operands}", "{long}")'
        again = "_AGAIN" if name in self.ids else ""
        return f'TUFF_RDNA{again}({encoding}, {number}, {name}, "{text}", "{operands}")'

    def lines(self):
        for encoding, table in self.tables.items():
            for number, columns in table.items():
                if (encoding, number) not in self.told:
                    yield self.line(encoding, number, *columns)
                    self.ids.add(columns[0])


# What LLVM 19 does not decode: ISA 16.7, 7.1; Mesa 25 makes them.
UNKNOWN_TO_LLVM = {
    "VOP1": {102: ("V_SWAP_B16", "v_swap_b16", "Dv1h 0x1h")},
    "VOP3": {412: ("V_MOV_B16", "v_mov_b16_e64", "Dv1 0x1t")},
}


def main():
    tables = {}
    for encoding, (count, probes) in PROBES.items():
        cases = [(op, words) for op in range(count) for words in probes(op)]
        texts = {}
        for (op, words), text in zip(cases, disassemble([words for _, words in cases])):
            if text and "Invalid register" not in text:
                texts.setdefault(op, (text, words))
        marks = source_marks(encoding, texts)
        tables[encoding] = {op: row(encoding, op, text, marks) for op, (text, _) in texts.items()}
        for op, columns in UNKNOWN_TO_LLVM.get(encoding, {}).items():
            assert op not in tables[encoding], f"LLVM knows {columns[1]} now"
            tables[encoding][op] = columns
        tables[encoding] = dict(sorted(tables[encoding].items()))
    macros = re.findall(r"(?m)^#define (\w+)", HEADER)
    print(HEADER + "\n".join(Rows(tables).lines()) + "\n")
    print("\n".join(f"#undef {macro}" for macro in ["TUFF_RDNA", *macros]))


if __name__ == "__main__":
    main()
