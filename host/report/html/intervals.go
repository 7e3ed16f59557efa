package html

import (
	"gonum.org/v1/plot/plotter"

	"rdmarun/host/scenario/record"
)

// intervalCharts are strips of what the measurements of one name did over time: bandwidth, or messages where there is
// no payload.
func intervalCharts(g *measureGroup) ([]chart, error) {
	bandwidth, messages := newCanvas("s", "Gbit/s"), newCanvas("s", "messages/s")
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
		if err := on.add(curveName(m, &record.Distribution{}), points, false, false); err != nil {
			return nil, err
		}
	}
	var charts []chart
	for _, each := range []struct {
		title string
		*canvas
	}{{"bandwidth over time", bandwidth}, {"messages over time", messages}} {
		if each.empty() {
			continue
		}
		each.plot.X.Min, each.plot.Y.Min = 0, 0
		drawn, err := each.render(g.name+", "+each.title, stripHeight)
		if err != nil {
			return nil, err
		}
		charts = append(charts, drawn)
	}
	return charts, nil
}

// overTime is the rate in each interval, level from its begin to its end; payload tells that it is in Gbit/s.
func overTime(intervals []record.Interval) (points plotter.XYs, payload bool) {
	for _, each := range intervals {
		payload = payload || each.Bytes > 0
	}
	for _, each := range intervals {
		took := (each.End - each.Begin).Seconds()
		if took <= 0 {
			continue
		}
		rate := float64(each.Messages) / took
		if payload {
			rate = float64(each.Bytes) * 8 / took / 1e9
		}
		points = append(points, plotter.XY{X: each.Begin.Seconds(), Y: rate}, plotter.XY{X: each.End.Seconds(), Y: rate})
	}
	return points, payload
}
