package program_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdmarun/host/program"
)

func TestFind(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string, mode fs.FileMode) {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	static, err := os.ReadFile(compile(t, "int main(void) { return 0; }", "-static"))
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte{}, shell...)
	const machine = 18                                 // e_machine of elf(5)
	binary.LittleEndian.PutUint16(other[machine:], 22) // EM_S390
	write("other", string(other), 0o700)
	write("setuid", string(shell), 0o700|fs.ModeSetuid)
	write("static", string(static), 0o700)
	write("plain", "text", 0o600)
	write("script", "#!/bin/sh\n", 0o700)
	write("static-script", "#!"+filepath.Join(folder, "static")+" -x\n", 0o700)
	for name, test := range map[string]struct {
		name     string
		want     string // the end of its path
		notFound string
		not      string // why it cannot be run
		notSoft  string // why not on soft
	}{
		"in PATH":           {name: "sh", want: "/sh"},
		"in the folder":     {name: "./script", want: "/script"},
		"not there":         {name: "no-such-program", notFound: "no-such-program: no such program"},
		"not in the folder": {name: "./no-such", notFound: "./no-such: no such program"},
		"not executable":    {name: "./plain", not: "permission denied"},
		"set-user-ID":       {name: "./setuid", want: "/setuid", notSoft: "is set-user-ID or set-group-ID"},
		"static":            {name: "./static", want: "/static", notSoft: "is statically linked"},
		"script":            {name: "./static-script", want: "/static-script", notSoft: "is a script: "},
		"architecture":      {name: "./other", want: "/other", notSoft: "is for another architecture (EM_S390"},
		"absolute":          {name: filepath.Join(folder, "script"), want: "/script"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, preload := range []bool{false, true} {
				why := test.not
				if preload && why == "" {
					why = test.notSoft
				}
				path, err := program.Find(test.name, folder, preload)
				notFound, notRunnable := (*program.NotFoundError)(nil), (*program.NotRunnableError)(nil)
				switch {
				case test.notFound != "":
					if !errors.As(err, &notFound) || err.Error() != test.notFound {
						t.Errorf("preload %v: %v, want %q", preload, err, test.notFound)
					}
				case why != "":
					if !errors.As(err, &notRunnable) || !strings.Contains(err.Error(), why) {
						t.Errorf("preload %v: %v, want %q", preload, err, why)
					}
				case err != nil || !strings.HasSuffix(path, test.want) || !filepath.IsAbs(path):
					t.Errorf("preload %v: %q, %v; want %q", preload, path, err, test.want)
				}
			}
		})
	}
}

// A program in the current folder is not searched for in PATH.
func TestFindInTheCurrentFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "sh"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	for _, relative := range []string{".", ""} {
		path, err := program.Find("./sh", relative, false)
		if want := filepath.Join(folder, "sh"); path != want || err != nil {
			t.Errorf("folder %q: %q, %v; want %q", relative, path, err, want)
		}
	}
}

func TestFindWithCapabilities(t *testing.T) {
	text, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "capable")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	// struct vfs_cap_data of linux/capability.h: revision 2, CAP_NET_RAW permitted.
	attribute := make([]byte, 20)
	binary.LittleEndian.PutUint32(attribute, 0x02000000)
	binary.LittleEndian.PutUint32(attribute[4:], 1<<unix.CAP_NET_RAW)
	if err := unix.Setxattr(path, "security.capability", attribute, 0); err != nil {
		t.Skip("setting file capabilities:", err)
	}
	if _, err := program.Find(path, "", false); err != nil {
		t.Errorf("without preload: %v", err)
	}
	if _, err := program.Find(path, "", true); err == nil || !strings.Contains(err.Error(), "has file capabilities") {
		t.Errorf("with preload: %v", err)
	}
}

func TestOtherArchitectureWithoutSoft(t *testing.T) {
	text, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	const machine = 18
	binary.LittleEndian.PutUint16(text[machine:], 22) // EM_S390
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	config := shell("")
	config.Args = []string{path}
	p, err := program.Start(t.Context(), config)
	if err == nil {
		p.Stop(t.Context())
		t.Skip("this machine runs programs of other architectures")
	}
	if notRunnable := (*program.NotRunnableError)(nil); !errors.As(err, &notRunnable) ||
		!strings.Contains(err.Error(), "another architecture") {
		t.Error(err)
	}
}

func TestEnvironment(t *testing.T) {
	seed := uint64(7)
	outer := map[string]string{
		"PATH": "/bin", "LD_PRELOAD": "libasan.so", "RDMARUN_EXEC_SEED": "1", "RDMARUN_EXEC_SHARED": "1",
		"RDMARUN_EXEC_QUIET": "1", "RDMARUN_EXEC_CAPTURE": "1:/x", "RDMARUN_EXEC_FABRIC": "outer",
	}
	for name, test := range map[string]struct {
		soft program.Soft
		want map[string]string
	}{
		"little": {
			program.Soft{Library: "/soft.so", Link: "udp", Fabric: "mine"},
			map[string]string{
				"PATH": "/bin", "LD_PRELOAD": "libasan.so:/soft.so", "RDMARUN_EXEC_LINK": "udp",
				"RDMARUN_EXEC_FABRIC": "mine",
			},
		},
		"all": {
			program.Soft{
				Library: "/soft.so", Link: "udp", Fabric: "mine", Seed: &seed, Shared: true, Quiet: true,
				CapturePath: "/capture.pcapng", SnapLength: 64, Process: 12,
			},
			map[string]string{
				"PATH": "/bin", "LD_PRELOAD": "libasan.so:/soft.so", "RDMARUN_EXEC_LINK": "udp",
				"RDMARUN_EXEC_FABRIC": "mine", "RDMARUN_EXEC_SEED": "7", "RDMARUN_EXEC_SHARED": "1",
				"RDMARUN_EXEC_QUIET": "1", "RDMARUN_EXEC_CAPTURE": "12:/capture.pcapng",
				"RDMARUN_EXEC_CAPTURE_SNAPLEN": "64",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.soft.Environment(outer)
			for variable, want := range test.want {
				if got[variable] != want {
					t.Errorf("%s=%s, want %s", variable, got[variable], want)
				}
			}
			if len(got) != len(test.want) {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
	if outer["RDMARUN_EXEC_FABRIC"] != "outer" {
		t.Error("the given environment was changed")
	}
}
