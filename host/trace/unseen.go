package trace

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// maxUnseen bounds the sentences about functions that are not traced.
const maxUnseen = 512

// beyond are the beginnings of names of functions that reach an adapter past the two libraries.
var beyond = []string{"mlx5dv_", "mlx4dv_", "efadv_", "hnsdv_", "manadv_", "rsocket"}

// unseen names functions that are not traced and that files can call, in a sentence for each file. The paths are those
// of all images of the processes. Drivers call themselves, and librdmacm has rsockets.
func unseen(paths []string) (sentences []string) {
	for _, path := range paths {
		if len(sentences) == maxUnseen {
			break
		}
		name := filepath.Base(path)
		if beginsWith(name, "libmlx", "libefa", "libhns", "libmana", "librdmacm") {
			continue
		}
		file := openImage(path)
		if file == nil {
			continue
		}
		symbols, _ := file.ImportedSymbols() // none where there is no table of them
		file.Close()
		var found []string
		for _, symbol := range symbols {
			if beginsWith(symbol.Name, beyond...) {
				found = append(found, symbol.Name)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			sentences = append(sentences, fmt.Sprintf("not seen: %s, which %s can call", found[0], name))
		default:
			sentences = append(sentences, fmt.Sprintf(
				"not seen: %s and %d others, which %s can call", found[0], len(found)-1, name,
			))
		}
	}
	return sentences
}

func beginsWith(name string, starts ...string) bool {
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(name, start) })
}
