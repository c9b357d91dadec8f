TUFF_KERNEL(1, 1, 1) void ka9cd3644e6ab1dca(TUFF_BLOCK block) {
  TUFF_GLOBAL f32* const d0 = (TUFF_GLOBAL f32*)TUFF_ADDRESS(block, 0);
  TUFF_GLOBAL f32* const d1 = (TUFF_GLOBAL f32*)TUFF_ADDRESS(block, 1);
  const i32 n0 = TUFF_SCALAR(block, 4);
  for (i32 r1 = 0; r1 < n0; r1++) {
    f32 acc0_0;
    acc0_0 = 0.0f;
    for (i32 r2 = 0; r2 < 5; r2++) {
      i32 v11 = r2 * 4;
      i32 v14 = r1 * 20;
      i32 v15 = v14 + v11;
      TUFF_ALIGNED(d1 + v15, 16);
      f32 v17 = d1[v15];
      f32 v17_1 = (d1 + v15)[1];
      f32 v17_2 = (d1 + v15)[2];
      f32 v17_3 = (d1 + v15)[3];
      f32 v18 = v17 + v17_1;
      f32 v18_1 = v17_2 + v17_3;
      f32 v18_2 = v18 + v18_1;
      f32 v21 = acc0_0 + v18_2;
      acc0_0 = v21;
    }
    d0[r1] = acc0_0;
  }
}
