package launch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"rdmarun/host/lab"
)

const (
	// pushTime bounds the sending of the program to a host.
	pushTime = 2 * time.Minute
	// maxCopies is of how many versions a host keeps the program.
	maxCopies = 8
)

// With these words the host's shell reports where its copy of the program is, or whether it can have one.
const (
	wordHere  = "rdmarun-is-here"
	wordWants = "rdmarun-is-wanted"
	wordOther = "rdmarun-is-another"
)

// push makes sure that a host has this program, in its user's cache under the program's digest, and returns the path
// there.
func push(ctx context.Context, h *lab.Host, config Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, pushTime)
	defer cancel()
	program, err := os.ReadFile(config.Program)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(program))
	path := fmt.Sprintf(`"${XDG_CACHE_HOME:-$HOME/.cache}/rdmarun/bin/%s/rdmarun"`, digest)
	// Check first: the program is on most hosts already, and has tens of megabytes. A copy with different bytes (a
	// crash, a disk, an edit) is sent again. So is one that belongs to another user (-O) or is a link.
	ask := fmt.Sprintf(`p=%s; if [ -x "$p" ] && [ -O "$p" ] && [ ! -L "$p" ] && [ "$(sha256sum <"$p")" = "%s  -" ]; then touch "${p%%/*}"; echo %s; elif [ "$(uname -s) $(uname -m)" = %q ]; then echo %s; else echo %s $(uname -s) $(uname -m); fi`,
		path, digest, wordHere, machine(), wordWants, wordOther)
	said, err := onHost(ctx, h, nil, ask)
	switch {
	case err != nil:
		return "", err
	case strings.Contains(said, wordHere):
		return path, nil
	case !strings.Contains(said, wordWants):
		return "", fmt.Errorf("it is no %s, so this program does not run there (%.100q): install rdmarun, and say "+
			"where it is: `rdmarun: PATH`",
			machine(), strings.TrimSpace(said))
	}
	// Written under another name and renamed when whole, so that no shell starts half of it: cat succeeds also when the
	// connection is cut. The file is new (set -C is O_EXCL), and no other user may read or replace it. Then only the
	// copies of a few versions are left, those that were used last: each start touches its own.
	bring := fmt.Sprintf(
		`umask 077; set -C; p=%s; d="${p%%/*}"; mkdir -p "$d" && [ -O "$d" ] && rm -f "$d/new.$$" && cat >"$d/new.$$" && [ "$(sha256sum <"$d/new.$$")" = "%s  -" ] && chmod 700 "$d/new.$$" && mv "$d/new.$$" "$p" || { rm -f "$d/new.$$"; rmdir "$d" 2>/dev/null; exit 1; }; cd "$d/.." && ls -t | tail -n +%d | while read -r old; do case "$old" in *[!0-9a-f]*) ;; *) rm -rf "./$old";; esac; done; :`,
		path, digest, maxCopies+1,
	)
	if _, err := onHost(ctx, h, program, bring); err != nil {
		return "", fmt.Errorf(
			"bring this program there: %w: make room in its user's cache folder, or install it and say where: "+
				"`rdmarun: PATH`",
			err,
		)
	}
	return path, nil
}

// machine is this one, as uname has it.
func machine() string {
	names := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	name := names[runtime.GOARCH]
	if name == "" {
		name = runtime.GOARCH
	}
	return "Linux " + name
}
