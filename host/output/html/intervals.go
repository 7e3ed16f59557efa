package html

import (
	"fmt"
	"strconv"
	"time"

	"rdmarun/host/output/html/plot"
	"rdmarun/host/record"
)

// intervalCharts show what the measurements of one name did over time: bandwidth, or messages if there is no payload.
func intervalCharts(g *measureGroup) []chart {
	bandwidth, messages := newAlbum(), newAlbum()
	for i := range g.now {
		m := &g.now[i]
		points, payload := overTime(m.Intervals)
		if len(points) < 4 { // one interval is the whole: the table has it
			continue
		}
		on := messages
		if payload {
			on = bandwidth
		}
		on.add(plot.Curve{Name: numbered(on, g.curve(m, "")), Points: points, Level: true})
	}
	for _, field := range []string{"avg", "min", "max"} {
		if limits := g.limited("bandwidth", field); len(limits) == 1 { // one for each size would not be legible
			bandwidth.level(limits[0].text, limits[0].value/1e9)
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

// numbered numbers the repetitions of one measurement, which have the same name.
func numbered(a *album, name string) string {
	numbered := name
	for n := 2; ; n++ {
		if _, taken := a.numbers[numbered]; !taken {
			return numbered
		}
		numbered = fmt.Sprintf("%s #%d", name, n)
	}
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
