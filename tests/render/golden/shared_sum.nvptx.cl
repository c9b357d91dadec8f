TUFF_KERNEL(64, 1, 1) void k7d08809dc91f97b4(TUFF_BLOCK block) {
  TUFF_GLOBAL f32* const d0 = (TUFF_GLOBAL f32*)TUFF_ADDRESS(block, 0);
  TUFF_GLOBAL f32* const d1 = (TUFF_GLOBAL f32*)TUFF_ADDRESS(block, 1);
  i32 v3 = TUFF_GROUP(x);
  i32 v5 = TUFF_LOCAL(x);
  TUFF_SHARED(f32, s0, 64);
  i32 v9 = v5 * 4;
  i32 v11 = v3 * 256;
  i32 v12 = v11 + v9;
  TUFF_ALIGNED(d1 + v12, 16);
  f32 v15 = d1[v12];
  f32 v15_1 = (d1 + v12)[1];
  f32 v15_2 = (d1 + v12)[2];
  f32 v15_3 = (d1 + v12)[3];
  f32 v16 = v15 + v15_1;
  f32 v16_1 = v15_2 + v15_3;
  f32 v16_2 = v16 + v16_1;
  s0[v5] = v16_2;
  TUFF_BARRIER();
  f32 acc0_0;
  acc0_0 = 0.0f;
  for (i32 r1 = 0; r1 < 64; r1++) {
    f32 v27 = s0[r1];
    f32 v29 = acc0_0 + v27;
    acc0_0 = v29;
  }
  i32 v33 = v5 == 0;
  if (v33) d0[v3] = acc0_0;
}
