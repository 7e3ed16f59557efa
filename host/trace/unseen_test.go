package trace

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program that calls a function of a driver, and one that calls none.
func TestUnseen(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	build := func(name, text string, flags ...string) string {
		source, program := filepath.Join(folder, name+".c"), filepath.Join(folder, name)
		if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		line := append([]string{"-o", program, source}, flags...)
		if printed, err := exec.Command(compiler, line...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		return program
	}
	library := build("libdriver.so", "void mlx5dv_one(void) {} void mlx5dv_two(void) {}", "-shared", "-fPIC")
	const begin = "void mlx5dv_one(void);void mlx5dv_two(void);int main(void) {"
	link := []string{library, "-Wl,-rpath," + folder}
	for name, c := range map[string]struct {
		program string
		want    []string
	}{
		"none": {build("none", begin+"return 0; }"), nil},
		"one": {
			build("one", begin+"mlx5dv_one(); return 0; }", link...),
			[]string{"not seen: mlx5dv_one, which one can call"},
		},
		"two": {
			build("two", begin+"mlx5dv_one(); mlx5dv_two(); return 0; }", link...),
			[]string{"and 1 others, which two can call"},
		},
	} {
		found := unseen([]string{filepath.Join(folder, "none.so"), folder, c.program})
		if len(found) != len(c.want) || len(found) == 1 && !strings.Contains(found[0], c.want[0]) {
			t.Errorf("%s: %q, want %q", name, found, c.want)
		}
	}
}
