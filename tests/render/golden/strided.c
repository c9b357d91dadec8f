void k1cd52685965e85bb(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  f32* const d2 = ((f32* const*)args)[2];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32 v4 = gx;
  i32 v7 = v4 * 8;
  i32 v10 = v7 * 3;
  f32x8 v12 = (f32x8)get_u32x8((const u32*)(d1 + v10), (i32x8){-1, 0, 0, -1, 0, 0, -1, 0});
  f32x8 v12_1 = (f32x8)get_u32x8((const u32*)(d1 + v10 + 8), (i32x8){0, -1, 0, 0, -1, 0, 0, -1});
  f32x8 v12_2 = (f32x8)get_u32x8((const u32*)(d1 + v10 + 16), (i32x8){0, 0, -1, 0, 0, -1, 0, 0});
  f32x8 v12_3 = __builtin_shufflevector(v12, v12_1, 0, 3, 6, 9, 12, 15, 6, 7);
  f32x8 v12_4 = __builtin_shufflevector(v12_3, v12_2, 0, 1, 2, 3, 4, 5, 10, 13);
  i32x8 v13 = (i32x8)(v7) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  f32x8 v13_1 = __builtin_convertvector(v13, f32x8);
  f32x8 v14 = v12_4 + v13_1;
  i32 v16 = v7 * 2;
  f32x8 v19 = __builtin_shufflevector(v14, v14, 0, 0, 1, 1, 2, 2, 3, 3);
  put_u32x8((u32*)(d0 + v16 + 1), (i32x8){-1, 0, -1, 0, -1, 0, -1, 0}, (u32x8)(v19));
  f32x8 v19_1 = __builtin_shufflevector(v14, v14, 4, 4, 5, 5, 6, 6, 7, 7);
  put_u32x8((u32*)(d0 + v16 + 9), (i32x8){-1, 0, -1, 0, -1, 0, -1, 0}, (u32x8)(v19_1));
  f32x8 v20 = v12_4;
  f32x4 v20_1 = v20.lo != v20.lo ? v20.lo : (v20.lo > v20.hi ? v20.lo : v20.hi);
  f32x2 v20_2 = v20_1.lo != v20_1.lo ? v20_1.lo : (v20_1.lo > v20_1.hi ? v20_1.lo : v20_1.hi);
  f32 v20_3 = v20_2.x != v20_2.x ? v20_2.x : (v20_2.x > v20_2.y ? v20_2.x : v20_2.y);
  d2[v4] = v20_3;
}
