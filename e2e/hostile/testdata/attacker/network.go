package main

import (
	"fmt"
	"net"
	"net/netip"
	"sort"
	"strings"
	"sync"
	"time"
)

const patience = 2 * time.Second

// dials sends a request to each address and prints the responses.
func dials(at []string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	places := make(chan struct{}, 1000)
	for _, at := range at {
		wg.Add(1)
		go func() {
			defer wg.Done()
			places <- struct{}{}
			defer func() { <-places }()
			if text := ask(at); text != "" {
				mu.Lock()
				defer mu.Unlock()
				fmt.Printf("HOLE: %s answers %.200q\n", at, text)
			}
		}()
	}
	wg.Wait()
	fmt.Println("held:", len(at), "addresses dialled")
}

func ask(at string) string {
	c, err := net.DialTimeout("tcp", at, patience)
	if err != nil {
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "GET / HTTP/1.0\r\nHost: x\r\n\r\n")
	buf := make([]byte, 4096)
	n, _ := c.Read(buf)
	return string(buf[:n])
}

// networks returns the networks of this container.
func networks() (all []netip.Prefix) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		fmt.Println("ODD:", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			all = append(all, p)
		}
	}
	return all
}

// neighbours dials the ports at every address in the container's networks that the host may have:
// the first and the last addresses, and in a small network all.
func neighbours(ports []string) {
	var all []string
	for _, n := range networks() {
		addr := n.Masked().Addr()
		for range 16 {
			for _, port := range ports {
				all = append(all, net.JoinHostPort(addr.String(), port))
			}
			addr = addr.Next()
		}
	}
	if len(all) == 0 {
		fmt.Println("held: there is no network")
		return
	}
	dials(all)
}

// strangers dials the ports in the networks next to the container's own.
func strangers(ports []string) {
	var all []string
	for _, n := range networks() {
		if n.Bits() < 24 {
			fmt.Println("ODD: a network of the size of", n)
			return
		}
		first := n.Masked().Addr().As4()
		size := 1 << (32 - n.Bits())
		base := (int(first[2])<<8 | int(first[3])) - 4*size
		for i := range 9 * size {
			at := base + i
			if at < 0 || at > 0xffff || i/size == 4 { // the container's own network
				continue
			}
			for _, port := range ports {
				all = append(all, fmt.Sprintf("%d.%d.%d.%d:%s", first[0], first[1], at>>8, at&255, port))
			}
		}
	}
	dials(all)
}

// highest is the last port to scan: containers listen on lower ones.
const highest = 12000

// ports prints the open ports of a host.
func ports(args []string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []int
	host := args[0]
	if found, err := net.LookupHost(host); err == nil {
		host = found[0] // resolve once, not for each port
	}
	places := make(chan struct{}, 500)
	for port := 1; port <= highest; port++ {
		places <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-places }()
			if c, err := net.DialTimeout("tcp", net.JoinHostPort(host, fmt.Sprint(port)), patience); err == nil {
				c.Close()
				mu.Lock()
				open = append(open, port)
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	sort.Ints(open)
	fmt.Println(strings.Trim(fmt.Sprint(open), "[]"), "")
}
