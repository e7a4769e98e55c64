// SPDX-License-Identifier: BSD-3-Clause

// net.go - package net's way to the network: net HOST | net tally ADDRESS echo|chorus COUNT AT_ONCE
//
// tally makes the connections of ../static/tally.c, by goroutines, and prints most of the same counts.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func converse(network, address string, data []byte) ([]byte, error) {
	connection, err := net.DialTimeout(network, address, 30*time.Second)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if got := connection.RemoteAddr().String(); !strings.HasSuffix(got, address[strings.LastIndex(address, ":"):]) {
		return nil, fmt.Errorf("the peer is %s", got)
	}
	_ = connection.SetDeadline(time.Now().Add(30 * time.Second))
	sent := make(chan error, 1)
	go func() {
		_, err := connection.Write(data)
		if err == nil && len(data) > 0 {
			err = connection.(*net.TCPConn).CloseWrite()
		}
		sent <- err
	}()
	got, err := io.ReadAll(connection)
	if err == nil {
		err = <-sent
	}
	return got, err
}

func overTCP(host string) {
	all(func(number int) error {
		data, err := converse("tcp", host+":7", pattern(sizeOf(number)))
		if err != nil {
			return err
		}
		return verify(number, data)
	})
}

// The outcomes of connections, as tally.c counts them.
type tally struct {
	sync.Mutex
	done, failed, foreign int
	errors                map[string]int
}

func (t *tally) add(expected, got []byte, err error) {
	foreign := len(got) - len(expected)
	if foreign < 0 {
		foreign = 0
	}
	for i := 0; i < len(got) && i < len(expected); i++ {
		if got[i] != expected[i] {
			foreign++
		}
	}
	if err == nil && len(got) < len(expected) {
		err = syscall.EPROTO
	}
	t.Lock()
	defer t.Unlock()
	t.foreign += foreign
	if err == nil {
		t.done++
		return
	}
	t.failed++
	var number syscall.Errno
	if errors.As(err, &number) {
		t.errors[fmt.Sprintf("errno-%d", int(number))]++
	} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.errors[fmt.Sprintf("errno-%d", int(syscall.ETIMEDOUT))]++
	} else {
		t.errors[strings.ReplaceAll(err.Error(), " ", "-")]++
	}
}

func runTally(address, kind string, connections, atOnce int) {
	var group sync.WaitGroup
	result := tally{errors: map[string]int{}}
	port := map[string]string{"echo": "7", "chorus": "1900"}[kind]
	places := make(chan bool, atOnce)
	for number := 0; number < connections; number++ {
		places <- true
		group.Add(1)
		go func(number int) {
			defer group.Done()
			var data []byte
			expected := make([]byte, 128)
			for i := range expected {
				expected[i] = byte(0x80 + i)
			}
			if kind == "echo" {
				data = pattern(20000 + number%4096)
				expected = data
			}
			got, err := converse("tcp", net.JoinHostPort(address, port), data)
			result.add(expected, got, err)
			<-places
		}(number)
	}
	group.Wait()
	fmt.Printf("done=%d failed=%d foreign=%d peers=0 slowest=0", result.done, result.failed, result.foreign)
	var names []string
	for name := range result.errors {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf(" %s=%d", name, result.errors[name])
	}
	fmt.Println(" (goroutines)")
}

func main() {
	switch {
	case len(os.Args) == 2:
		task(overTCP, os.Args[1])
	case len(os.Args) == 6 && os.Args[1] == "tally":
		connections, _ := strconv.Atoi(os.Args[4])
		atOnce, _ := strconv.Atoi(os.Args[5])
		runTally(os.Args[2], os.Args[3], connections, atOnce)
	default:
		fail(errors.New("usage: net HOST | net tally ADDRESS echo|chorus COUNT AT_ONCE"))
	}
}
