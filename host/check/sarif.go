package check

import (
	"encoding/json"
	"io"
	"path/filepath"

	"rdmarun/host/check/finding"
)

// The parts of SARIF 2.1.0 (OASIS) that viewers of findings read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string    `json:"id"`
		Short   sarifText `json:"shortDescription"`
		Full    sarifText `json:"fullDescription"`
		Help    sarifText `json:"help"`
		Default struct {
			Level string `json:"level"`
		} `json:"defaultConfiguration"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
		Count     uint64          `json:"occurrenceCount"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  sarifText      `json:"message"`
	}
	sarifPhysical struct {
		Artifact struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
	sarifLogical struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
)

// WriteSARIF writes findings in SARIF 2.1.0, with a rule for each kind.
func WriteSARIF(out io.Writer, found []Finding) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "rdmarun check"}}, Results: []sarifResult{}}
	for _, kind := range finding.Kinds() {
		rule := sarifRule{
			ID: kind.Name, Short: sarifText{kind.Meaning}, Full: sarifText{kind.Meaning + " (" + kind.Source + ")"},
			Help: sarifText{kind.Remedy},
		}
		rule.Default.Level = sarifLevel(kind.Level)
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
	}
	for _, each := range found {
		result := sarifResult{
			RuleID: each.Name, Level: sarifLevel(each.Level), Message: sarifText{each.What}, Count: each.Count,
			Locations: []sarifLocation{sarifPlace(each.Call)},
		}
		for _, related := range each.Related {
			result.Related = append(result.Related, sarifPlace(related))
		}
		run.Results = append(run.Results, result)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{
		"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run},
	})
}

// sarifLevel is the level of a finding in SARIF, which calls a hint a note.
func sarifLevel(level finding.Level) string {
	if level == finding.Hint {
		return "note"
	}
	return level.String()
}

func sarifPlace(p Place) sarifLocation {
	l := p.Site.Location()
	at := sarifLocation{Message: sarifText{p.What}}
	path := l.Source
	if path == "" {
		path = l.Binary
	}
	if path != "" {
		at.Physical = &sarifPhysical{}
		at.Physical.Artifact.URI = filepath.ToSlash(path)
		if l.Line > 0 {
			at.Physical.Region = &sarifRegion{l.Line}
		}
	}
	if l.Function != "" {
		at.Logical = []sarifLogical{{l.Function, "function"}}
	}
	return at
}
