package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rdmarun/host/guest"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// The files of packaging start an agent that waits. Their variables are flags of rdmarun. The tools of systemd and
// Kubernetes know the rest.
const (
	unitFile     = "../../packaging/rdmarun-agent.service"
	manifestFile = "../../packaging/rdmarun-agent.yaml"
)

func readPackaged(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPackagedVariables: each variable of rdmarun in the files is that of a flag, or of the cache of guests.
func TestPackagedVariables(t *testing.T) {
	known := map[string]bool{guest.CacheVariable: true}
	newAgentCommand(&app{}).Flags().VisitAll(func(flag *pflag.Flag) { known[environmentName(flag.Name)] = true })
	for _, path := range []string{unitFile, manifestFile} {
		found := regexp.MustCompile(`RDMARUN_[A-Z_]+`).FindAllString(readPackaged(t, path), -1)
		if len(found) < 2 {
			t.Errorf("%s has only %v", path, found)
		}
		for _, name := range found {
			if !known[name] {
				t.Errorf("%s: no flag is %s", path, name)
			}
		}
	}
	if text := readPackaged(t, unitFile); !strings.Contains(text, "ExecStart=/usr/bin/rdmarun agent\n") {
		t.Error("the unit starts no agent")
	}
	if text := readPackaged(t, manifestFile); !strings.Contains(text, "command: [rdmarun, agent]\n") {
		t.Error("the manifest starts no agent")
	}
}

// TestPackagedUnit: systemd's own checker has nothing to say.
func TestPackagedUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze: it is in one of the packages of \"tools/setup.sh test\"")
	}
	verify := func(text string) string {
		path := filepath.Join(t.TempDir(), filepath.Base(unitFile))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := exec.Command("systemd-analyze", "verify", "--man=no", path).CombinedOutput()
		var ofUnit strings.Builder // in a container it may complain of other things
		for line := range strings.Lines(string(said)) {
			if strings.Contains(line, filepath.Base(unitFile)) {
				ofUnit.WriteString(line)
			}
		}
		if err != nil && ofUnit.Len() == 0 {
			t.Skipf("systemd-analyze does not work here: %v: %s", err, said)
		}
		return ofUnit.String()
	}
	text := strings.Replace(readPackaged(t, unitFile), "/usr/bin/rdmarun", "/bin/sh", 1) // which is there
	if said := verify(text); said != "" {
		t.Error(said)
	}
	for _, wrong := range []string{"Restart=allways", "KilMode=mixed"} {
		if said := verify(strings.Replace(text, "[Install]", wrong+"\n[Install]", 1)); said == "" {
			t.Errorf("%s is not noticed", wrong)
		}
	}
}

// TestPackagedManifest: kubectl, which asks no cluster here, accepts all of the manifest. Its own types have a field
// for each key, and it does not print a key without one.
func TestPackagedManifest(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("there is no kubectl: Debian has it in kubernetes-client")
	}
	lost := func(text string) (missing []string, err error) {
		command := exec.Command("kubectl", "set", "image", "--local", "-f", "-", "agent=another", "-o", "json")
		command.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HOME="+t.TempDir())
		command.Stdin = strings.NewReader(text)
		printed, err := command.Output()
		if err != nil {
			return nil, err
		}
		var taken any
		if err := json.Unmarshal(printed, &taken); err != nil {
			t.Fatal(err)
		}
		wrong := &diag.List{}
		root := syntax.Parse(diag.NewSource(manifestFile, []byte(text)), wrong)
		if wrong.Len() > 0 {
			t.Fatal(wrong.Sorted())
		}
		compareManifest(root, taken, "", func(path string) { missing = append(missing, path) })
		return missing, nil
	}
	text := readPackaged(t, manifestFile)
	if missing, err := lost(text); err != nil || len(missing) != 1 ||
		missing[0] != ".spec.template.spec.containers[0].image" {
		t.Errorf("kubectl does not take %v, %v", missing, err)
	}
	if missing, err := lost(strings.Replace(text, "hostNetwork:", "hostNetworks:", 1)); err != nil ||
		len(missing) != 2 {
		t.Errorf("a wrong key is not noticed: %v, %v", missing, err)
	}
	if _, err := lost(strings.Replace(text, "hostNetwork: true", "hostNetwork: maybe", 1)); err == nil {
		t.Error("a wrong value is not noticed")
	}
}

// compareManifest reports where taken has not what is written.
func compareManifest(written *syntax.Node, taken any, path string, differs func(path string)) {
	switch written.Kind {
	case syntax.Mapping:
		members, _ := taken.(map[string]any)
		for _, pair := range written.Pairs {
			member, there := members[pair.Key.Value]
			if !there {
				differs(path + "." + pair.Key.Value)
				continue
			}
			compareManifest(pair.Value, member, path+"."+pair.Key.Value, differs)
		}
	case syntax.Sequence:
		items, _ := taken.([]any)
		for i, item := range written.Items {
			if i >= len(items) {
				differs(fmt.Sprintf("%s[%d]", path, i))
				continue
			}
			compareManifest(item, items[i], fmt.Sprintf("%s[%d]", path, i), differs)
		}
	default:
		if fmt.Sprint(taken) != written.Value {
			differs(path)
		}
	}
}
