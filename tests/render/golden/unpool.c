void k2e7dd3d851f1d2aa(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  f32* const d2 = ((f32* const*)args)[2];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32x16 v10 = (i32x16){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  i32x16 v10_1 = v10 < (i32x16)(12);
  for (i32 r0 = 0; r0 < 2; r0++) {
    i32 v12 = r0 * 12;
    f32x16 v16 = (f32x16)get_u32x16((const u32*)(d1 + v12), v10_1);
    i32 v17 = r0 * 6;
    i32x8 v20 = __builtin_shufflevector(v10_1, v10_1, 0, 2, 4, 6, 8, 10, 12, 14);
    i32x8 v20_1 = __builtin_shufflevector(v10_1, v10_1, 1, 3, 5, 7, 9, 11, 13, 15);
    i32x8 v20_2 = v20 | v20_1;
    f32x8 v20_3 = (f32x8)get_u32x8((const u32*)(d2 + v17), v20_2);
    f32x16 v20_4 = __builtin_shufflevector(v20_3, v20_3, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    f32x16 v20_5 = v10_1 ? v20_4 : (f32x16)(0);
    f32x16 v21 = v16 * v20_5;
    put_u32x16((u32*)(d0 + v12), v10_1, (u32x16)(v21));
  }
}
