TUFF_KERNEL(1, 1, 1) void k842b32edbd06662c(TUFF_GLOBAL f32* d0, TUFF_GLOBAL f32* d1) {
  const i32 v3 = TUFF_GROUP(x);
  const i32 v6 = v3 * 8;
  const i32 v9 = v6 < 37;
  const i32 v9_1 = (v6 + 1) < 37;
  const i32 v9_2 = (v6 + 2) < 37;
  const i32 v9_3 = (v6 + 3) < 37;
  const i32 v9_4 = (v6 + 4) < 37;
  const i32 v9_5 = (v6 + 5) < 37;
  const i32 v9_6 = (v6 + 6) < 37;
  const i32 v9_7 = (v6 + 7) < 37;
  const i32 v13 = (-1) < (v6 - 3);
  const i32 v13_1 = (-1) < (v6 - 2);
  const i32 v13_2 = (-1) < (v6 - 1);
  const i32 v13_3 = (-1) < v6;
  const i32 v13_4 = (-1) < (v6 + 1);
  const i32 v13_5 = (-1) < (v6 + 2);
  const i32 v13_6 = (-1) < (v6 + 3);
  const i32 v13_7 = (-1) < (v6 + 4);
  const i32 v14 = v9 & v13;
  const i32 v14_1 = v9_1 & v13_1;
  const i32 v14_2 = v9_2 & v13_2;
  const i32 v14_3 = v9_3 & v13_3;
  const i32 v14_4 = v9_4 & v13_4;
  const i32 v14_5 = v9_5 & v13_5;
  const i32 v14_6 = v9_6 & v13_6;
  const i32 v14_7 = v9_7 & v13_7;
  f32 v16_0 = 0;
  if (v14) {
    v16_0 = (d1 + v6)[-3];
  }
  f32 v16_1 = 0;
  if (v14_1) {
    v16_1 = (d1 + v6)[-2];
  }
  f32 v16_2 = 0;
  if (v14_2) {
    v16_2 = (d1 + v6)[-1];
  }
  f32 v16_3 = 0;
  if (v14_3) {
    v16_3 = d1[v6];
  }
  f32 v16_4 = 0;
  if (v14_4) {
    v16_4 = (d1 + v6)[1];
  }
  f32 v16_5 = 0;
  if (v14_5) {
    v16_5 = (d1 + v6)[2];
  }
  f32 v16_6 = 0;
  if (v14_6) {
    v16_6 = (d1 + v6)[3];
  }
  f32 v16_7 = 0;
  if (v14_7) {
    v16_7 = (d1 + v6)[4];
  }
  const i32 v18 = v3 < 2;
  f32 v20_0 = 0;
  f32 v20_1 = 0;
  f32 v20_2 = 0;
  f32 v20_3 = 0;
  f32 v20_4 = 0;
  f32 v20_5 = 0;
  f32 v20_6 = 0;
  f32 v20_7 = 0;
  if (v18) {
    v20_0 = d1[v6];
    v20_1 = (d1 + v6)[1];
    v20_2 = (d1 + v6)[2];
    v20_3 = (d1 + v6)[3];
    v20_4 = (d1 + v6)[4];
    v20_5 = (d1 + v6)[5];
    v20_6 = (d1 + v6)[6];
    v20_7 = (d1 + v6)[7];
  }
  const f32 v21 = v16_0 + v20_0;
  const f32 v21_1 = v16_1 + v20_1;
  const f32 v21_2 = v16_2 + v20_2;
  const f32 v21_3 = v16_3 + v20_3;
  const f32 v21_4 = v16_4 + v20_4;
  const f32 v21_5 = v16_5 + v20_5;
  const f32 v21_6 = v16_6 + v20_6;
  const f32 v21_7 = v16_7 + v20_7;
  if (v9) d0[v6] = v21;
  if (v9_1) (d0 + v6)[1] = v21_1;
  if (v9_2) (d0 + v6)[2] = v21_2;
  if (v9_3) (d0 + v6)[3] = v21_3;
  if (v9_4) (d0 + v6)[4] = v21_4;
  if (v9_5) (d0 + v6)[5] = v21_5;
  if (v9_6) (d0 + v6)[6] = v21_6;
  if (v9_7) (d0 + v6)[7] = v21_7;
}
