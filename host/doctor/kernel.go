package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// neededModules are those that verbs and rdma_cm open device files of.
var neededModules = []string{"ib_uverbs", "rdma_ucm"}

func modules(_ context.Context, m Machine) (Status, string, string) {
	var loaded, missing []string
	for _, module := range neededModules {
		// A module that is built into the kernel is there too, as long as it has parameters or users;
		// what counts in the end are the device files.
		if exists(m, "sys/module/"+module) {
			loaded = append(loaded, module)
		} else {
			missing = append(missing, module)
		}
	}
	if missing == nil {
		return OK, strings.Join(loaded, " "), ""
	}
	detail := "not loaded: " + strings.Join(missing, " ") + "; without them only provider soft works"
	return Warn, detail, "modprobe -a " + strings.Join(missing, " ")
}

func devices(_ context.Context, m Machine) (Status, string, string) {
	names := deviceNames(m)
	if len(names) > 0 {
		return OK, strings.Join(names, " "), ""
	}
	return Skip, "none; provider soft needs none", "without hardware, a software device: rdma link add rxe0 type rxe netdev eth0"
}

// deviceFiles looks at the files that libibverbs and librdmacm open.
func deviceFiles(_ context.Context, m Machine) (Status, string, string) {
	if len(deviceNames(m)) == 0 {
		return Skip, "there is no device", ""
	}
	files := wantedFiles(m)
	for _, file := range files {
		err := m.Open(file)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return Fail, file + " may not be opened by this user", "a udev rule or a group for " + file + "; in a container: --device " + file
		case errors.Is(err, fs.ErrNotExist):
			return Fail, file + " is missing", "modprobe rdma_ucm ib_uverbs; in a container: --device /dev/infiniband"
		case err != nil:
			return Fail, fmt.Sprintf("%s: %v", file, err), ""
		}
	}
	return OK, strings.Join(files, " "), ""
}

// wantedFiles are those of rdma_cm and of every device.
func wantedFiles(m Machine) []string {
	files := []string{"/dev/infiniband/rdma_cm"}
	for _, name := range deviceNames(m) {
		if file := verbsFile(m, name); file != "" {
			files = append(files, "/dev/infiniband/"+file)
		}
	}
	return files
}

// verbsFile is the device file of a device, "uverbs0".
func verbsFile(m Machine, device string) string {
	entries, err := fs.ReadDir(m.Files, "sys/class/infiniband_verbs")
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		if read(m, "sys/class/infiniband_verbs/"+entry.Name()+"/ibdev") == device {
			return entry.Name()
		}
	}
	return ""
}
