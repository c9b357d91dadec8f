void kccc856fdb3502362(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {
  f32* const d0 = ((f32* const*)args)[0];
  f32* const d1 = ((f32* const*)args)[1];
  f32* const d2 = ((f32* const*)args)[2];
  (void)gx, (void)gy, (void)gz, (void)scratch;
  i32 v4 = gx;
  i32 v5 = gy;
  f32x8 acc0_0;
  f32x8 acc0_1;
  f32x8 acc0_2;
  f32x8 acc0_3;
  acc0_0 = (f32x8)(0.0f);
  acc0_1 = (f32x8)(0.0f);
  acc0_2 = (f32x8)(0.0f);
  acc0_3 = (f32x8)(0.0f);
  i32 v13 = v5 * 4;
  i32 v15 = v4 * 8;
  for (i32 r2 = 0; r2 < 12; r2++) {
    i32 v19 = v13 * 12;
    i32 v20 = v19 + r2;
    f32 v22 = d1[v20];
    f32 v22_1 = (d1 + v20)[12];
    f32 v22_2 = (d1 + v20)[24];
    f32 v22_3 = (d1 + v20)[36];
    i32 v24 = r2 * 16;
    i32 v25 = v24 + v15;
    f32x8 v27 = *(const f32x8u*)(d2 + v25);
    f32x8 v30 = (f32x8)(v22) * v27 + acc0_0;
    f32x8 v30_1 = (f32x8)(v22_1) * v27 + acc0_1;
    f32x8 v30_2 = (f32x8)(v22_2) * v27 + acc0_2;
    f32x8 v30_3 = (f32x8)(v22_3) * v27 + acc0_3;
    acc0_0 = v30;
    acc0_1 = v30_1;
    acc0_2 = v30_2;
    acc0_3 = v30_3;
  }
  i32 v35 = v13 * 16;
  i32 v36 = v35 + v15;
  *(f32x8u*)(d0 + v36) = acc0_0;
  *(f32x8u*)(d0 + v36 + 16) = acc0_1;
  *(f32x8u*)(d0 + v36 + 32) = acc0_2;
  *(f32x8u*)(d0 + v36 + 48) = acc0_3;
}
