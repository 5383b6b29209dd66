package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"abl/cmd/abl-cmd/internal/holder"
	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/deadman"
	"abl/internal/modelserver"
	"abl/orchestrator/broker"
	"abl/orchestrator/dirs"
	"abl/roles/scenario"
	"abl/roles/scenario/player"
)

// brokerGrace is what a broker has to take the app down after its deadline.
const brokerGrace = 30 * time.Second

// serveCommands is the broker in the app's container.
func serveCommands(ctx context.Context, s started) int {
	var spec dirs.BrokerSpec
	data, err := os.ReadFile(s.file(dirs.Broker))
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err == nil {
		err = probe.First(ctx, spec.Probe, os.Stdout)
	}
	if err == nil && spec.Deadline > 0 { // for an app that stops this process
		err = deadman.Arm(max(time.Until(time.Unix(spec.Deadline, 0)), 0) + brokerGrace)
	}
	if err == nil {
		err = broker.Serve(ctx, spec)
	}
	if err != nil {
		return refuse(dirs.HelperBroker, err)
	}
	return 0
}

// until gives ctx the end that --deadline names.
func until(ctx context.Context, deadline int64) (context.Context, context.CancelFunc) {
	if deadline == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, time.Unix(deadline, 0))
}

// flags parses a program's flags; errors go to its standard error.
func flags(name string, args []string, define func(*flag.FlagSet)) (rest []string, deadline int64, err error) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.Int64Var(&deadline, "deadline", 0, "Unix seconds at which to end, 0 for never")
	define(set)
	err = set.Parse(args)
	return set.Args(), deadline, err
}

// hold holds the container's network namespace.
func hold(ctx context.Context, s started) int {
	var listen, become string
	rest, deadline, err := flags(dirs.HelperHolder, s.args, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", "127.0.0.1:53", "where to answer DNS")
		f.StringVar(&become, "seal", "", "close the network to datagrams for many, then go on as this \"uid:gid\"")
	})
	if err != nil {
		return exitUsage
	}
	if len(rest) > 0 {
		return refuse(dirs.HelperHolder, fmt.Errorf("takes no argument %q", rest[0]))
	}
	if err := seal(become); err != nil {
		return refuse(dirs.HelperHolder, err)
	}
	signal.Ignore(syscall.SIGCHLD) // of a service below this process, whose orphans nobody else waits for
	ctx, cancel := until(ctx, deadline)
	defer cancel()
	if err := holder.Serve(ctx, listen, func(addr string) { fmt.Printf("listening on %s\nready\n", addr) }); err != nil {
		return refuse(dirs.HelperHolder, err)
	}
	return 0
}

// seal closes the network and gives up the rights that this took. A kernel that
// cannot close it is told of and no reason to end: each call's probe finds out,
// and whether that is allowed is not for the holder to say.
func seal(become string) error {
	if become == "" {
		return nil
	}
	if err := holder.Seal(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", dirs.HelperHolder, err)
	}
	return holder.Become(become)
}

// serveModel is the scripted Gemini API: abl-model [flags] SCENARIO.
func serveModel(ctx context.Context, s started) int {
	var listen, src, tests, appURL string
	rest, deadline, err := flags(dirs.HelperModel, s.args, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", fmt.Sprintf(":%d", dirs.ModelPort), "where to serve")
		f.StringVar(&src, "src", dirs.Src, "the Builder's workspace as the Builder sees it")
		f.StringVar(&tests, "tests", dirs.Tests, "the Verifier's workspace as the Verifier sees it")
		f.StringVar(&appURL, "app-url", "http://app:3000", "what {{app_url}} stands for")
	})
	if err != nil {
		return exitUsage
	}
	if len(rest) != 1 {
		return refuse(dirs.HelperModel, errors.New("takes one argument, the scenario file"))
	}
	ctx, cancel := until(ctx, deadline)
	defer cancel()
	script, err := readScenario(rest[0])
	if err != nil {
		return refuse(dirs.HelperModel, err)
	}
	places := player.Places{Workspaces: map[string]string{"builder": src, "verifier": tests}, AppURL: appURL}
	handler := &modelserver.Server{Source: player.Source(script, places, time.Now), Log: os.Stdout}
	if err := serveHTTP(ctx, listen, handler, os.Stdout); err != nil {
		return refuse(dirs.HelperModel, err)
	}
	return 0
}

func readScenario(path string) (scenario.Scenario, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return scenario.Scenario{}, err
	}
	s, err := scenario.Parse(path, data)
	if err != nil {
		return scenario.Scenario{}, err
	}
	return s.Resolve(filepath.Dir(path))
}

// serveHTTP serves until ctx ends, having printed where.
func serveHTTP(ctx context.Context, listen string, handler http.Handler, out io.Writer) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	fmt.Fprintf(out, "{\"ready\":%q}\n", l.Addr())
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { web.Close() })
	defer stop()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot go on serving: %w", err)
	}
	return nil
}
