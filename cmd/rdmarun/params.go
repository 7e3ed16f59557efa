package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/bounded"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
)

// paramFlags are the flags that set parameters.
type paramFlags struct {
	given []string
	file  string
}

func (f *paramFlags) register(a *app, command *cobra.Command) {
	set := command.Flags()
	set.StringArrayVarP(&f.given, "param", "p", nil, "set a parameter: NAME=VALUE (repeatable)")
	set.StringVar(&f.file, "params", "", "set parameters from a YAML file of NAME: VALUE; -p comes before it")
	completeFlag(command, "param", a.completeParams)
}

// read gathers -p NAME=VALUE, then the file of --params, then RDMARUN_PARAM_NAME of the environment.
func (f *paramFlags) read(a *app) (scenario.Params, error) {
	const prefix = "RDMARUN_PARAM_"
	params := scenario.Params{Given: make(map[string]string), Environment: make(map[string]string)}
	for name, value := range a.env {
		if param, ok := strings.CutPrefix(name, prefix); ok && value != "" {
			params.Environment[param] = value
		}
	}
	if f.file != "" {
		if err := a.readParamFile(f.file, params.Given); err != nil {
			return params, err
		}
	}
	for _, flag := range f.given {
		name, value, ok := strings.Cut(flag, "=")
		if !ok || name == "" {
			return params, withHint(usageError("-p %s: not of the form NAME=VALUE", flag), "for example: -p count=100")
		}
		params.Given[name] = value
	}
	return params, nil
}

// readParamFile adds what the file has.  A list is no value of a parameter.
func (a *app) readParamFile(path string, params map[string]string) error {
	settings, wrong := scenario.ReadSettings(path)
	if err := a.settingsErrors(wrong); err != nil {
		return err
	}
	for _, setting := range settings {
		if len(setting.Values) != 1 {
			wrong.Report(diag.WrongShape, setting.Span, "the parameter %q has a list, and a parameter is one value", setting.Name)
			continue
		}
		params[setting.Name] = setting.Values[0]
	}
	return a.settingsErrors(wrong)
}

// settingsErrors shows what is wrong with a file of settings.
func (a *app) settingsErrors(wrong *diag.List) error {
	if wrong.Len() == 0 {
		return nil
	}
	if err := wrong.Render(a.stderr, diag.Painter{}); err != nil {
		return err
	}
	return reported(exitUsage)
}

// missingParams refuses files that were named but lack the value of a parameter: who names a file wants
// it to run.
func missingParams(scenarios []scenario.Scenario, cases []scenario.Selected) error {
	selected := make(map[string]bool)
	for _, each := range cases {
		selected[each.Scenario.Path] = true
	}
	for _, s := range scenarios {
		if s.Named && selected[s.Path] && len(s.Program.Missing) > 0 {
			return withHint(usageError("%s needs a value for the parameter %s", s.Path, s.Program.Missing[0]),
				fmt.Sprintf("-p %s=VALUE", s.Program.Missing[0]))
		}
	}
	return nil
}

// paramErrors shows what is wrong with -p and returns the last of it.
func (a *app) paramErrors(list []*compile.ParamError) (err error) {
	for _, each := range list {
		if err != nil {
			printError(a.stderr, err)
		}
		err = usageError("%s", each)
		if each.Hint != "" {
			err = withHint(err, each.Hint)
		}
	}
	return err
}

// readSmallFile reads a file that must not be larger than limit bytes.
func readSmallFile(path string, limit int64) ([]byte, error) {
	text, err := bounded.Read(path, limit+1)
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes, and no more make sense here", path, limit)
	}
	return text, err
}
