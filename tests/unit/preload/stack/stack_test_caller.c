// A library that calls back, without frame pointers.
void deja_test_call(void (*f)(void)) {
  volatile char room[200];
  room[0] = 1;
  f();
  room[1] = room[0];
}
