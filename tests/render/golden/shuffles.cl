TUFF_KERNEL(64, 1, 1) void kf2fe3221e8273c28(TUFF_GLOBAL f32* d0, TUFF_GLOBAL f32* d1, TUFF_GLOBAL i32* d2, TUFF_GLOBAL i32* d3) {
  const i32 v5 = TUFF_LOCAL(x);
  const i32 v7 = tuff_lane();
  const i32 v9 = TUFF_SUBGROUP(TUFF_LOCAL(x));
  const f32 v11 = d1[v5];
  const i32 v13 = d2[v5];
  const u32 v14 = tuff_shuffle(((union { f32 a; u32 b; }){v11}).b, v13);
  const f32 v14_1 = ((union { u32 a; f32 b; }){v14}).b;
  const u32 v16 = tuff_broadcast(((union { f32 a; u32 b; }){v11}).b, 3);
  const f32 v16_1 = ((union { u32 a; f32 b; }){v16}).b;
  const f32 v17 = v14_1 + v16_1;
  d0[v5] = v17;
  const i32 v21 = v9 * 100;
  const i32 v22 = v21 + v7;
  d3[v5] = v22;
}
