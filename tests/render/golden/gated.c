void k03b61b4e731945d3(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32 v3 = gx;
  i32 v6 = v3 * 8;
  i32x8 v9 = (i32x8)(v6) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  i32x8 v9_1 = v9 < (i32x8)(37);
  i32x8 v13 = (i32x8)((v6 - 3)) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  i32x8 v13_1 = (i32x8)((-1)) < v13;
  i32x8 v14 = v9_1 & v13_1;
  f32x8 v16 = (f32x8)get_u32x8((const u32*)(d1 + v6 - 3), v14);
  i32 v18 = v3 < 2;
  f32x8 v20 = v18 ? *(const f32x8u*)(d1 + v6) : (f32x8)(0);
  f32x8 v21 = v16 + v20;
  put_u32x8((u32*)(d0 + v6), v9_1, (u32x8)(v21));
}
