// Package hdrlog writes the histograms of measurements as HdrHistogram logs, a file each in a folder, for the tools
// of that family.
package hdrlog

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output/outfile"
	"rdmarun/host/ownfile"
	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
)

// Writer is the output.  A file is written when its measurement ends, so that files are always
// complete, however the run ends.
type Writer struct {
	folder string
	taken  map[string]int
}

// New makes the folder.
func New(folder string) (*Writer, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("write histograms: %w", err)
	}
	return &Writer{folder: folder, taken: make(map[string]int)}, nil
}

// Wants implements record.Consumer.
func (w *Writer) Wants(kind record.Kind) bool { return kind == record.Measured }

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	if r.Kind != record.Measured {
		return nil
	}
	var kept []*hdrhistogram.Histogram
	room := record.HistogramRoom
	for i := range r.Measure.Latency {
		h, err := histogram(r, &r.Measure.Latency[i], &room)
		if err != nil {
			return err
		}
		if h != nil {
			kept = append(kept, h)
		}
	}
	if kept == nil {
		return nil
	}
	file, err := outfile.Create(filepath.Join(w.folder, w.name(r)))
	if err != nil {
		return err
	}
	defer file.Discard()
	if err := write(file, r, kept); err != nil {
		return err
	}
	return file.Commit()
}

// Close implements report.Output.
func (w *Writer) Close() error { return nil }

// histogram is a distribution with its times; nil when the record has no counts.
func histogram(r *record.Record, d *record.Distribution, room *int) (*hdrhistogram.Histogram, error) {
	if d.HDR == "" || d.Count == 0 {
		return nil, nil
	}
	h, err := record.ReadHistogram(d.HDR, room)
	if err != nil {
		return nil, fmt.Errorf("the histogram of %s, %s: %w", r.Case, r.Measure.Name, err)
	}
	h.SetEndTimeMs(r.Time.UnixMilli())
	h.SetStartTimeMs(r.Time.Add(-r.Measure.Took).UnixMilli())
	if d.Of != "total" {
		h.SetTag(d.Of)
	}
	return h, nil
}

// write writes a log: values are nanoseconds, and the greatest of each line is in milliseconds, as is the custom.
func write(out io.Writer, r *record.Record, kept []*hdrhistogram.Histogram) error {
	log := hdrhistogram.NewHistogramLogWriter(out)
	m := r.Measure
	comment := fmt.Sprintf("%s: %s, %s %s, %s to %s", r.Case, m.Name, m.Type, m.Operation, m.Role, m.Peer)
	if m.Size > 0 {
		comment += fmt.Sprintf(", %s", quantity.Bytes(m.Size))
	}
	if stage := m.Tags[record.StageTag]; stage != "" {
		comment += ", stage " + stage
	}
	begin := r.Time.Add(-m.Took)
	for _, step := range []func() error{
		func() error { return log.OutputComment(strings.Join(strings.Fields(comment), " ")) },
		log.OutputLogFormatVersion,
		func() error { return log.OutputStartTime(begin.UnixMilli()) },
		func() error { return log.OutputBaseTime(begin.Truncate(time.Second).UnixMilli()) },
		log.OutputLegend,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	log.SetBaseTime(begin.Truncate(time.Second).UnixMilli())
	for _, h := range kept {
		if err := log.OutputIntervalHistogram(h); err != nil {
			return err
		}
	}
	return nil
}

// maxName leaves room for a suffix that distinguishes files of one name.
const maxName = 200

// name is that of a measurement's file: the case, the measurement, its size and its end.
func (w *Writer) name(r *record.Record) string {
	m := r.Measure
	words := []string{strings.TrimSuffix(filepath.Base(r.File), filepath.Ext(r.File))}
	if own := strings.TrimPrefix(r.Case, r.File); own != "" {
		words = append(words, strings.TrimPrefix(own, "::"))
	}
	words = append(words, m.Name)
	if m.Size > 0 {
		words = append(words, quantity.Bytes(m.Size))
	}
	words = append(words, m.Role)
	if stage := m.Tags[record.StageTag]; stage != "" {
		words = append(words, stage)
	}
	if r.Attempt > 0 {
		words = append(words, fmt.Sprintf("attempt%d", r.Attempt+1))
	}
	for i := range words {
		words[i] = ownfile.Harmless(words[i])
	}
	name := strings.Join(words, "_")
	name = name[:min(len(name), maxName)]
	w.taken[name]++
	if n := w.taken[name]; n > 1 {
		name = fmt.Sprintf("%s_%d", name, n)
	}
	return name + ".hlog"
}
