package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A spooledEnd is the end of a run that could not be reported yet, as it waits in a file. Whoever
// reports it removes the file.
type spooledEnd struct {
	Registry string // its address: attaches with other registries share the directory
	Run      teams.RunRef
	Ending   teams.Ending
}

// spoolName is the name of the directory with these files, beside those of the sessions' outputs.
const spoolName = "spool"

func spoolDirectory(outputs string) string { return filepath.Join(outputs, spoolName) }

func (e *spooledEnd) path(outputs string) string {
	return filepath.Join(spoolDirectory(outputs), fmt.Sprintf("%s-%d.json", e.Run.ID, e.Run.Run))
}

// write writes the file, whole or not at all.
func (e *spooledEnd) write(outputs string) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return textfile.Replace(e.path(outputs), text)
}

// send reports the end, and removes its file when the registry has it.
func (e *spooledEnd) send(ctx context.Context, db *teams.Store, outputs string) error {
	_, err := db.EndRun(ctx, e.Run, e.Ending)
	if err == nil {
		_ = os.Remove(e.path(outputs)) // there is none if it was reported at once
	}
	return err
}

// sendSpooled reports to a registry the ends of its runs whose supervisors could not: it was away
// until they gave up, or they were killed meanwhile. One end that it refuses does not hold up the
// others, and is tried for as long as the registry would keep it.
func sendSpooled(ctx context.Context, db *teams.Store, outputs string, log *slog.Logger) {
	names, _ := filepath.Glob(filepath.Join(spoolDirectory(outputs), "*.json"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // another process has reported it
		}
		var e spooledEnd
		if json.Unmarshal(text, &e) != nil || e.Registry != db.Address() {
			continue
		}
		err = e.send(ctx, db, outputs)
		if errors.Is(err, database.ErrDown) {
			return
		}
		if info, _ := os.Stat(name); err != nil && info != nil && time.Since(info.ModTime()) > teams.Retention {
			log.Warn("the end of an agent's run is not reported: the registry has refused it for seven days", "session", e.Run.ID, "run", e.Run.Run, "err", err)
			_ = os.Remove(name)
		}
	}
}
