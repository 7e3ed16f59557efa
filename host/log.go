package host

import (
	"context"
	"fmt"
	"log/slog"
)

// log takes a line that the guest logs.
func (g *Guest) log(level slog.Level, text string) {
	if g.config.Logger != nil {
		g.config.Logger.Log(context.Background(), level, text, "guest", g.name)
		return
	}
	if g.config.Stderr != nil {
		fmt.Fprintf(g.config.Stderr, "%s: %s: %s\n", g.name, level, text)
	}
}
