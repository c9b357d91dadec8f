void k5770f45dd5ddb07d(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  for (i32 r0 = 0; r0 < 2; r0++) {
    i32 v11 = r0 * 16;
    i32 v15 = r0 * 4;
    f32x4 v19 = *(const f32x4u*)(d1 + v15);
    f32x4 v19_1 = *(const f32x4u*)(d1 + v15 + 8);
    f32x4 v19_2 = *(const f32x4u*)(d1 + v15 + 16);
    f32x4 v19_3 = *(const f32x4u*)(d1 + v15 + 24);
    f32x4 v19_4 = __builtin_shufflevector(v19, v19_2, 0, 4, 1, 5);
    f32x4 v19_5 = __builtin_shufflevector(v19, v19_2, 2, 6, 3, 7);
    f32x4 v19_6 = __builtin_shufflevector(v19_1, v19_3, 0, 4, 1, 5);
    f32x4 v19_7 = __builtin_shufflevector(v19_1, v19_3, 2, 6, 3, 7);
    f32x4 v19_8 = __builtin_shufflevector(v19_4, v19_6, 0, 4, 1, 5);
    f32x4 v19_9 = __builtin_shufflevector(v19_4, v19_6, 2, 6, 3, 7);
    f32x4 v19_10 = __builtin_shufflevector(v19_5, v19_7, 0, 4, 1, 5);
    f32x4 v19_11 = __builtin_shufflevector(v19_5, v19_7, 2, 6, 3, 7);
    *(f32x4u*)(d0 + v11) = v19_8;
    *(f32x4u*)(d0 + v11 + 4) = v19_9;
    *(f32x4u*)(d0 + v11 + 8) = v19_10;
    *(f32x4u*)(d0 + v11 + 12) = v19_11;
  }
}
