void k9ae844c1c556019c(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32x8 v12 = (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  i32x8 v12_1 = v12 < (i32x8)(6);
  for (i32 r0 = 0; r0 < 2; r0++) {
    i32 v14 = r0 * 6;
    i32 v17 = r0 * 24;
    i32x8 v22 = __builtin_shufflevector(v12_1, v12_1, 0, 0, 1, 1, 2, 2, 3, 3);
    f32x8 v22_1 = (f32x8)get_u32x8((const u32*)(d1 + v17), v22);
    i32x8 v22_2 = __builtin_shufflevector(v12_1, v12_1, 4, 4, 5, 5, 6, 6, 7, 7);
    f32x8 v22_3 = (f32x8)get_u32x8((const u32*)(d1 + v17 + 8), v22_2);
    f32x8 v22_4 = __builtin_shufflevector(v22_1, v22_3, 0, 2, 4, 6, 8, 10, 12, 14);
    f32x8 v22_5 = __builtin_shufflevector(v22_1, v22_3, 1, 3, 5, 7, 9, 11, 13, 15);
    f32x8 v22_6 = (f32x8)get_u32x8((const u32*)(d1 + v17 + 12), v22);
    f32x8 v22_7 = (f32x8)get_u32x8((const u32*)(d1 + v17 + 20), v22_2);
    f32x8 v22_8 = __builtin_shufflevector(v22_6, v22_7, 0, 2, 4, 6, 8, 10, 12, 14);
    f32x8 v22_9 = __builtin_shufflevector(v22_6, v22_7, 1, 3, 5, 7, 9, 11, 13, 15);
    f32x8 v23 = v22_4 != v22_4 ? v22_4 : (v22_4 > v22_5 ? v22_4 : v22_5);
    f32x8 v23_1 = v22_8 != v22_8 ? v22_8 : (v22_8 > v22_9 ? v22_8 : v22_9);
    f32x8 v23_2 = v23 != v23 ? v23 : (v23 > v23_1 ? v23 : v23_1);
    put_u32x8((u32*)(d0 + v14), v12_1, (u32x8)(v23_2));
  }
}
