// Package html writes a report as one page that needs nothing else: no script, style or picture from
// elsewhere, readable without scripts, light or dark as the reader's system is.
package html
