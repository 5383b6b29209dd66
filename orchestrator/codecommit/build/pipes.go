package build

import (
	"io"
	"os"
	"sync"
	"time"
)

// pipes carry a program's outputs. The end of the program is one thing, the end
// of its outputs another: what it left running may hold these for ever.
type pipes struct {
	ends    []*os.File // the program's
	reads   []*os.File
	copiers sync.WaitGroup
	lock    sync.Mutex // outputs share a stream
}

func (p *pipes) open(stdout, stderr io.Writer) (out, err *os.File, problem error) {
	if out, problem = p.one(stdout); problem != nil {
		return nil, nil, problem
	}
	if err, problem = p.one(stderr); problem != nil {
		p.drain()
	}
	return out, err, problem
}

func (p *pipes) one(to io.Writer) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.ends, p.reads = append(p.ends, w), append(p.reads, r)
	p.copiers.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			p.lock.Lock()
			to.Write(buf[:n])
			p.lock.Unlock()
			if err != nil {
				return
			}
		}
	})
	return w, nil
}

// drain takes what is left, but waits for nobody who holds on to an output.
func (p *pipes) drain() {
	const patience = time.Second
	for _, w := range p.ends {
		w.Close()
	}
	done := make(chan struct{})
	go func() { p.copiers.Wait(); close(done) }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	for _, r := range p.reads {
		r.Close()
	}
	<-done
}
