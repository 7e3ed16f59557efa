#!/usr/bin/env bash
# Build the engine of scripts, a guest: QuickJS from the source package of Debian 13, unchanged, with guests/javascript.
#
#   tools/javascript.sh OUTPUT
set -euo pipefail
cd "$(dirname "$0")/.."

version=2025.04.26
checksum=ec81da5b3249ed648dbc7df4a1654988910e66a118d9b71cb63534216efcfbbe
archive=quickjs_$version.orig.tar.xz
folder=build/tools/quickjs
source=$folder/quickjs-$version

if [ ! -e "$source/quickjs.c" ]; then
	echo "fetching QuickJS $version"
	mkdir -p "$folder"
	tools/fetch-debian-source quickjs "$archive" "$checksum" "$folder/$archive"
	tar --extract --directory "$folder" --file "$folder/$archive"
fi

flags=(--target=wasm32-wasi -mbulk-memory -D_GNU_SOURCE)
# The build has the settings of a platform without threads and without malloc_usable_size.  It checks the depth of its
# stack all the same.  A header that it includes and does not need is not in wasi-libc.
engine=("${flags[@]}" -O2 -w -DEMSCRIPTEN -D__EMSCRIPTEN__ -DCONFIG_STACK_CHECK "-DCONFIG_VERSION=\"$version\"" -I"$folder/include")
ours=("${flags[@]}" -O2 -std=c11 -Wall -Wextra -Werror -Isdk/c -I"$folder" -isystem "$source")
mkdir -p "$folder/include"
: >"$folder/include/setjmp.h"
sed -e 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$/\\n"/' guests/javascript/prelude.js >"$folder/prelude.inc"

compiler=clang
command -v ccache >/dev/null && compiler="ccache clang"
objects=()
for name in quickjs cutils dtoa libregexp libunicode; do
	# QuickJS stays as it is, so what was compiled of it stays.
	[ "$folder/$name.o" -nt "$0" ] || $compiler "${engine[@]}" -c "$source/$name.c" -o "$folder/$name.o"
	objects+=("$folder/$name.o")
done
for file in guests/javascript/*.c; do
	name=$(basename "$file" .c)
	$compiler "${ours[@]}" -c "$file" -o "$folder/$name.o"
	objects+=("$folder/$name.o")
done
clang --target=wasm32-wasi -Wl,-z,stack-size=1048576 -Wl,--stack-first -Wl,--strip-all -Wl,--export=of_script "${objects[@]}" -lm -o "$1"
