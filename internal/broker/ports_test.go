package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The ports that a container's programs listen at, without those of abl and of the engine.
func TestListening(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue\n"
	v4, v6 := filepath.Join(t.TempDir(), "tcp"), filepath.Join(t.TempDir(), "tcp6")
	for path, text := range map[string]string{
		v4: head + "   0: 0100007F:1F90 00000000:0000 0A 0:0\n" + // 127.0.0.1:8080
			"   1: 00000000:1B9E 00000000:0000 0A 0:0\n" + // the broker's
			"   2: 0B00007F:A1B2 00000000:0000 0A 0:0\n" + // the engine's name server
			"   3: 0100007F:0035 00000000:0000 0A 0:0\n" + // abl's
			"   4: 0100007F:1F91 0100007F:A000 01 0:0\n" + // a connection
			"nonsense\n",
		v6: head + "   0: 00000000000000000000000000000000:0BB8 00000000000000000000000000000000:0000 0A 0:0\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := fmt.Sprint(listening(v4, v6, filepath.Join(t.TempDir(), "none"))), "[3000 8080]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
