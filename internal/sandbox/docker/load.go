package docker

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/docker/docker/api/types/container"

	"abl/internal/sandbox"
)

// maxStats is more than an engine's figures of one box take, in bytes.
const maxStats = 1 << 20

// Load says how much a box has done until now. A box that joins another's network
// has no traffic of its own.
func (e *Engine) Load(ctx context.Context, name string) (load sandbox.Load, err error) {
	err = e.do(ctx, short, func(ctx context.Context) error {
		answer, err := e.api.ContainerStatsOneShot(ctx, name)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var s container.StatsResponse
		if err := json.NewDecoder(io.LimitReader(answer.Body, maxStats)).Decode(&s); err != nil {
			return err
		}
		load = sandbox.Load{CPU: time.Duration(s.CPUStats.CPUUsage.TotalUsage)}
		for _, n := range s.Networks {
			load.Net += int64(n.RxBytes + n.TxBytes)
		}
		return nil
	})
	return load, about(missing(err), "cannot measure box %q", name)
}
