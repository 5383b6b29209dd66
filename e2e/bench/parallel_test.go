package bench

import (
	"bufio"
	"bytes"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// BenchmarkPhasesAtOnce measures how many phases pass in a minute while 1, 2, 4 or 8 run at once, and the most
// memory that one of them needs: for abl, and for its containers without the page cache.
func BenchmarkPhasesAtOnce(b *testing.B) {
	lab.Engine(b)
	for _, n := range []int{1, 2, 4, 8} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			var took time.Duration
			var ids []string
			own, containers := 0.0, containerMemory(b)
			for b.Loop() {
				var projects []*lab.Project
				var runs []*exec.Cmd
				for range n {
					p := passing(b)
					run := p.Cmd("phase", "1", "--quiet")
					run.Stderr = new(bytes.Buffer)
					projects, runs = append(projects, p), append(runs, run)
				}
				begun := time.Now()
				for _, run := range runs {
					if err := run.Start(); err != nil {
						b.Fatal(err)
					}
				}
				for _, run := range runs {
					if err := run.Wait(); err != nil {
						b.Errorf("%v\n%s", err, run.Stderr)
					}
					own = max(own, float64(run.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024)
				}
				took += time.Since(begun)
				for _, p := range projects {
					ids = append(ids, p.ID())
				}
			}
			b.ReportMetric(float64(n*b.N)/took.Minutes(), "phases/min")
			b.ReportMetric(own, "MB-of-abl")
			all, most := containers(), 0.0
			for _, id := range ids {
				most = max(most, all[id])
			}
			b.ReportMetric(most, "MB-of-containers")
		})
	}
}

// usage is a line of docker stats: the project of a container and the memory.
var usage = regexp.MustCompile(`abl-([^- ]+)\S* ([0-9.]+)([KMG]?)i?B`)

// containerMemory begins to watch the memory of abl's containers. The function that it returns ends this, and
// returns the most that the containers of each project had at the same time, in MB.
func containerMemory(b *testing.B) (end func() map[string]float64) {
	b.Helper()
	cmd := exec.Command("docker", "stats", "--format", "{{.Name}} {{.MemUsage}}")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	most, done := map[string]float64{}, make(chan struct{})
	go func() {
		defer close(done)
		now := map[string]float64{}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "\x1b[H") { // the next sample
				clear(now)
			}
			if m := usage.FindStringSubmatch(lines.Text()); m != nil {
				size, _ := strconv.ParseFloat(m[2], 64)
				now[m[1]] += size * map[string]float64{"": 1e-6, "K": 1.0 / 1024, "M": 1, "G": 1024}[m[3]]
				most[m[1]] = max(most[m[1]], now[m[1]])
			}
		}
	}()
	return func() map[string]float64 {
		cmd.Process.Kill()
		<-done
		cmd.Wait()
		return most
	}
}
