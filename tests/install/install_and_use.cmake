# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Run by ctest: cmake -D <variable>=<value>... -P install_and_use.cmake. Programs with MPI has readme.install.
include(${CMAKE_CURRENT_LIST_DIR}/scratch.cmake)

run(${CMAKE_COMMAND} --install ${build_folder} --config "${config}" --prefix ${scratch}/prefix)
file(COPY ${source_folder}/ DESTINATION ${scratch}/source)

set(options -G ${generator} -D CMAKE_BUILD_TYPE=${config} -D CMAKE_CXX_COMPILER=${compiler}
  -D CMAKE_PREFIX_PATH=${scratch}/prefix -D Kokkos_DIR=${kokkos_folder})
configured_quietly(${CMAKE_COMMAND} -S ${scratch}/source -B ${scratch}/build ${options}
  -D WITH_CATALOGUE=${with_catalogue} -D WITH_ENGINE=${with_engine})
run(${CMAKE_COMMAND} --build ${scratch}/build --config "${config}")
run(${scratch}/build/alone)
if(with_catalogue)
  run(${scratch}/build/by_name)
endif()
if(with_engine)
  run(${scratch}/build/in_c)
  file(COPY ${source_folder}/../downstream_c ${source_folder}/../downstream DESTINATION ${scratch}/c)
  run(${CMAKE_COMMAND} -S ${scratch}/c/downstream_c -B ${scratch}/build_c -G ${generator} -D CMAKE_BUILD_TYPE=${config}
    -D CMAKE_PREFIX_PATH=${scratch}/prefix)
  run(${CMAKE_COMMAND} --build ${scratch}/build_c --config "${config}")
  run(${scratch}/build_c/in_c)
endif()

# Once more as by the oldest CMake that is supported: it skips what a newer one writes to the exported files for itself.
run(${CMAKE_COMMAND} -S ${scratch}/source -B ${scratch}/older ${options} -D SEEN_BY=3.16.3)
run(${CMAKE_COMMAND} --build ${scratch}/older --config "${config}" --target alone)

# Without CMake, after the installation has moved.
if(pkg_config)
  file(RENAME ${scratch}/prefix ${scratch}/moved)
  set(ENV{PKG_CONFIG_PATH} ${scratch}/moved/${library_folder}/pkgconfig)
  run(${pkg_config} --validate oktopk)
  run(${pkg_config} --cflags oktopk)
  separate_arguments(compile_flags UNIX_COMMAND "${output}")
  run(${pkg_config} --libs oktopk)
  separate_arguments(link_flags UNIX_COMMAND "${output}")
  # An update of Kokkos leaves such flags valid, and the linker chooses between shared and static.
  foreach(flag IN LISTS link_flags)
    if(NOT flag MATCHES "^-(l|L|Wl,|f)")
      fault("a program is linked with ${flag}")
    endif()
  endforeach()
  # Warnings of the library are errors here, and the headers of Kokkos must give none.
  run(${compiler} -Wall -Wextra -Werror ${compile_flags} ${scratch}/source/alone.cpp ${link_flags}
    -o ${scratch}/by_pkg_config)
  run(${scratch}/by_pkg_config)
  if(with_engine)
    run(${pkg_config} --cflags --libs oktopk_engine)
    separate_arguments(flags UNIX_COMMAND "${output}")
    run(cc -Wall -Wextra -Werror ${scratch}/source/in_c.c ${flags} -Wl,-rpath,${scratch}/moved/${library_folder}
      -o ${scratch}/in_c_by_pkg_config)
    run(${scratch}/in_c_by_pkg_config)
  endif()
  run(${pkg_config} --modversion oktopk)
  if(NOT output STREQUAL "${version}\n")
    fault("oktopk.pc says version ${output}, and CMakeLists.txt ${version}")
  endif()
endif()
file(REMOVE_RECURSE ${scratch})
