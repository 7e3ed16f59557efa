#!/usr/bin/env bash
# symbols.sh LIBRARY FOLDER: LIBRARY defines every symbol that librdmacm and libibverbs export, or theirs.txt has the
# reason.  Another symbol would reach the real library, with an object of soft that it takes for its own.
#
# It checks the installed libraries and the newest of Debian (its unstable suite, from the archive that this machine
# uses).  These are fetched with apt and its signatures, at most once a day, and unpacked below FOLDER; nothing is
# installed.  A symbol of a newer release than that of theirs.txt is reported, and is not a failure: nothing here has
# changed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
ours=$1
folder=$2
status=0

fail() {
	echo "FAIL symbols: $*"
	status=1
}

exported() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }

# [patterns] has the first word of each line of theirs.txt.
mapfile -t patterns < <(awk '!/^#/ && NF > 1 { print $1 }' "$here/theirs.txt")
[ ${#patterns[@]} -gt 0 ] || fail "theirs.txt has no patterns"
declare -A used=()
known=$(awk '$1 == "#" && $2 == "Release:" { print $3 }' "$here/theirs.txt")
[[ $known =~ ^[0-9]+$ ]] || fail "theirs.txt does not say which release it was written for"

theirs() {
	local pattern
	for pattern in "${patterns[@]}"; do
		# shellcheck disable=SC2053 # it is a pattern
		[[ $1 == $pattern ]] && used[$pattern]=1 && return
	done
	return 1
}

# compare LIBRARY: prints how many of its symbols each library defines.
compare() {
	local name mine=0 real=0 names release new=()
	release=$(readlink -f "$1" | sed -n 's/.*\.so\.1\.[0-9]*\.\([0-9]*\)\..*/\1/p') # libibverbs.so.1.14.44.0
	names=$(exported "$1")
	[ -n "$names" ] || fail "$1 exports nothing"
	for name in $names; do
		if grep -qx -- "$name" <<<"$defined"; then
			mine=$((mine + 1))
			theirs "$name" && fail "$name is defined here, and theirs.txt says it is not"
		elif theirs "$name"; then
			real=$((real + 1))
		elif [ "${release:-0}" -gt "$known" ]; then
			new+=("$name")
		else
			fail "$name of $1 is neither defined by $ours nor in theirs.txt"
		fi
	done
	[ ${#new[@]} = 0 ] || echo "NEW  symbols of release $release, to be defined or listed: ${new[*]}"
	echo "ok   symbols of $(basename "$(readlink -f "$1")"): $mine of ours, $real left to it"
}

# fetch: the newest libraries below $folder; nothing where this is no Debian or the archive cannot be reached.
fetch() {
	local site keys=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -z "$(find "$folder/complete" -mmin -1440 2>/dev/null)" ] || return
	[ -e $keys ] || return
	# shellcheck disable=SC2016 # apt-get's own names
	site=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' 2>/dev/null |
		awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')
	[ -n "$site" ] || return
	rm -rf "$folder"
	mkdir -p "$folder"/{lists,cache,unpacked} || return
	echo "deb [signed-by=$keys] $site unstable main" >"$folder/sources.list"
	cat >"$folder/apt.conf" <<-CONF
		Dir::Etc::sourcelist "$folder/sources.list";
		Dir::Etc::sourceparts "-";
		Dir::State::lists "$folder/lists";
		Dir::State::status "/dev/null";
		Dir::Cache "$folder/cache";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
		Acquire::Retries "2";
		APT::Sandbox::User "root";
	CONF
	(
		export APT_CONFIG=$folder/apt.conf
		cd "$folder" && timeout 120 apt-get -qq update && timeout 60 apt-get -qq download libibverbs1 librdmacm1t64
	) >"$folder/log" 2>&1 || return
	local package
	for package in "$folder"/*.deb; do
		dpkg -x "$package" "$folder/unpacked" || return
	done
	rm -r "$folder/lists" "$folder/cache"
	touch "$folder/complete"
}

defined=$(exported "$ours")
for name in libibverbs librdmacm; do
	library=$(ldconfig -p | awk -v name="$name.so.1" '$1 == name { print $NF; exit }')
	[ -n "$library" ] || fail "there is no $name.so.1 here"
	[ -z "$library" ] || compare "$library"
done

mkdir -p "$folder" && folder=$(cd "$folder" && pwd)
fetch
newest=$(find "$folder/unpacked" -name libibverbs.so.1 -o -name librdmacm.so.1 2>/dev/null)
if [ "$(wc -w <<<"$newest")" = 2 ]; then
	for library in $newest; do compare "$library"; done
	for pattern in "${patterns[@]}"; do
		[ -n "${used[$pattern]-}" ] || fail "$pattern of theirs.txt is nobody's symbol"
	done
else
	echo "SKIP symbols of the newest libraries: Debian's archive has not given them ($(tail -n 1 "$folder/log" 2>/dev/null))"
fi
exit $status
