void k5a9cca9b925ca176(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  u32* const d1 = ((u32* const*)args)[1];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32 v3 = gx;
  i32 v6 = v3 * 8;
  u32x8 v9 = *(const u32x8u*)(d1 + v6);
  u32x8 v11 = v9 >> (u32x8)(8u);
  f32x8 v12 = __builtin_convertvector(v11, f32x8);
  f32x8 v14 = v12 * (f32x8)(5.9604645e-08f);
  f32x8 v16 = v14 * (f32x8)(0.3f);
  f32x8 v18 = v16 + (f32x8)((-0.1f));
  *(f32x8u*)(d0 + v6) = v18;
}
