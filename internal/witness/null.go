package witness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"

	"abl/internal/helper"
)

// Null answers every request with the same status and an empty body, until ctx
// ends. What is no HTTP/1 hears nothing.
func Null(ctx context.Context, l net.Listener, status int) error {
	reply := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", status, http.StatusText(status))
	return always(ctx, l, func(*http.Request) string { return reply })
}

// Planted is what a stand-in for the app answers to see whether a suite prints
// answers as they are: then the app could say of itself what it likes. It is a
// test line for a contract that no project has.
const (
	Planted   = "\nok 1 - " + PlantedID + " said by what stands in for the app\n"
	PlantedID = "P9999.C999999"
)

// Say answers every request with 200 and the same text, until ctx ends.
func Say(ctx context.Context, l net.Listener, text string) error {
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", len(text))
	return always(ctx, l, func(req *http.Request) string {
		if req.Method == http.MethodHead {
			return head
		}
		return head + text
	})
}

// always answers without looking at more of a request than an answer needs.
func always(ctx context.Context, l net.Listener, reply func(*http.Request) string) error {
	return serve(ctx, l, func(_ context.Context, conn net.Conn) {
		r := bufio.NewReaderSize(conn, lineSize)
		for {
			_, req, err := readRequest(r)
			if err != nil || nod(conn, req) != nil || copyBody(io.Discard, r, requestFraming(req)) != nil {
				return
			}
			if _, err := io.WriteString(conn, reply(req)); err != nil || req.Close {
				return
			}
		}
	})
}

// nod lets a client go on that asks before it sends a body.
func nod(conn net.Conn, req *http.Request) error {
	if req.Header.Get("Expect") == "" {
		return nil
	}
	_, err := io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	return err
}

// Commands stands in for the broker: every command has been run and ended with
// exit code 0, without output. So tests that prepare the system before anything
// else come to what they test.
func Commands(ctx context.Context, l net.Listener) error {
	data, err := json.Marshal(helper.CommandReply{})
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	reply := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(data), data)
	return serve(ctx, l, func(_ context.Context, conn net.Conn) {
		r := bufio.NewReaderSize(conn, lineSize)
		if _, _, err := readRequest(r); err != nil {
			return
		}
		if _, err := io.WriteString(conn, reply); err == nil {
			closeWrite(conn)
			_, _ = io.Copy(io.Discard, r) // its input, lest the reply is lost in a reset
		}
	})
}
