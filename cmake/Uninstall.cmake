# `cmake -P PREFIX/share/deja/uninstall.cmake` removes what was installed, also after the folder was moved; the target
# uninstall does so for the prefix of the last `cmake --install`. Comes after every other install rule: it lists their
# files. What a package manager has installed that removes, too.
set(data_dir ${CMAKE_INSTALL_DATADIR}/deja)
_deja_way_up(DEJA_PREFIX_FROM_DATA ${data_dir})
configure_file(packaging/uninstall.cmake.in ${PROJECT_BINARY_DIR}/packaging/uninstall.cmake @ONLY)
if(NOT SKBUILD)
  install(CODE "
    if(NOT DEFINED ENV{DESTDIR} AND NOT CMAKE_INSTALL_PREFIX MATCHES _CPack_Packages)
      file(COPY \"${PROJECT_BINARY_DIR}/packaging/uninstall.cmake\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${data_dir}\")
      set(list \"\${CMAKE_INSTALL_PREFIX}/${data_dir}/uninstall.list\")
      set(lines)
      foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
        file(RELATIVE_PATH file \"\${CMAKE_INSTALL_PREFIX}\" \"\${file}\")
        string(APPEND lines \"\${file}\\n\")
      endforeach()
      string(APPEND lines ${data_dir}/uninstall.cmake\\n ${data_dir}/uninstall.list\\n)
      file(WRITE \"\${list}\" \"\${lines}\")
      file(WRITE \"${PROJECT_BINARY_DIR}/install_prefix.txt\" \"\${CMAKE_INSTALL_PREFIX}\")
    endif()")
endif()
add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DPREFIX_FILE=${PROJECT_BINARY_DIR}/install_prefix.txt
  -DSCRIPT=${data_dir}/uninstall.cmake -P ${PROJECT_SOURCE_DIR}/cmake/UninstallLast.cmake VERBATIM)
