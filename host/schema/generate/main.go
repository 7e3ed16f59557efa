// Command generate writes the JSON Schema of scenarios to a file.
package main

import (
	"fmt"
	"os"

	"rdmarun/host/schema"
)

func main() {
	text, err := schema.Scenario()
	if err == nil {
		err = os.WriteFile(os.Args[1], text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
