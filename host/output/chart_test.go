package output_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestTextsOfChartsHaveRoom looks at where a browser puts them: within the picture, and none over another.
func TestTextsOfChartsHaveRoom(t *testing.T) {
	for name, page := range map[string]string{"few": "", "sweep": reportOf(t, "html", sweep(t))} {
		t.Run(name, func(t *testing.T) {
			var found struct {
				Pictures, Texts  int
				Outside, Covered []string
			}
			measure(t, `(() => {
				for (const each of document.querySelectorAll('details')) each.open = true;
				const found = {Pictures: 0, Texts: 0, Outside: [], Covered: []};
				for (const svg of document.querySelectorAll('figure svg')) {
					const whole = svg.getBoundingClientRect();
					const boxes = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
					found.Pictures++;
					boxes.forEach(([text, box], i) => {
						found.Texts++;
						if (box.left < whole.left || box.right > whole.right || box.top < whole.top || box.bottom > whole.bottom) found.Outside.push(text);
						for (const [other, its] of boxes.slice(i + 1)) {
							if (box.left < its.right && its.left < box.right && box.top + 3 < its.bottom && its.top + 3 < box.bottom) found.Covered.push(text + ' ' + other);
						}
					});
				}
				return found;
			})()`, &found, func(text string) string {
				if page != "" {
					return page
				}
				return text
			})
			if found.Pictures < 6 || found.Texts < 6*found.Pictures || len(found.Outside)+len(found.Covered) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestChartShowsValues: by the pointer and by the keyboard, with the table's numbers.
func TestChartShowsValues(t *testing.T) {
	const act = `(figure => {
		const svg = figure.querySelector('svg'), picture = figure.querySelector('.picture'), said = [];
		const say = () => said.push(figure.querySelector('.tip') ? figure.querySelector('.tip b').textContent + ': ' +
			[...figure.querySelectorAll('.tip li')].map(each => each.textContent).join('; ') : '');
		const box = svg.getBoundingClientRect(), circle = svg.querySelectorAll('circle')[2].getBoundingClientRect();
		svg.dispatchEvent(new PointerEvent('pointermove', {clientX: circle.left + circle.width / 2 - 5, clientY: box.top + 50})); say();
		svg.dispatchEvent(new PointerEvent('pointerleave')); say();
		for (const key of ['ArrowRight', 'ArrowRight', 'ArrowLeft', 'Escape']) {
			picture.dispatchEvent(new KeyboardEvent('keydown', {key})); say();
		}
		return said.map(each => each.replaceAll('\u202f', ' '));
	})([...document.querySelectorAll('figure')][1])`
	var said []string
	measure(t, act, &said, unchanged)
	want := []string{
		"64KiB: 10.9 us latency write client; 10.0 us latency p50 < 10us", "",
		"64B: 6.78 us latency write client; 6.78 us latency write client (baseline); 10.0 us latency p50 < 10us",
		"4KiB: 7.04 us latency write client; 7.04 us latency write client (baseline); 10.0 us latency p50 < 10us",
		"64B: 6.78 us latency write client; 6.78 us latency write client (baseline); 10.0 us latency p50 < 10us", "",
	}
	if fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("it says\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

// TestChartsAreForEverybody: what they show is in words, and their colours are the style's.
func TestChartsAreForEverybody(t *testing.T) {
	text, err := os.ReadFile(write(t, "html", true))
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(text), "\u202f", " ")
	for _, want := range []string{
		`role="img" aria-label="Latency p50 by message size: latency write client from 6.78 us to 10.9 us; latency write client of the baseline from 6.78 us to 7.04 us; latency p50 &lt; 10us from 10.0 us to 10.0 us"`,
		`role="img" aria-label="write bandwidth, bandwidth over time: 64B client from `,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s", want)
		}
	}
	for _, part := range strings.Split(page, "<svg ")[1:] {
		if svg := part[:strings.Index(part, "</svg>")]; strings.Contains(svg, "#") || strings.Contains(svg, "style=") {
			t.Errorf("a chart has colours of its own: %.200s", svg)
		}
	}
}
