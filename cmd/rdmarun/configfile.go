package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"rdmarun/host/scenario"
)

// projectConfig is the configuration of a folder, beside the scenarios it holds for.
const projectConfig = "rdmarun.yaml"

// configFile is a file of flags: the name of a flag, without dashes, and its value; a list for a flag that
// may stand several times.
type configFile struct {
	path     string
	settings []scenario.Setting
}

// configFiles reads what there is, the one that comes first first: the folder's, then the user's.
func (a *app) configFiles() ([]configFile, error) {
	paths := []string{projectConfig}
	user := a.env["XDG_CONFIG_HOME"]
	if !filepath.IsAbs(user) && a.env["HOME"] != "" { // the XDG specification has relative paths ignored
		user = filepath.Join(a.env["HOME"], ".config")
	}
	if user != "" {
		paths = append(paths, filepath.Join(user, "rdmarun", "config.yaml"))
	}
	var files []configFile
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		settings, wrong := scenario.ReadSettings(path)
		if err := a.settingsErrors(wrong); err != nil {
			return nil, err
		}
		files = append(files, configFile{path, settings})
	}
	return files, nil
}

// apply sets the flags that nothing before has set.  A key that is a flag of another command is left alone.
func (f configFile) apply(flags *pflag.FlagSet) error {
	for _, setting := range f.settings {
		flag := flags.Lookup(setting.Name)
		if flag == nil || flag.Changed {
			continue
		}
		for _, value := range setting.Values {
			if err := flags.Set(setting.Name, value); err != nil {
				return usageError("%s:%d: %s: %w", f.path, setting.Line, setting.Name, err)
			}
		}
	}
	return nil
}

// flagsFromFiles sets flags from the configuration, after the command line and the environment.
func (a *app) flagsFromFiles(flags *pflag.FlagSet, known map[string]bool) error {
	files, err := a.configFiles()
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := file.check(known); err != nil {
			return err
		}
		if err := file.apply(flags); err != nil {
			return err
		}
	}
	return nil
}
