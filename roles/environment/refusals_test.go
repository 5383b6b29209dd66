package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/config"
	"abl/internal/gateway"
)

func refused(kind, host, reason string) gateway.Entry {
	return gateway.Entry{Kind: kind, Reason: reason, Req: &gateway.Request{Host: host, Refused: true}}
}

func TestAdvice(t *testing.T) {
	not := func(host string) gateway.Entry {
		return refused(gateway.Tunneled, host, host+" is not in network.allow")
	}
	log := []gateway.Entry{
		{Kind: gateway.Ready}, not("a.example:443"), not("b.example:8443"), not("b.example:8443"),
		{Kind: gateway.Tunneled, Req: &gateway.Request{Host: "good.example:443", Status: 200}},
		{Kind: gateway.Tunneled, Reason: "cannot resolve", Req: &gateway.Request{Host: "away.example:443", Status: 502}},
		refused(gateway.Tunneled, "inside.example:443", "its address is not public"),
		refused(gateway.Requested, "plain.example:80", "plain http; only https is allowed"),
		not("10.0.0.1:80"), not("metadata:80"), not("[::1]:80"),
		refused(gateway.Tunneled, "", "the target is not a host and a port"),
		refused(gateway.Tunneled, "busy.example:443", "32 tunnels are open"),
		refused(gateway.Requested, "", "the token does not belong to this call"),
	}
	want := []string{
		"the gateway refused a.example:443",
		"the gateway refused b.example:8443, 2 times",
		`the gateway refused inside.example:443: its address is not public; if you trust it, add {host: "inside.example:443", private: true} to network.allow`,
		"the gateway refused plain.example:80: plain http; only https is allowed",
		"the gateway refused 10.0.0.1:80: it is not the name of a host in a domain",
		"the gateway refused metadata:80: it is not the name of a host in a domain",
		"the gateway refused [::1]:80: it is not the name of a host in a domain",
		"the gateway refused busy.example:443: 32 tunnels are open",
		"to allow them, add to .abl/config.yaml: network: {allow: [a.example:443, b.example:8443]}",
	}
	if diff := cmp.Diff(want, refusalNotes(log)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if notes := refusalNotes(log[:1]); len(notes) > 0 {
		t.Errorf("notes of a log without refusals: got %q, want none", notes)
	}
}

// abl accepts the line that Advice suggests.
func TestAdviceIsTaken(t *testing.T) {
	var log []gateway.Entry
	for i := range 50 {
		host := fmt.Sprintf("host-%02d.example:443", i)
		log = append(log, refused(gateway.Tunneled, host, host+" is not in network.allow"))
	}
	advice := refusalNotes(log)
	if len(advice) != mostHosts+2 || advice[mostHosts] != "the gateway refused 30 more hosts" {
		t.Fatalf("notes: got %d, the last ones %q, want %d with 30 more hosts",
			len(advice), advice[min(mostHosts, len(advice)):], mostHosts+2)
	}
	_, line, _ := strings.Cut(advice[mostHosts+1], "config.yaml: ")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".abl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".abl", "config.yaml"), []byte(line+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := config.Load(dir, func(string) (string, bool) { return "", false }, nil)
	if err != nil || len(l.Network.Allow) != mostHosts || config.AllowedHost(l.Network.Allow[0].Name()) != "host-00.example:443" {
		t.Errorf("configuration with the advice: got %v, error %v, want %d allowed hosts", l, err, mostHosts)
	}
}
