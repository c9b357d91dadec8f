#!/usr/bin/env python3
"""Writes the seeds of the fuzz target for PTX: make_ptx_corpus.py FOLDER."""
import pathlib
import sys

HEAD = ".version 7.8\n.target sm_86\n.address_size 64\n"
REGISTERS = """.reg .pred %p<4>; .reg .b16 %s<8>; .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .f32 %f<4>; .reg .f64 %e<4>;
ld.param.u64 %d0, [a]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
"""


def kernel(body, before=""):
    return HEAD + before + "\n.visible .entry k(.param .u64 a)\n{\n" + REGISTERS + body + "\nret;\n}\n"


SEEDS = [
    kernel("ld.global.u32 %r1, [%d2]; add.s32 %r2, %r1, 5; st.global.u32 [%d2], %r2;"),
    kernel("ld.global.v2.f32 {%f0, %f1}, [%d0+8]; fma.rn.ftz.sat.f32 %f2, %f0, %f1, 0f3F800000; cvt.rn.f16.f32 %s1, %f2;"
           "st.global.b16 [%d2], %s1; sqrt.rz.f64 %e1, 0d4000000000000000; ex2.approx.f32 %f1, %f2;"),
    kernel("setp.lt.and.u32 %p1|%p2, %r0, 9, !%p1; @%p1 bra A; shl.b32 %r1, %r0, 3; bra.uni B; A: mov.u32 %r1, -1;"
           "B: selp.b32 %r2, %r1, 7, %p2; prmt.b32 %r3, %r1, %r2, 0x3210; lop3.b32 %r4, %r1, %r2, %r3, 0x96;"),
    kernel("mov.u64 %d3, box; add.u64 %d3, %d3, %d1; st.shared.u32 [%d3], %r0; bar.sync 0; ld.shared.u32 %r1, [%d3];"
           "shfl.sync.bfly.b32 %r2|%p1, %r1, 1, 31, 0xffffffff; atom.shared.cas.b32 %r3, [%d3], %r1, %r2;"
           "red.global.add.u32 [%d0], 1; vote.sync.ballot.b32 %r4, %p1, 0xffffffff; membar.gl;", ".shared .align 4 .b8 box[256];"),
    kernel("{ .param .b32 n; .param .b32 m; st.param.b32 [n], %r0; call.uni (m), f, (n); ld.param.b32 %r1, [m]; }",
           ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 x; .local .b32 y[2]; mov.u32 x, 3; st.local.u32 [y], x;"
           " ld.param.b32 x, [a]; st.param.b32 [r], x; ret; }"),
    kernel("T: .branchtargets A, B; and.b32 %r1, %r0, 1; brx.idx %r1, T; A: mov.b64 %d4, {%r0, %r1}; B: mov.b64 {%r2, _}, %d4;"
           "ld.const.u32 %r3, [t+4]; cvta.shared.u64 %d5, %d1; isspacep.shared %p1, %d5; bfe.u32 %r4, %r3, 3, 5;",
           ".const .u32 t[2] = {1, 0x2}; .global .u64 g = generic(t); .extern .shared .align 16 .b8 dyn[];"),
    kernel("mov.b32 %r1, 0; mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1},"
           " {%r1, %r1}, {%f0, %f1, %f2, %f3}; bar.red.popc.u32 %r2, 1, %p0; redux.sync.add.u32 %r3, %r2, -1; trap;"),
    kernel("mov.u32 %r1, dyn; cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all;"
           "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r2}, [%r1]; L: add.cc.u32 %r3, %r2, %r1; @%p3 bra L; exit;",
           ".extern .shared .align 16 .b8 dyn[];"),
]


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1]) / "ptx"
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(SEEDS):
        (folder / f"seed-{number}").write_text(seed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
