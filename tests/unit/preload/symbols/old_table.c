// A library whose only table of names is the old one (tests/unit/preload/CMakeLists.txt).
int deja_test_old_table(void) {
  return 1;
}
