package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/bounded"
	"rdmarun/host/guest"
	"rdmarun/host/output/terminal"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/tags"
)

// defaultScenarios is where scenarios are when the command line names none.
const defaultScenarios = "scenarios"

// scenarioPaths are the paths of a command line, or the default if it has none.
func scenarioPaths(args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	if _, err := os.Stat(defaultScenarios); errors.Is(err, fs.ErrNotExist) {
		return nil, withHint(usageError("no scenario is named, and there is no folder ./%s", defaultScenarios),
			"name files or folders, or begin one: rdmarun new my-first")
	}
	return []string{defaultScenarios}, nil
}

// completeScenarios offers YAML files and directories.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", packExtension[1:]}, cobra.ShellCompDirectiveFilterFileExt
}

// checkScenarios checks the scenarios of a command line and shows what is wrong with them.
func (a *app) checkScenarios(
	ctx context.Context, args []string, flags *paramFlags, style terminal.Style,
) (*scenario.Checked, error) {
	params, err := flags.read(a)
	if err != nil {
		return nil, err
	}
	paths, err := scenarioPaths(args)
	if err != nil {
		return nil, err
	}
	locate, err := a.unpackAll(paths)
	if err != nil {
		return nil, err
	}
	checked, err := scenario.CheckIn(ctx, locate, paths, params)
	if err != nil {
		return nil, err
	}
	return checked, a.reportChecked(checked, style)
}

// reportChecked shows what is wrong and returns the error that the command ends with.
func (a *app) reportChecked(checked *scenario.Checked, style terminal.Style) error {
	if n := checked.Errors.Len(); n > 0 {
		if err := checked.Errors.Render(a.stderr, style.Painter()); err != nil {
			return err
		}
		most := map[bool]string{true: "at least "}[checked.Errors.Cut()]
		in := "" // what cannot be read is not a file of scenarios
		if checked.Files > 0 {
			in = " in " + count(checked.Files, "file")
		}
		fmt.Fprintf(a.stderr, "\n%s%s%s\n", most, count(n, "error"), in)
		return reported(exitInvalid)
	}
	if err := a.paramErrors(checked.ParamErrors); err != nil {
		return err
	}
	if n := checked.Errors.Warnings(); n > 0 {
		if err := checked.Errors.Render(a.stderr, style.Painter()); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "\n%s in %s\n", count(n, "warning"), count(checked.Files, "file"))
	}
	if checked.Files == 0 {
		return withHint(withExit(exitNothing, errors.New("there is no scenario here")),
			"a scenario is a .yaml file with the line \"rdmarun: v1\"")
	}
	return nil
}

// selectCases applies a selection.  An empty one is a mistake that looks like a success, so it is an error
// unless it was asked for.
//
// Where --last-failed has no failure to run again, it selects all cases, as pytest does, with a note.
func (a *app) selectCases(
	checked *scenario.Checked, selection *scenario.Selection, allowEmpty bool,
) ([]scenario.Selected, error) {
	cases, err := scenario.Select(checked.Scenarios, *selection)
	if err != nil {
		return nil, err
	}
	if len(cases) == 0 && selection.Only != nil {
		selection.Only = nil
		if cases, err = scenario.Select(checked.Scenarios, *selection); err != nil {
			return nil, err
		}
		if len(cases) > 0 {
			fmt.Fprintf(
				a.stderr,
				"rdmarun: --last-failed: no failure of these cases is recorded in this folder, so all are selected\n",
			)
		}
	}
	if len(cases) > 0 {
		return cases, nil
	}
	total := 0
	for _, s := range checked.Scenarios {
		total += len(s.Compiled.Cases)
	}
	message := fmt.Sprintf(
		"nothing is selected: none of %s in %s matches", count(total, "case"), count(checked.Files, "file"),
	)
	if total == 0 {
		message = fmt.Sprintf("nothing is selected: %s, and no case in it", count(checked.Files, "file"))
	}
	if allowEmpty {
		_, err := fmt.Fprintln(a.stderr, message)
		return nil, err
	}
	hint := "\"rdmarun list\" shows what there is; --allow-empty lets this pass"
	if why, near := misspelledSelection(checked.Scenarios, selection); near != "" {
		message, hint = message+": "+why, near
	}
	return nil, withHint(withExit(exitNothing, errors.New(message)), hint)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// selectionFlags choose among the cases of the scenarios; run and list share them.
type selectionFlags struct {
	tags    string
	words   string
	ids     []string
	failed  bool
	shard   string
	shuffle shuffleFlag
}

func (f *selectionFlags) register(a *app, command *cobra.Command) {
	set := command.Flags()
	set.StringVarP(&f.tags, "tags", "t", "", "only cases with these tags: 'smoke && !slow'")
	set.StringVarP(
		&f.words, "keyword", "k", "",
		"only cases with these words in their id or name, in upper or lower case: 'rping && !tcp', 'rping and not tcp'",
	)
	set.StringArrayVar(&f.ids, "id", nil, "only cases with this id, * and ? allowed (repeatable)")
	set.BoolVar(
		&f.failed, "last-failed", false,
		"only what failed or did not run last time in this folder (all if nothing did)",
	)
	set.StringVar(&f.shard, "shard", "", "only part I of N, to share work among machines: 2/5")
	set.Var(&f.shuffle, "shuffle", "run in an order drawn from this seed, or from a new one that is shown")
	set.Lookup("shuffle").NoOptDefVal = shuffleDrawn
	completeFlag(command, "shuffle", cobra.NoFileCompletions)
	completeFlag(command, "tags", a.completeTags)
	completeFlag(command, "keyword", cobra.NoFileCompletions)
	completeFlag(command, "id", a.completeIDs)
}

// completeFlag registers a completion of a flag that was defined just before.
func completeFlag(command *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := command.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err)
	}
}

// selection reads the flags.
func (f *selectionFlags) selection(a *app) (scenario.Selection, error) {
	selection := scenario.Selection{IDs: f.ids, Shuffle: f.shuffle.value}
	if f.shuffle.drawn {
		fmt.Fprintf(a.stderr, "rdmarun: --shuffle=%s\n", &f.shuffle)
	}
	for _, id := range f.ids {
		if _, err := path.Match(id, ""); err != nil {
			return selection, usageError("--id %s: %w", id, err)
		}
	}
	var err error
	if f.tags != "" {
		if selection.Tags, err = tags.Parse(f.tags); err != nil {
			return selection, withHint(usageError("--tags %w", err), "for example: --tags 'smoke && !slow'")
		}
	}
	if f.words != "" {
		if selection.Words, err = tags.Parse(f.words); err != nil {
			return selection, withHint(usageError("--keyword %w", err), "for example: -k 'rping && !tcp'")
		}
	}
	if f.shard != "" {
		if selection.Shard, err = scenario.ParseShard(f.shard); err != nil {
			return selection, usageError("--shard %w", err)
		}
	}
	if f.failed {
		last, err := readLastRun(a)
		if err != nil {
			return selection, err
		}
		selection.Only = last.failed
	}
	return selection, nil
}

// paths are those of a command line.  If it has none, --last-failed means the files with failed cases.  A number behind
// a --shuffle without one is not a file, unless there is such a file.
func (f *selectionFlags) paths(a *app, args []string) ([]string, error) {
	for _, arg := range args {
		if _, no := strconv.ParseUint(arg, 10, 64); no == nil && f.shuffle.drawn {
			if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
				return nil, withHint(usageError("--shuffle %s: there is no file %s", arg, arg), "--shuffle="+arg)
			}
		}
	}
	if len(args) > 0 || !f.failed {
		return args, nil
	}
	last, err := readLastRun(a)
	if err != nil {
		return nil, err
	}
	return last.files(), nil
}

// paramFlags are the flags that set parameters.
type paramFlags struct {
	given []string
	file  string
	hosts func(role string) int     // of a lab; nil: there is none
	parse func(*guest.Script) error // scripts; nil: only what runs them looks at them
}

func (f *paramFlags) register(a *app, command *cobra.Command) {
	set := command.Flags()
	set.StringArrayVarP(&f.given, "param", "p", nil, "set a parameter: NAME=VALUE (repeatable)")
	set.StringVar(&f.file, "params", "", "set parameters from a YAML file of NAME: VALUE (-p overrides it)")
	completeFlag(command, "param", a.completeParams)
}

// parameterPrefix begins the names of variables that set parameters.
const parameterPrefix = "RDMARUN_PARAM_"

// read gathers -p NAME=VALUE, then the file of --params, then RDMARUN_PARAM_NAME of the environment.
func (f *paramFlags) read(a *app) (scenario.Params, error) {
	params := scenario.Params{
		Given: make(map[string]string), Environment: make(map[string]string), Hosts: f.hosts, ParseScript: f.parse,
	}
	for name, value := range a.env {
		if param, ok := strings.CutPrefix(name, parameterPrefix); ok && value != "" {
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
			wrong.Report(
				diag.WrongShape, setting.Span, "the parameter %q has a list, and a parameter is one value",
				setting.Name,
			)
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

// missingParams rejects files that were named but lack the value of a parameter: a user who names a file wants
// it to run.
func missingParams(scenarios []scenario.Scenario, cases []scenario.Selected) error {
	selected := make(map[string]bool)
	for _, each := range cases {
		selected[each.Scenario.Path] = true
	}
	for _, s := range scenarios {
		if s.Named && selected[s.Path] && len(s.Compiled.Missing) > 0 {
			return withHint(usageError("%s needs a value for the parameter %s", s.Path, s.Compiled.Missing[0]),
				fmt.Sprintf("-p %s=VALUE", s.Compiled.Missing[0]))
		}
	}
	return nil
}

// paramErrors shows what is wrong with -p and returns the last error.
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

// placeFlags choose where roles run.
type placeFlags struct{ devices, gids []string }

func (f *placeFlags) register(a *app, command *cobra.Command, gid string) {
	set := command.Flags()
	set.StringArrayVarP(
		&f.devices, "device", "d", nil, "device of a role: ROLE=DEVICE[:PORT], without ROLE= of all (repeatable)",
	)
	set.StringArrayVarP(
		&f.gids, "gid", gid, nil,
		"address of a role: ROLE=INDEX or ROLE=ADDRESS of the GID table, without ROLE= of all (repeatable)",
	)
	completeFlag(command, "device", a.completeDevices)
	completeFlag(command, "gid", a.completeGIDs)
}

// playedBy rejects devices and addresses of roles that a process of one role does not play.
func (f *placeFlags) playedBy(role string) error {
	for flag, values := range map[string][]string{"device": f.devices, "gid": f.gids} {
		for _, text := range values {
			if of, _ := splitRole(text); of != "" && of != role {
				return withHint(
					usageError("--%s %s: this process plays role %s only", flag, text, role),
					"pass it to the other process, or --loopback, which plays both roles in this one",
				)
			}
		}
	}
	return nil
}

// read gathers both flags by role; "" is all roles.
func (f *placeFlags) read() (map[string]scenario.Place, error) {
	places := make(map[string]scenario.Place)
	for _, text := range f.devices {
		role, device := splitRole(text)
		place := places[role]
		name, port, hasPort := strings.Cut(device, ":")
		number, err := strconv.Atoi(port)
		if name == "" || hasPort && (err != nil || number < 1 || number > 255) {
			return nil, withHint(
				usageError("--device %s: not of the form ROLE=DEVICE or ROLE=DEVICE:PORT", text),
				"for example: -d server=mlx5_0:1",
			)
		}
		place.Device, place.Port = name, number
		places[role] = place
	}
	for _, text := range f.gids {
		role, gid := splitRole(text)
		place := places[role]
		_, notAnIndex := strconv.ParseUint(gid, 10, 16)
		if _, err := netip.ParseAddr(gid); err != nil && notAnIndex != nil {
			return nil, withHint(
				usageError("--gid %s: neither an index of the GID table nor an IP address", text),
				"\"rdmarun devices\" lists both",
			)
		}
		place.GID = gid
		places[role] = place
	}
	return places, nil
}

func splitRole(text string) (role, rest string) {
	if role, rest, ok := strings.Cut(text, "="); ok {
		return role, rest
	}
	return "", text
}

// check refuses roles that no case has: a misspelled one would have no effect, silently.
func (f *placeFlags) check(cases []scenario.Selected) error {
	known := scenario.RoleNames(cases)
	for _, text := range slices.Concat(f.devices, f.gids) {
		if role, _ := splitRole(text); role != "" && !slices.Contains(known, role) {
			return withHint(usageError("%s: no selected case has a role %q", text, role), diag.DidYouMean(role, known))
		}
	}
	for _, text := range f.devices {
		if slices.Contains(known, text) {
			return withHint(
				usageError("--device %s: %q is a role, and no device is named", text, text),
				fmt.Sprintf("-d %s=DEVICE; \"rdmarun devices\" lists devices", text),
			)
		}
	}
	return nil
}
