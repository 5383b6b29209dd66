package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/sandbox"
	"abl/roles/boundary"
	"abl/roles/environment"
)

// checkServices starts each service of the app as for a call of the Builder, and removes it again.
func checkServices(ctx context.Context, s *project.Project) []finding {
	if len(environment.Services(s.Conf)) == 0 || s.CheckImages() != nil { // checkProject reports CheckImages
		return nil
	}
	found, err := startServices(ctx, s)
	if err != nil {
		found = append(found, failed("service", exit.OnEngine(err)))
	}
	return found
}

// startServices starts each service of the app once and reports how long it took.
func startServices(ctx context.Context, s *project.Project) (found []finding, err error) {
	err = inTrial(ctx, s.In, s.Conf, s.Paths.Root, false, func(env *environment.Environment) error {
		if err := env.Containers.Holder(ctx, boundary.PlaceBuilder); err != nil {
			return err
		}
		for _, svc := range environment.Services(s.Conf) {
			from := cmp.Or(svc.Image, s.Conf.App.Services[svc.Name].Dockerfile)
			took, err := startService(ctx, env, svc)
			f := good("service", fmt.Sprintf("%s: %s responds at port %d, %s after its start", svc.Name, from, svc.Port, took))
			if errors.Is(err, sandbox.ErrNoImage) {
				f.Text = fmt.Sprintf("%s: %s is not on the engine yet; the first phase builds or pulls it (docs/services.md)",
					svc.Name, from)
			} else if err != nil {
				f = failed("service", exit.OnEngine(err))
			}
			found = append(found, f)
		}
		return nil
	})
	return found, err
}

// startService starts one service, waits until it is ready and removes it. It returns how long that took.
func startService(ctx context.Context, env *environment.Environment, svc boundary.ServiceContainer) (time.Duration, error) {
	if err := env.Have(ctx, &svc); err != nil {
		return 0, err
	}
	one, begun := []boundary.ServiceContainer{svc}, time.Now()
	err := env.Containers.Trials(ctx, one, "look", begun.Add(boundary.StartTime(one)+2*time.Minute))
	took := time.Since(begun).Round(100 * time.Millisecond)
	return took, errors.Join(err, env.Containers.EndTrials(context.WithoutCancel(ctx), one))
}
