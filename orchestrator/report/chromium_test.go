package report

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// chromium is a headless browser that the test controls by the DevTools protocol over pipes.
type chromium struct {
	*testing.T
	to     io.Writer
	from   *bufio.Reader
	last   int
	tab    string   // the session
	loaded bool     // since the last open
	seen   []string // events that a passive page does not cause: requests, errors, dialogs
	axe    string   // the source of axe-core, may be ""
}

// browse starts the browser, or skips the test without one.
func browse(t *testing.T) *chromium {
	t.Helper()
	said := &bytes.Buffer{}
	find := exec.Command("../../scripts/browser.sh")
	find.Stderr = said
	out, err := find.Output()
	if err != nil {
		t.Skipf("no browser: %s", said)
	}
	path, axe, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	c := &chromium{T: t}
	if data, err := os.ReadFile(axe); err == nil {
		c.axe = string(data)
	}
	read, to, err1 := os.Pipe()
	from, write, err2 := os.Pipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	home := t.TempDir()
	run := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "--user-data-dir="+home, "about:blank")
	run.ExtraFiles = []*os.File{read, write}
	run.Env = append(os.Environ(), "HOME="+home)
	if err := run.Start(); err != nil {
		t.Skipf("no browser: %v", err)
	}
	read.Close()
	write.Close()
	c.to, c.from = to, bufio.NewReaderSize(from, 1<<20)
	t.Cleanup(func() {
		c.call("Browser.close", nil)
		run.Wait()
		to.Close()
		from.Close()
	})
	var target struct{ TargetID, SessionID string }
	c.into(c.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	c.into(c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &target)
	c.tab = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		c.call(domain+".enable", nil)
	}
	return c
}

// devtools is a message of the browser.
type devtools struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// call sends a command and waits for the response.
func (c *chromium) call(method string, params any) json.RawMessage {
	c.Helper()
	c.last++
	data, err := json.Marshal(map[string]any{"id": c.last, "method": method, "params": params, "sessionId": c.tab})
	if c.tab == "" {
		data, err = json.Marshal(map[string]any{"id": c.last, "method": method, "params": params})
	}
	if err == nil {
		_, err = c.to.Write(append(data, 0))
	}
	if err != nil {
		c.Fatalf("%s: %v", method, err)
	}
	for {
		switch m := c.next(); {
		case m.ID == c.last && m.Error != nil:
			c.Fatalf("%s: %s", method, m.Error.Message)
		case m.ID == c.last:
			return m.Result
		}
	}
}

// next reads the next message and records events.
func (c *chromium) next() (m devtools) {
	c.Helper()
	data, err := c.from.ReadBytes(0)
	if err == nil {
		err = json.Unmarshal(bytes.TrimSuffix(data, []byte{0}), &m)
	}
	if err != nil {
		c.Fatalf("the browser: %v", err)
	}
	switch m.Method {
	case "Page.loadEventFired":
		c.loaded = true
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening", "Page.windowOpen", "Network.requestWillBeSent":
		c.seen = append(c.seen, m.Method+" "+string(m.Params))
	}
	return m
}

func (c *chromium) into(data json.RawMessage, v any) {
	c.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		c.Fatalf("%s: %v", data, err)
	}
}

// open shows a page, which may load nothing else.
func (c *chromium) open(page []byte) {
	c.Helper()
	path := filepath.Join(c.TempDir(), "page.html")
	if err := os.WriteFile(path, page, 0o644); err != nil {
		c.Fatal(err)
	}
	c.loaded, c.seen = false, nil
	c.call("Page.navigate", map[string]any{"url": "file://" + path})
	for !c.loaded {
		c.next()
	}
}

// quiet fails if anything but the loading of the page happened.
func (c *chromium) quiet() {
	c.Helper()
	c.call("Runtime.evaluate", map[string]any{"expression": "new Promise(done => requestAnimationFrame(() => setTimeout(done)))", "awaitPromise": true})
	for i, what := range c.seen {
		// Chromium logs this if a click comes before it looks for a button to focus.
		if strings.Contains(what, "Autofocus processing was blocked") {
			continue
		}
		if i > 0 || !strings.Contains(what, "/page.html") {
			c.Errorf("the page does something: %.600s", what)
		}
	}
}

// eval evaluates an expression in the page.
func (c *chromium) eval(expression string, v any) {
	c.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	c.into(c.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}), &got)
	if got.ExceptionDetails != nil {
		c.Fatalf("%.300s: %s", expression, got.ExceptionDetails)
	}
	if v != nil {
		c.into(got.Result.Value, v)
	}
}

// truth fails unless an expression is true.
func (c *chromium) truth(what, expression string) {
	c.Helper()
	var is bool
	if c.eval("!!("+expression+")", &is); !is {
		c.Errorf("%s: %s is not so", what, expression)
	}
}

// click presses the mouse in the middle of an element.
func (c *chromium) click(selector string) {
	c.Helper()
	var at struct{ X, Y float64 }
	c.eval(fmt.Sprintf("(e => { e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect(); return {x: r.x + r.width / 2, y: r.y + r.height / 2} })(document.querySelector(%q))", selector), &at)
	for _, what := range []string{"mousePressed", "mouseReleased"} {
		c.call("Input.dispatchMouseEvent", map[string]any{"type": what, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// press types a key: Tab, Enter, Escape or a space.
func (c *chromium) press(key string) {
	c.Helper()
	code := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}[key]
	text := map[string]string{"Enter": "\r", " ": " "}[key]
	c.call("Input.dispatchKeyEvent", map[string]any{"type": "keyDown", "key": key, "windowsVirtualKeyCode": code, "text": text})
	c.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "windowsVirtualKeyCode": code})
}

// look sets the width of the page, and light, dark or print.
func (c *chromium) look(width int, how string) {
	c.Helper()
	media := map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": how}}}
	if how == "print" {
		media = map[string]any{"media": "print"}
	}
	c.call("Emulation.setEmulatedMedia", media)
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500})
}

// shoot writes a screenshot of the page if -shots is set; whole includes the part outside of the
// window.
func (c *chromium) shoot(name string, whole bool) {
	c.Helper()
	if *shots == "" {
		return
	}
	c.eval("document.querySelectorAll('section').forEach(e => e.style.contentVisibility = 'visible')", nil)
	var shot struct{ Data string }
	c.into(c.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": whole}), &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, name+".png"), data, 0o644)
	}
	if err != nil {
		c.Fatal(err)
	}
}
