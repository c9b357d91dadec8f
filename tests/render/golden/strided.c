void k960808736da9ea60(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  f32* const d2 = ((f32* const*)args)[2];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  const i32 v4 = gx;
  const i32 v7 = v4 * 8;
  const i32 v10 = v7 * 3;
  const f32x8 v12 = (f32x8){d1[v10], (d1 + v10)[3], (d1 + v10)[6], (d1 + v10)[9], (d1 + v10)[12], (d1 + v10)[15], (d1 + v10)[18], (d1 + v10)[21]};
  const i32x8 v13 = (i32x8)(v7) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  const f32x8 v13_1 = __builtin_convertvector(v13, f32x8);
  const f32x8 v14 = v12 + v13_1;
  const i32 v16 = v7 * 2;
  (d0 + v16)[1] = v14[0];
  (d0 + v16)[3] = v14[1];
  (d0 + v16)[5] = v14[2];
  (d0 + v16)[7] = v14[3];
  (d0 + v16)[9] = v14[4];
  (d0 + v16)[11] = v14[5];
  (d0 + v16)[13] = v14[6];
  (d0 + v16)[15] = v14[7];
  const f32x8 v20 = v12;
  const f32x4 v20_1 = v20.lo != v20.lo ? v20.lo : (v20.lo > v20.hi ? v20.lo : v20.hi);
  const f32x2 v20_2 = v20_1.lo != v20_1.lo ? v20_1.lo : (v20_1.lo > v20_1.hi ? v20_1.lo : v20_1.hi);
  const f32 v20_3 = v20_2.x != v20_2.x ? v20_2.x : (v20_2.x > v20_2.y ? v20_2.x : v20_2.y);
  d2[v4] = v20_3;
}
