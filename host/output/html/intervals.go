package html

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"rdmarun/host/record"
)

// intervalCharts are strips of what the measurements of one name did over time: bandwidth, or messages where there is
// no payload.
func intervalCharts(g *measureGroup) ([]chart, error) {
	bandwidth, messages := newAlbum("s", "Gbit/s"), newAlbum("s", "messages/s")
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
		if err := on.add(numbered(on, g.curve(m, "")), points, false, false); err != nil {
			return nil, err
		}
	}
	var charts []chart
	for _, each := range []struct {
		title string
		*album
	}{{"bandwidth over time", bandwidth}, {"messages over time", messages}} {
		drawn, err := each.render(g.name+", "+each.title, stripHeight, func(c *canvas) { c.plot.X.Min, c.plot.Y.Min = 0, 0 })
		if err != nil {
			return nil, err
		}
		charts = append(charts, drawn...)
	}
	return charts, nil
}

// numbered tells repetitions of one measurement apart, which have the same name.
func numbered(a *album, name string) string {
	numbered := name
	for n := 2; ; n++ {
		if _, taken := a.numbers[numbered]; !taken {
			return numbered
		}
		numbered = fmt.Sprintf("%s #%d", name, n)
	}
}

// overTime is the rate in each interval, level from its begin to its end; payload tells that it is in Gbit/s.
func overTime(intervals []record.Interval) (points plotter.XYs, payload bool) {
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
		points = append(points, plotter.XY{X: each.Begin.Seconds(), Y: rate}, plotter.XY{X: each.End.Seconds(), Y: rate})
	}
	return points, payload
}
