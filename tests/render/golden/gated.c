void k7532fd722094adf6(const void* args, unsigned gx, unsigned gy, unsigned gz) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  (void)gx, (void)gy, (void)gz;
  const i32 v3 = gx;
  const i32 v6 = v3 * 8;
  const i32x8 v9 = (i32x8)(v6) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  const i32x8 v9_1 = v9 < (i32x8)(37);
  const i32x8 v13 = (i32x8)((v6 - 3)) + (i32x8){0, 1, 2, 3, 4, 5, 6, 7};
  const i32x8 v13_1 = (i32x8)((-1)) < v13;
  const i32x8 v14 = v9_1 & v13_1;
  const f32x8 v16 = (f32x8){v14[0] ? (d1 + v6)[-3] : 0, v14[1] ? (d1 + v6)[-2] : 0, v14[2] ? (d1 + v6)[-1] : 0, v14[3] ? d1[v6] : 0, v14[4] ? (d1 + v6)[1] : 0, v14[5] ? (d1 + v6)[2] : 0, v14[6] ? (d1 + v6)[3] : 0, v14[7] ? (d1 + v6)[4] : 0};
  const i32 v18 = v3 < 2;
  const f32x8 v20 = v18 ? *(const f32x8u*)(d1 + v6) : (f32x8)(0);
  const f32x8 v21 = v16 + v20;
  if (v9_1[0]) d0[v6] = v21[0];
  if (v9_1[1]) (d0 + v6)[1] = v21[1];
  if (v9_1[2]) (d0 + v6)[2] = v21[2];
  if (v9_1[3]) (d0 + v6)[3] = v21[3];
  if (v9_1[4]) (d0 + v6)[4] = v21[4];
  if (v9_1[5]) (d0 + v6)[5] = v21[5];
  if (v9_1[6]) (d0 + v6)[6] = v21[6];
  if (v9_1[7]) (d0 + v6)[7] = v21[7];
}
