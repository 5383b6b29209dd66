package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkStreams compares the gateway, as a process of its own, with asking the
// provider directly and with nginx, in rounds one after the other. ABL_NGINX names
// an nginx that is not on the path. Each figure is the median of the rounds' own
// ratios of medians, because a busy machine changes between rounds.
func BenchmarkStreams(b *testing.B) {
	for _, load := range []struct {
		name                    string
		events, requests, users int
		pause                   time.Duration
		rounds                  int
	}{
		{"64", 50, 3000, 64, 0, 7}, // with the warm-up 20,000 and more answers
		{"512", 50, 3000, 512, 0, 5},
		{"paced64", 50, 256, 64, 5 * time.Millisecond, 3},
		{"paced512", 50, 1024, 512, 20 * time.Millisecond, 3},
	} {
		b.Run(load.name, func(b *testing.B) {
			s := newStream(load.events, load.pause)
			up := httptest.NewServer(s)
			defer up.Close()
			ways := map[string]string{"direct": up.URL + "/v1beta/models/m1:streamGenerateContent?alt=sse"}
			ours, pid := process(b, up.URL)
			ways["gateway"] = ours + "/" + callID + gen
			pids := map[string]int{"gateway": pid}
			if url, pid := nginx(b, up.Listener.Addr().String()); url != "" {
				ways["nginx"] = url + "/v1beta/models/m1:streamGenerateContent?alt=sse"
				pids["nginx"] = pid
			}
			for b.Loop() {
				compare(b, ways, pids, s.whole, load.requests, load.users, load.rounds)
			}
			b.ReportMetric(peak(b, pid), "MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func compare(b *testing.B, ways map[string]string, pids map[string]int, want string, requests, users, rounds int) {
	ratios := map[string][]float64{}
	cut := int64(0)
	worked := map[string]time.Duration{}
	for range rounds {
		median := map[string]float64{}
		for _, way := range []string{"direct", "gateway", "nginx"} {
			if ways[way] == "" {
				continue
			}
			before := cpu(b, pids[way])
			took, wrong := load(ways[way], want, requests, users)
			worked[way] += cpu(b, pids[way]) - before
			slices.Sort(took)
			median[way] = float64(took[len(took)/2])
			if way == "gateway" {
				cut += wrong
			} else if wrong > 0 {
				b.Logf("%s: %d of %d answers are wrong", way, wrong, requests)
			}
		}
		for way, m := range median {
			ratios[way+"/direct"] = append(ratios[way+"/direct"], m/median["direct"])
			if way == "gateway" && median["nginx"] > 0 {
				ratios["gateway/nginx"] = append(ratios["gateway/nginx"], m/median["nginx"])
			}
		}
	}
	for name, all := range ratios {
		slices.Sort(all)
		if name != "direct/direct" {
			b.ReportMetric(all[len(all)/2], name)
		}
	}
	for way := range pids {
		b.ReportMetric(float64(worked[way].Microseconds())/float64(requests*rounds), way+"-cpu-us")
	}
	if pids["nginx"] != 0 { // steadier than the clock on a machine that does other things, too
		b.ReportMetric(float64(worked["gateway"])/float64(worked["nginx"]), "cpu-gateway/nginx")
	}
	b.ReportMetric(float64(cut), "cut")
	b.ReportMetric(float64(requests*rounds), "answers")
}

// process starts the gateway's program and returns its address.
func process(b *testing.B, upstream string) (url string, pid int) {
	b.Helper()
	program := filepath.Join(b.TempDir(), "abl-gateway")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", program, "abl/cmd/abl-gateway")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	s := setup(upstream)
	s.Limits.Concurrent = 600
	cmd := exec.CommandContext(b.Context(), program)
	cmd.Stdin = strings.NewReader(encode(b, s) + "\n")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	log := bufio.NewReader(out)
	line, err := log.ReadBytes('\n')
	var e Entry
	if err != nil || json.Unmarshal(line, &e) != nil {
		b.Fatalf("%v: %s", err, line)
	}
	go log.WriteTo(new(discard))
	return "http://" + e.Listen, cmd.Process.Pid
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that a process has had, in MB.
func peak(b *testing.B, pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	found := highWater.FindSubmatch(data)
	if err != nil || found == nil {
		b.Fatal(err)
	}
	kb, err := strconv.Atoi(string(found[1]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kb) / 1000
}

// nginx starts one in front of the provider, with the settings that its manual has
// for streams. It returns "" without one.
func nginx(b *testing.B, upstream string) (url string, pid int) {
	b.Helper()
	program := os.Getenv("ABL_NGINX")
	if program == "" {
		var err error
		if program, err = exec.LookPath("nginx"); err != nil {
			b.Log("no nginx on the path, and ABL_NGINX names none: compared with direct alone")
			return "", 0
		}
	}
	l, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	dir := b.TempDir()
	config := fmt.Sprintf(`daemon off; worker_processes 2; pid %[1]s/pid; error_log %[1]s/log;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  keepalive_requests 1000000;
  upstream up { server %[2]s; keepalive 600; keepalive_requests 1000000; }
  server { listen %[3]s backlog=1024; location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; client_body_buffer_size 64k; } }
}`, dir, upstream, addr)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(b.Context(), program, "-p", dir, "-c", filepath.Join(dir, "conf"), "-e", filepath.Join(dir, "log"))
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Signal(os.Interrupt); cmd.Wait() })
	for range 500 {
		if resp, err := http.Get("http://" + addr + "/"); err == nil {
			resp.Body.Close()
			return "http://" + addr, cmd.Process.Pid
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatalf("nginx does not answer: %s", said.String())
	return "", 0
}
