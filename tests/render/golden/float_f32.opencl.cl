TUFF_KERNEL(1, 1, 1) void kc437da3753313014(TUFF_GLOBAL u8* b0, u64 o0, TUFF_GLOBAL u8* b1, u64 o1, TUFF_GLOBAL u8* b2, u64 o2) {
  TUFF_GLOBAL f32* const d0 = (TUFF_GLOBAL f32*)(b0 + o0);
  TUFF_GLOBAL f32* const d1 = (TUFF_GLOBAL f32*)(b1 + o1);
  TUFF_GLOBAL f32* const d2 = (TUFF_GLOBAL f32*)(b2 + o2);
  for (i32 r0 = 0; r0 < 16; r0++) {
    f32 v6 = d1[r0];
    f32 v8 = d2[r0];
    f32 v9 = v6 + v8;
    f32 v10 = v6 - v8;
    f32 v11 = v6 * v8;
    f32 v12 = v6 / v8;
    f32 v13 = v6 != v6 ? v6 : (v6 > v8 ? v6 : v8);
    f32 v14 = -v6;
    f32 v15 = (f32)(1) / v8;
    f32 v16 = v6 != v6 ? v6 : (v6 > v14 ? v6 : v14);
    f32 v17 = sqrt(v16);
    f32 v18 = trunc(v6);
    i32 v19 = v6 != v6;
    f32 v20 = v19 ? v8 : v6;
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
