TUFF_KERNEL(64, 1, 1) void k4682e56b4eb3ae18(TUFF_BLOCK block) {
  TUFF_GLOBAL f32* const d0 = (TUFF_GLOBAL f32*)TUFF_ADDRESS(block, 0);
  TUFF_GLOBAL f32* const d1 = (TUFF_GLOBAL f32*)TUFF_ADDRESS(block, 1);
  TUFF_GLOBAL i32* const d2 = (TUFF_GLOBAL i32*)TUFF_ADDRESS(block, 2);
  TUFF_GLOBAL i32* const d3 = (TUFF_GLOBAL i32*)TUFF_ADDRESS(block, 3);
  i32 v5 = TUFF_LOCAL(x);
  i32 v7 = tuff_lane();
  i32 v9 = TUFF_SUBGROUP(TUFF_LOCAL(x));
  f32 v11 = d1[v5];
  i32 v13 = d2[v5];
  u32 v14 = tuff_shuffle(((union { f32 a; u32 b; }){v11}).b, v13);
  f32 v14_1 = ((union { u32 a; f32 b; }){v14}).b;
  u32 v16 = tuff_broadcast(((union { f32 a; u32 b; }){v11}).b, 3);
  f32 v16_1 = ((union { u32 a; f32 b; }){v16}).b;
  f32 v17 = v14_1 + v16_1;
  d0[v5] = v17;
  i32 v21 = v9 * 100;
  i32 v22 = v21 + v7;
  d3[v5] = v22;
}
