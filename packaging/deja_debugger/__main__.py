"""python3 -m deja_debugger: prints the prefix, for CMAKE_PREFIX_PATH and PKG_CONFIG_PATH."""

from deja_debugger import PREFIX

print(PREFIX)
