package html

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"rdmarun/host/output/html/plot"
	"rdmarun/host/record"
)

// intervalCharts show what the measurements of one name did over time: bandwidth, or messages if there is no payload.
func intervalCharts(g *measureGroup) []chart {
	bandwidth, messages := newAlbum(), newAlbum()
	add := func(measures []record.Measure, before bool) {
		repeated := make(map[string]int)
		for i := range measures {
			m := &measures[i]
			points, payload := overTime(m.Intervals)
			if len(points) < 4 { // one interval is the whole: the table has it
				continue
			}
			on := messages
			if payload {
				on = bandwidth
			}
			name := g.curve(m, "")
			repeated[name]++
			on.add(plot.Curve{Name: numbered(name, repeated[name]), Points: points, Level: true, Dashed: before})
		}
	}
	add(g.now, false)
	add(g.before, true)
	for _, field := range []string{"avg", "min", "max"} {
		for _, limit := range single(g.limited("bandwidth", field)) {
			bandwidth.level(limit.text, limit.value/1e9)
		}
	}
	over := func(unit string) func(bounds) (x, y plot.Axis) {
		return func(b bounds) (x, y plot.Axis) {
			x, y = plot.Even(0, b.right, ticksAcross), plot.FromZero(b.high, 3)
			if b.low > 0 && b.high/b.low > decades {
				y = plot.Powers(b.low, b.high, 4)
			}
			x.Print = func(seconds float64) string { return narrow(plot.Number(seconds) + " s") }
			y.Label, y.Exact = unit, func(value float64) string { return plot.Number(value) + " " + unit }
			return x, y
		}
	}
	charts := bandwidth.render(g.name+", bandwidth over time", stripHeight, over("Gbit/s"))
	return append(charts, messages.render(g.name+", messages over time", stripHeight, over("messages/s"))...)
}

// single are the limits of thresholds with one value. The values of a threshold that has one for each size, as those of
// a baseline, would not be legible.
func single(limits []groupLimit) []groupLimit {
	values := make(map[string]int)
	for _, each := range limits {
		values[each.text]++
	}
	return slices.DeleteFunc(limits, func(l groupLimit) bool { return values[l.text] > 1 })
}

// numbered is the name of the n-th repetition of a measurement, from 1.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s #%d", name, n)
}

// overTime is the rate in each interval, constant from its beginning to its end; payload means that it is in Gbit/s.
func overTime(intervals []record.Interval) (points []plot.Point, payload bool) {
	for _, each := range intervals {
		payload = payload || each.Bytes > 0
	}
	for i, each := range intervals {
		took := (each.End - each.Begin).Seconds()
		if took <= 0 || i > 0 && each.End-each.Begin <= (intervals[0].End-intervals[0].Begin)/2 {
			continue // what was left over at the end has any rate
		}
		rate := float64(each.Messages) / took
		if payload {
			rate = float64(each.Bytes) * 8 / took / 1e9
		}
		at := seconds(each.Begin) + " to " + seconds(each.End)
		points = append(points, plot.Point{X: each.Begin.Seconds(), Y: rate, At: at}, plot.Point{
			X: each.End.Seconds(), Y: rate, At: at,
		})
	}
	return points, payload
}

// seconds prints a moment of a measurement, to a tenth of a millisecond.
func seconds(at time.Duration) string {
	return narrow(strconv.FormatFloat(at.Round(100*time.Microsecond).Seconds(), 'f', -1, 64) + " s")
}
