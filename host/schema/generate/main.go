// Command generate writes the JSON Schemas of scenarios and of records to a folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"rdmarun/host/schema"
)

func main() {
	for name, make := range map[string]func() ([]byte, error){
		"scenario.v1.json": schema.Scenario, "result.v1.json": schema.Result,
	} {
		text, err := make()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], name), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "generate:", err)
			os.Exit(1)
		}
	}
}
