package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"sync"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/skip"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// Opening is how a provider is opened for one case.
type Opening struct {
	Case Selected
	// Config is that of the roles which it is for, with the link.
	Config testbed.ProviderConfig
	// Virtual is set if it has a virtual clock (which the link udp has not), Seed if its numbers are drawn from one.
	Virtual bool
	Seed    *uint64
	// Fabric is that of the providers of the case which reach each other, here and in other processes; "" for one
	// alone.
	Fabric string
	// SharedFabric trusts every user of this host there.
	SharedFabric bool
	// Capture is where it writes what it sends; nil: nowhere.
	Capture *rdmacore.Capture
	// Notices get what the link udp drops; may be nil.
	Notices *rdmacore.Notices
}

// OpenSoft opens the embedded provider for one case; it is an Open of RunConfig.
func OpenSoft(o Opening) (*rdmacore.Provider, error) {
	options := []rdmacore.Option{rdmacore.WithLink(o.Config.Link), rdmacore.WithLegal(o.Config.Legal)}
	if o.Fabric != "" {
		options = append(options, rdmacore.WithFabric(o.Fabric))
	}
	if o.SharedFabric {
		options = append(options, rdmacore.WithSharedFabric())
	}
	if o.Virtual {
		options = append(options, rdmacore.WithVirtualClock())
	}
	if o.Seed != nil {
		options = append(options, rdmacore.WithSeed(*o.Seed))
	}
	if o.Capture != nil {
		options = append(options, rdmacore.WithCapture(o.Capture, o.Case.Case.ID))
	}
	if o.Notices != nil {
		options = append(options, rdmacore.WithNotices(o.Notices))
	}
	return rdmacore.Open(rdmacore.Soft, options...)
}

// providers opens what the cases of a run are on.
type providers struct {
	config *RunConfig
	// device is verbs, opened when the first role needs it; missing is why it cannot be used.
	once    sync.Once
	device  *rdmacore.Provider
	missing error
	// notices are those of all soft providers on the link udp, made with the first of them.
	noticing   sync.Once
	notices    *rdmacore.Notices
	unnoticing error
	// busy is held by the case that is on devices, where cases run at once: they would disturb each other.
	busy sync.Mutex
}

// name is the provider of roles that choose none.
func (p *providers) name(scenario *compile.Scenario) string {
	if p.config.FilesChoose && scenario.Provider != "" {
		return scenario.Provider
	}
	if p.config.Provider != nil {
		return p.config.Provider.Name()
	}
	return cmp.Or(p.config.ProviderName, rdmacore.Soft)
}

// configs are those of the roles of a case, in their order; of a case without roles that of one.
func (p *providers) configs(each Selected) []testbed.ProviderConfig {
	if p.config.Participant != nil && p.config.Participant.Controller != nil {
		// of a clock, for nothing is on it
		return []testbed.ProviderConfig{{Name: rdmacore.Soft, Link: rdmacore.LinkLocal}}
	}
	scenario := each.Scenario.Compiled
	fill := func(config testbed.ProviderConfig) testbed.ProviderConfig {
		config.Name = cmp.Or(config.Name, p.name(scenario))
		if config.Name != rdmacore.Soft {
			return testbed.ProviderConfig{Name: config.Name}
		}
		byDefault := rdmacore.Links()[0]
		if slices.ContainsFunc(each.Case.Roles, isProgram) || slices.ContainsFunc(each.Case.Elsewhere, isProgram) {
			byDefault = rdmacore.LinkUDP // the only one between processes
		}
		config.Link = cmp.Or(config.Link, scenario.Soft.Link, p.config.Link, byDefault)
		config.Legal = cmp.Or(config.Legal, scenario.Soft.Legal, p.config.Legal)
		if !config.Seeded {
			config.Seed, config.Seeded = scenario.Soft.Seed, scenario.Soft.Seeded
		}
		return config
	}
	if len(each.Case.Roles) == 0 {
		return []testbed.ProviderConfig{fill(testbed.ProviderConfig{})}
	}
	configs := make([]testbed.ProviderConfig, len(each.Case.Roles))
	for i, role := range each.Case.Roles {
		configs[i] = fill(role.Provider)
	}
	return configs
}

func isProgram(role testbed.RoleConfig) bool { return role.Program != nil }

// onSoft reports whether a role of the case is on soft.
func (p *providers) onSoft(each Selected) bool {
	return slices.ContainsFunc(p.configs(each), func(c testbed.ProviderConfig) bool { return c.Name == rdmacore.Soft })
}

// OnSoft reports whether a role of one of the cases is on soft.
func (c *RunConfig) OnSoft(cases []Selected) bool {
	return slices.ContainsFunc(cases, (&providers{config: c}).onSoft)
}

// unusableError is why a case cannot run where it is: it is skipped.
type unusableError struct{ reason string }

func (e *unusableError) Error() string { return e.reason }

// open opens the providers of a case.  seed is that of its first soft, nil for none or the file's; capture is where
// they write what they send, if anywhere.  close ends those that are of this case alone, and returns them with their
// errors.
func (p *providers) open(
	each Selected, seed *uint64, capture *rdmacore.Capture,
) (on testbed.Providers, close func() []closed, err error) {
	configs := p.configs(each)
	opened := make(map[testbed.ProviderConfig]*rdmacore.Provider)
	var own []*rdmacore.Provider
	var locked bool
	close = func() []closed {
		var ends []closed
		for _, provider := range slices.Backward(own) {
			ends = append(ends, closed{provider, provider.Close()})
		}
		if locked {
			p.busy.Unlock()
		}
		return ends
	}
	several := slices.ContainsFunc(configs, func(c testbed.ProviderConfig) bool { return c != configs[0] })
	fabric := p.fabric(several || slices.ContainsFunc(each.Case.Roles, isProgram))
	drawnAs := make(map[testbed.ProviderConfig]uint64) // how many are drawn from one seed
	for i, config := range configs {
		provider := opened[config]
		if p.config.Allow != nil {
			err = p.config.Allow(Need{config.Name, "a role is on it"})
		}
		if err == nil && len(each.Case.Roles) > 0 && isProgram(each.Case.Roles[i]) && config.LocalOnly() {
			err = fmt.Errorf(
				"role %s is a program, which is another process, and its link is %s: only link udp leads there",
				each.Case.Roles[i].Written(), config.Link,
			)
		}
		switch {
		case provider != nil, err != nil:
		case config.Name == rdmacore.Soft &&
			(p.config.Provider == nil || p.config.Provider.Name() != rdmacore.Soft || several):
			opening := Opening{
				Case: each, Config: config, Virtual: p.virtual(each, config) && !several,
				Seed:    p.seed(config, seed, drawnAs),
				Capture: capture, Fabric: fabric, SharedFabric: p.config.SharedFabric,
			}
			if opening.Notices, err = p.noticesFor(config); err != nil {
				break
			}
			if provider, err = p.config.open(opening); err == nil {
				own = append(own, provider)
			}
		case p.config.Provider != nil && p.config.Provider.Name() == config.Name:
			provider = p.config.Provider
		default:
			if !locked {
				p.busy.Lock()
				locked = true
			}
			if provider, err = p.verbs(); err != nil {
				reason := err.Error()
				if len(each.Case.Roles) > 0 {
					reason = fmt.Sprintf("role %s is on %s, and %s", each.Case.Roles[i].Written(), config.Name, reason)
				}
				err = &unusableError{reason}
			}
		}
		if err != nil {
			close()
			return on, nil, err
		}
		opened[config] = provider
		if i == 0 {
			on = testbed.One(provider)
		} else {
			on.With(each.Case.Roles[i].Name, provider)
		}
	}
	return on, close, nil
}

// fabric is the name of what the providers and the programs of a case have in common. It is "" for a case of one
// provider in one process.
func (p *providers) fabric(several bool) string {
	switch {
	case p.config.Fabric != "":
		return p.config.Fabric
	case p.config.Participant != nil && p.config.Participant.meeting != nil:
		return p.config.Participant.meeting.Fabric()
	case several:
		return fmt.Sprintf("case-%016x", rand.Uint64())
	}
	return ""
}

// virtual reports whether a case that is on one soft provider alone has a virtual clock.
func (p *providers) virtual(each Selected, config testbed.ProviderConfig) bool {
	return each.Scenario.Compiled.Soft.Virtual && config.Link != rdmacore.LinkUDP && p.config.Participant == nil
}

// closed is a provider of one case and how it was closed.
type closed struct {
	provider *rdmacore.Provider
	err      error
}

// seedStep sets the seeds of several soft providers of one case apart: they must not draw the same numbers.
const seedStep = 0x9e3779b97f4a7c15

// seed is that of a soft provider; before counts those of the case that have the same.
func (p *providers) seed(
	config testbed.ProviderConfig, ofCase *uint64, before map[testbed.ProviderConfig]uint64,
) *uint64 {
	var drawn uint64
	switch {
	case ofCase != nil && (p.config.Seed != nil || !config.Seeded):
		drawn, config = *ofCase, testbed.ProviderConfig{}
	case config.Seeded:
		drawn = config.Seed
	default:
		return nil
	}
	same := testbed.ProviderConfig{Seed: config.Seed, Seeded: config.Seeded}
	drawn += before[same] * seedStep
	if participant := p.config.Participant; participant != nil && participant.meeting != nil {
		drawn += uint64(crc32.ChecksumIEEE([]byte(participant.meeting.Name()))) * seedStep // of each process others
	}
	before[same]++
	return &drawn
}

// verbs is the provider of RDMA devices, or why there is none.
func (p *providers) verbs() (*rdmacore.Provider, error) {
	p.once.Do(func() {
		if p.device, p.missing = rdmacore.Open(rdmacore.Verbs); p.missing != nil {
			return
		}
		if _, p.missing = p.device.DefaultDevice(); p.missing != nil {
			p.missing = errors.Join(p.missing, p.device.Close())
			p.device = nil
		}
	})
	return p.device, p.missing
}

// noticesFor are the notices of packets that a provider drops; nil for one that is not reachable from outside.
func (p *providers) noticesFor(config testbed.ProviderConfig) (*rdmacore.Notices, error) {
	if config.LocalOnly() || p.config.Warn == nil {
		return nil, nil
	}
	p.noticing.Do(func() { p.notices, p.unnoticing = rdmacore.NewNotices(p.config.Warn) })
	return p.notices, p.unnoticing
}

// Close closes what all cases share.
func (p *providers) Close() error {
	err := p.notices.Close()
	if p.device != nil {
		err = errors.Join(err, p.device.Close())
	}
	return err
}

func (c *RunConfig) open(o Opening) (*rdmacore.Provider, error) {
	if c.Open != nil {
		return c.Open(o)
	}
	return OpenSoft(o)
}

// SkipReasons are why a run would skip each of the cases, "" for those that would run.
func SkipReasons(cases []Selected, config RunConfig) (reasons []string, err error) {
	on := &providers{config: &config}
	defer func() { err = errors.Join(err, on.Close()) }()
	for _, each := range cases {
		reason, err := on.skipReason(each)
		if err != nil {
			return nil, err
		}
		reasons = append(reasons, reason)
	}
	return reasons, nil
}

func (p *providers) skipReason(each Selected) (string, error) {
	if missing := each.Scenario.Compiled.Missing; len(missing) > 0 {
		return MissingReason(missing), nil
	}
	opened, close, err := p.open(each, nil, nil)
	var unusable *unusableError
	if errors.As(err, &unusable) {
		return unusable.reason, nil
	}
	if err != nil {
		return "", err
	}
	reason, err := skip.Reason(opened, p.config.placed(each, p.configs(each)))
	for _, end := range close() {
		err = errors.Join(err, end.err)
	}
	return reason, err
}
