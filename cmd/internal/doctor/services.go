package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles"
	"abl/roles/environment"
)

// checkServices starts each service of the app by itself, as beside a call of the Builder's, and
// leaves nothing.
func checkServices(ctx context.Context, s *phase.Project) []phase.Finding {
	all := environment.Services(s.Conf)
	if len(all) == 0 || s.CheckImages() != nil { // of which the person is told
		return nil
	}
	found, err := tryServices(ctx, s, all)
	if err != nil {
		found = append(found, failed("service", exit.OnEngine(err)))
	}
	return found
}

func tryServices(ctx context.Context, s *phase.Project, all []helper.Service) (found []phase.Finding, err error) {
	net, err := s.Networks(ctx)
	if err != nil {
		return nil, err
	}
	env, _, closed, err := openTrial(ctx, s.In, s.Conf, s.Paths.Root, net)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closed()) }()
	env.Boxes.Trial = true
	if err := env.Boxes.Holder(ctx, roles.PlaceBuilder); err != nil {
		return nil, err
	}
	for _, svc := range all {
		text, err := tryService(ctx, env, svc)
		f := good("service", svc.Name+": "+text)
		if err != nil {
			f = failed("service", exit.OnEngine(err))
		}
		found = append(found, f)
	}
	return found, nil
}

func tryService(ctx context.Context, env *environment.Environment, svc helper.Service) (string, error) {
	set := env.Conf.App.Services[svc.Name]
	box, err := env.Service(ctx, svc)
	if errors.Is(err, sandbox.ErrNoImage) {
		if set.Dockerfile != "" {
			return set.Dockerfile + " is not built yet; the first phase builds it", nil
		}
		return fmt.Sprintf("%s is not on the engine; the first phase pulls it (without a registry: docker load, docs/services.md)", set.Image), nil
	}
	if err != nil {
		return "", err
	}
	one, begun := []roles.ServiceBox{box}, time.Now()
	err = env.Boxes.Trials(ctx, one, "look", begun.Add(roles.StartTime([]helper.Service{svc})+2*time.Minute))
	took := time.Since(begun).Round(100 * time.Millisecond)
	if err = errors.Join(err, env.Boxes.EndTrials(context.WithoutCancel(ctx), one)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s answers at port %d, %s after its start", cmp.Or(set.Image, set.Dockerfile), svc.Port, took), nil
}
