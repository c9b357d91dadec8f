void k451f6e9040e74f8d(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  f32* const d2 = ((f32* const*)args)[2];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32 v4 = gx;
  i32 v7 = v4 * 8;
  f32x8 v10 = *(const f32x8u*)(d1 + v7);
  f32x8 v13 = *(const f32x8u*)(d2 + v7);
  f32x8 v14 = v10 * (f32x8)(2.0f) + v13;
  f32x8 v16 = (f32x8)(0.0f) > v14 ? (f32x8)(0.0f) : v14;
  *(f32x8u*)(d0 + v7) = v16;
}
