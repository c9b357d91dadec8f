TUFF_KERNEL(64, 1, 1) void k2a3ee8ae774d802b(TUFF_GLOBAL f32* d0, TUFF_GLOBAL f32* d1, TUFF_GLOBAL f32* d2) {
  i32 v2 = TUFF_GROUP(x);
  i32 v3 = TUFF_LOCAL(x);
  f32 acc0_0;
  f32 acc0_1;
  f32 acc0_2;
  f32 acc0_3;
  i32 v12 = v2 * 64;
  i32 v13 = v12 + v3;
  acc0_0 = 0.0f;
  acc0_1 = 0.0f;
  acc0_2 = 0.0f;
  acc0_3 = 0.0f;
  for (i32 r2 = 0; r2 < 16; r2++) {
    i32 v18 = r2 * 4;
    i32 v19 = v12 + v18;
    f32 v22 = d1[v19];
    f32 v22_1 = (d1 + v19)[1];
    f32 v22_2 = (d1 + v19)[2];
    f32 v22_3 = (d1 + v19)[3];
    i32 v23 = r2 * 256;
    i32 v24 = v3 + v23;
    f32 v27 = d2[v24];
    f32 v27_1 = (d2 + v24)[64];
    f32 v27_2 = (d2 + v24)[128];
    f32 v27_3 = (d2 + v24)[192];
    f32 v30 = v22 * v27 + acc0_0;
    f32 v30_1 = v22_1 * v27_1 + acc0_1;
    f32 v30_2 = v22_2 * v27_2 + acc0_2;
    f32 v30_3 = v22_3 * v27_3 + acc0_3;
    acc0_0 = v30;
    acc0_1 = v30_1;
    acc0_2 = v30_2;
    acc0_3 = v30_3;
  }
  f32 v35 = acc0_0 + acc0_1;
  f32 v35_1 = acc0_2 + acc0_3;
  f32 v35_2 = v35 + v35_1;
  d0[v13] = v35_2;
}
