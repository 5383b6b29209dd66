package broker

import (
	"fmt"
	"os"
	"time"
)

const (
	defaultLogMax = 64 << 20
	tailMax       = 64 << 10 // bytes of the end that are kept besides the beginning
)

// appLog takes the output of the app and of the commands. Programs write into
// a pipe of the kernel's and not into the file, so that the file's size is
// bounded and a program that outlives the one that started it can still write.
type appLog struct {
	pipe *os.File // where programs write
	done chan struct{}
	read *os.File
}

// openLog opens the file that abl made before and keeps the first max bytes of
// the output there; of more than that the last lines are added by close.
func openLog(path string, max int64) (*appLog, error) {
	if max <= 0 {
		max = defaultLogMax
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the app's log: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot make a pipe for the app's log: %w", err)
	}
	l := &appLog{pipe: w, read: r, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		defer file.Close()
		k := keeper{left: max}
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			_, _ = file.Write(k.take(buf[:n]))
			if err != nil {
				_, _ = file.Write(k.end())
				return
			}
		}
	}()
	return l, nil
}

// note writes a line of the broker's own.
func (l *appLog) note(format string, args ...any) {
	fmt.Fprintf(l.pipe, "abl: "+format+"\n", args...)
}

// close ends the log once all that is in the pipe has been read, even if a
// program still holds the pipe.
func (l *appLog) close() {
	l.pipe.Close()
	_ = l.read.SetReadDeadline(time.Now().Add(time.Second))
	<-l.done
	l.read.Close()
}

// keeper decides which bytes of an output are kept.
type keeper struct {
	left    int64
	dropped int64
	tail    []byte
}

// take returns what of b goes into the log now.
func (k *keeper) take(b []byte) []byte {
	n := min(int64(len(b)), k.left)
	head, rest := b[:n], b[n:]
	k.left -= n
	if len(rest) == 0 {
		return head
	}
	if k.dropped == 0 {
		head = append(head[:n:n], "\nabl: the log is full, what follows is dropped but for its last lines\n"...)
	}
	k.dropped += int64(len(rest))
	k.tail = append(k.tail, rest[max(0, len(rest)-tailMax):]...)
	if extra := len(k.tail) - tailMax; extra > 0 {
		k.tail = append(k.tail[:0], k.tail[extra:]...)
	}
	return head
}

// end returns what is added when the output is over.
func (k *keeper) end() []byte {
	if k.dropped == 0 {
		return nil
	}
	gone := k.dropped - int64(len(k.tail))
	return fmt.Appendf(nil, "abl: %d bytes were dropped, the last %d are\n%s", gone, len(k.tail), k.tail)
}
