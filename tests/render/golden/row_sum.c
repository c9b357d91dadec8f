void ka645944e89808b1d(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  const i32 n0 = ((const i32*)args)[4];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  for (i32 r1 = 0; r1 < n0; r1++) {
    f32 acc0_0;
    acc0_0 = 0.0f;
    for (i32 r2 = 0; r2 < 5; r2++) {
      i32 v11 = r2 * 4;
      i32 v14 = r1 * 20;
      i32 v15 = v14 + v11;
      f32x4 v17 = *(const f32x4u*)(d1 + v15);
      f32x4 v18 = v17;
      f32x2 v18_1 = v18.lo + v18.hi;
      f32 v18_2 = v18_1.x + v18_1.y;
      f32 v21 = acc0_0 + v18_2;
      acc0_0 = v21;
    }
    d0[r1] = acc0_0;
  }
}
