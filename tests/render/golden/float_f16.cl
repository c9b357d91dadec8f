TUFF_KERNEL(1, 1, 1) void k8dcbfe0f56f3ada3(TUFF_GLOBAL f16* d0, TUFF_GLOBAL f16* d1, TUFF_GLOBAL f16* d2) {
  for (i32 r0 = 0; r0 < 16; r0++) {
    f16 v6 = d1[r0];
    f16 v8 = d2[r0];
    f16 v9 = v6 + v8;
    f16 v10 = v6 - v8;
    f16 v11 = v6 * v8;
    f16 v12 = v6 / v8;
    f16 v13 = v6 != v6 ? v6 : (v6 > v8 ? v6 : v8);
    f16 v14 = -v6;
    f16 v15 = (f16)(1) / v8;
    f16 v16 = v6 != v6 ? v6 : (v6 > v14 ? v6 : v14);
    f16 v17 = __builtin_elementwise_sqrt(v16);
    f16 v18 = __builtin_elementwise_trunc(v6);
    i32 v19 = v6 != v6;
    f16 v20 = v19 ? v8 : v6;
    d0[r0] = v9;
    (d0 + r0)[16] = v10;
    (d0 + r0)[32] = v11;
    (d0 + r0)[48] = v12;
    (d0 + r0)[64] = v13;
    (d0 + r0)[80] = v14;
    (d0 + r0)[96] = v15;
    (d0 + r0)[112] = v17;
    (d0 + r0)[128] = v18;
    (d0 + r0)[144] = v20;
  }
}
